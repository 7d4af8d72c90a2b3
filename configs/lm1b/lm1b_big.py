"""BIG LSTM (2 x LSTM-8192-1024) on the 1 Billion Word benchmark.

    python train.py --config lm1b_big runs/lm1b_big

Jozefowicz et al. (2016), table 1: test perplexity 30.6, 1.8 billion parameters; not run here.
Everything but the sizes and dropout is as in lm1b_lstm_2048_512.
"""

from configs import lm1b_lstm_2048_512, variant
from configs.lm1b._shared import BIG

get_config = variant(lm1b_lstm_2048_512, {"model.embedding.size": 1024, "model.core": BIG})
