"""LSTM-8192-2048 on the 1 Billion Word benchmark, without dropout.

    python train.py --config lm1b_lstm_8192_2048 runs/lm1b_lstm_8192_2048

Jozefowicz et al. (2016), table 1: test perplexity 37.9, 3.3 billion parameters; not run here.
Everything but the sizes and dropout is as in lm1b_lstm_2048_512.
"""

from configs import lm1b_lstm_2048_512, variant
from zoo.cores import LSTM

get_config = variant(
    lm1b_lstm_2048_512,
    {"model.embedding.size": 2048, "model.core": LSTM(size=8192, projection=2048)},
)
