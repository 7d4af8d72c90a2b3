"""The Penn Treebank by noise-contrastive estimation, 100 noise words a lane.

    python train.py --config ptb_nce --workdir runs/ptb_nce
    python evaluate.py --workdir runs/ptb_nce

Mnih and Teh (2012), with Z fixed to 1. Data and budget are those of ptb_softmax, the learning rate
is twice as high; steps update the rows that they touch. The 35 tokens of a lane share their noise
words, which costs what one draw for the whole batch does, with twenty times as many words a step.
The perplexity is the exact one, over all words. Results: docs/results.md.
"""

import dataclasses

from configs import ptb_softmax
from zoo import Experiment
from zoo.heads import NCE, UnigramNoise


def get_config() -> Experiment:
    """The experiment."""
    base = ptb_softmax.get_config()
    head = NCE(noise=UnigramNoise(), samples=100, noise_per="lane")
    return dataclasses.replace(
        base,
        model=dataclasses.replace(base.model, head=head),
        training=dataclasses.replace(
            base.training,
            row_sparse=True,
            optimizer=dataclasses.replace(base.training.optimizer, learning_rate=40.0),
        ),
    )
