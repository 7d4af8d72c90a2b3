"""The Penn Treebank by importance sampling: 1,024 noise words a batch.

    python train.py --config ptb_is --workdir runs/ptb_is
    python evaluate.py --workdir runs/ptb_is

Jozefowicz et al. (2016), section 3.1. Data and budget are those of ptb_softmax; steps update the
rows that they touch. The perplexity is the exact one, over all words. Results: docs/results.md.
"""

import dataclasses

from configs import ptb_softmax
from zoo import Experiment
from zoo.heads import ImportanceSampling, UnigramNoise


def get_config() -> Experiment:
    """The experiment."""
    base = ptb_softmax.get_config()
    head = ImportanceSampling(noise=UnigramNoise(power=0.75), samples=1024, distinct=True)
    return dataclasses.replace(
        base,
        model=dataclasses.replace(base.model, head=head),
        training=dataclasses.replace(base.training, row_sparse=True),
    )
