"""BIG LSTM with character inputs on the 1 Billion Word benchmark.

    python train.py --config lm1b_cnn_inputs runs/lm1b_cnn_inputs
    python evaluate.py runs/lm1b_cnn_inputs

Jozefowicz et al. (2016), table 1, BIG + CNN inputs: test perplexity 30.0, 1.04 billion parameters;
not run here. 4,096 filters with maximum pooling and two highway layers, words cut at 50 letters;
how the filters are shared out over widths is open in the paper: eight widths, twice as many filters
for each. Everything else is as in lm1b_big.
"""

from configs import lm1b_lstm_2048_512
from configs.lm1b._shared import BIG, LETTERS
from zoo import Experiment, changed
from zoo.embeddings import CharCNN


def get_config() -> Experiment:
    """The experiment."""
    return changed(
        lm1b_lstm_2048_512.get_config(),
        {
            "model.embedding": CharCNN(size=1024, network=LETTERS),
            "model.core": BIG,
        },
    )
