"""LSTM-8192-2048 on the 1 Billion Word benchmark, with dropout.

    python train.py --config lm1b_lstm_8192_2048_dropout runs/lm1b_lstm_8192_2048_dropout

Jozefowicz et al. (2016), table 1: test perplexity 32.2, 3.3 billion parameters; not run here. As
lm1b_lstm_8192_2048, with dropout.
"""

from configs import lm1b_lstm_8192_2048
from zoo import Experiment, changed


def get_config() -> Experiment:
    dropout = {"model.core.dropout": 0.25, "model.core.input_dropout": 0.25}
    return changed(lm1b_lstm_8192_2048.get_config(), dropout)
