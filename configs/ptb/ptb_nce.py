"""The Penn Treebank by noise-contrastive estimation, 100 noise words a lane.

    python train.py --config ptb_nce runs/ptb_nce
    python evaluate.py runs/ptb_nce

Mnih and Teh (2012), with Z fixed to 1. Data and budget are those of ptb_softmax, the learning rate
is twice as high; steps update the rows that they touch. The 35 tokens of a lane share their noise
words, which costs what one draw for the whole batch does, with twenty times as many words a step.
The perplexity is the exact one, over all words. Expected: test perplexity 107.2 (validation 110.5),
at most 9 minutes on one of two CPU cores. Results: docs/results.md.
"""

from configs import ptb_softmax
from zoo import Experiment, changed
from zoo.heads import NCE, UnigramNoise


def get_config() -> Experiment:
    """The experiment."""
    return changed(
        ptb_softmax.get_config(),
        {
            "model.head": NCE(noise=UnigramNoise(), samples=100, noise_per="lane"),
            "training.row_sparse": True,
            "training.optimizer.learning_rate": 40.0,
        },
    )
