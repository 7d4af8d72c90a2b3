"""LSTM-8192-2048 on the 1 Billion Word benchmark, with dropout.

    python train.py --config lm1b_lstm_8192_2048_dropout --workdir runs/lm1b_lstm_8192_2048_dropout
    python evaluate.py --workdir runs/lm1b_lstm_8192_2048_dropout

Jozefowicz et al. (2016), table 1: test perplexity 32.2, 3.3 billion parameters; not run here.
As lm1b_lstm_8192_2048, with dropout.
"""

import dataclasses

from configs import lm1b_lstm_8192_2048
from zoo import Experiment


def get_config() -> Experiment:
    """The experiment."""
    base = lm1b_lstm_8192_2048.get_config()
    core = dataclasses.replace(base.model.core, dropout=0.25, input_dropout=0.25)
    return dataclasses.replace(base, model=dataclasses.replace(base.model, core=core))
