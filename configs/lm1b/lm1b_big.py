"""BIG LSTM (2 x LSTM-8192-1024) on the 1 Billion Word benchmark.

    python train.py --config lm1b_big runs/lm1b_big
    python evaluate.py runs/lm1b_big

Jozefowicz et al. (2016), table 1: test perplexity 30.6, 1.8 billion parameters; not run here.
Everything but the sizes and dropout is as in lm1b_lstm_2048_512.
"""

from configs import lm1b_lstm_2048_512
from zoo import Experiment, changed
from zoo.cores import LSTM
from zoo.embeddings import Lookup


def get_config() -> Experiment:
    """Returns the experiment."""
    return changed(
        lm1b_lstm_2048_512.get_config(),
        {
            "model.embedding": Lookup(size=1024),
            "model.core": LSTM(
                size=8192, layers=2, projection=1024, dropout=0.25, input_dropout=0.25
            ),
        },
    )
