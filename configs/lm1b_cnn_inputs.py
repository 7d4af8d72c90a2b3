"""BIG LSTM with character inputs on the 1 Billion Word benchmark.

    python train.py --config lm1b_cnn_inputs --workdir runs/lm1b_cnn_inputs
    python evaluate.py --workdir runs/lm1b_cnn_inputs

Jozefowicz et al. (2016), table 1, BIG + CNN inputs: test perplexity 30.0, 1.04 billion parameters;
not run here. 4,096 filters with maximum pooling and two highway layers, words cut at 50 letters;
how the filters are shared out over widths is open in the paper: eight widths, twice as many filters
for each. Everything else is as in lm1b_big.
"""

import dataclasses

from configs import lm1b_big
from zoo import Experiment
from zoo.convolution import Convolution
from zoo.embeddings import CharCNN
from zoo.spelling import Spelling

NETWORK = Convolution(
    spelling=Spelling(longest=50),
    letter_size=16,
    widths=(1, 2, 3, 4, 5, 6, 7, 8),
    filters=(32, 32, 64, 128, 256, 512, 1024, 2048),
    pooling="max",
    highway=2,
)


def get_config() -> Experiment:
    """The experiment."""
    base = lm1b_big.get_config()
    embedding = CharCNN(size=1024, network=NETWORK)
    return dataclasses.replace(base, model=dataclasses.replace(base.model, embedding=embedding))
