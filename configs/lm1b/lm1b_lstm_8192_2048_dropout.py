"""LSTM-8192-2048 on the 1 Billion Word benchmark, with dropout.

    python train.py --config lm1b_lstm_8192_2048_dropout runs/lm1b_lstm_8192_2048_dropout

Jozefowicz et al. (2016), table 1: test perplexity 32.2, 3.3 billion parameters; not run here. As
lm1b_lstm_8192_2048, with dropout.
"""

from configs import lm1b_lstm_2048_512, variant
from zoo.cores import LSTM

CORE = LSTM(size=8192, projection=2048, dropout=0.25, input_dropout=0.25)
get_config = variant(lm1b_lstm_2048_512, {"model.embedding.size": 2048, "model.core": CORE})
