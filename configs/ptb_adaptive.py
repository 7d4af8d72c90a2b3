"""The Penn Treebank with an adaptive softmax: rare words have smaller vectors.

    python train.py --config ptb_adaptive --workdir runs/ptb_adaptive
    python evaluate.py --workdir runs/ptb_adaptive

Grave et al. (2017). Data and budget are those of ptb_softmax. Results: docs/results.md.
"""

import dataclasses

from configs import ptb_softmax
from zoo import Experiment
from zoo.heads import AdaptiveSoftmax


def get_config() -> Experiment:
    """The experiment."""
    base = ptb_softmax.get_config()
    head = AdaptiveSoftmax(cutoffs=(2000, 5000), division=2)
    return dataclasses.replace(
        base,
        model=dataclasses.replace(base.model, head=head),
    )
