"""The Penn Treebank with a hierarchical softmax: 100 classes of 100 words.

    python train.py --config ptb_hierarchical --workdir runs/ptb_hierarchical
    python evaluate.py --workdir runs/ptb_hierarchical

Goodman (2001). Data and budget are those of ptb_softmax. Results: docs/results.md.
"""

import dataclasses

from configs import ptb_softmax
from zoo import Experiment
from zoo.heads import HierarchicalSoftmax


def get_config() -> Experiment:
    """The experiment."""
    base = ptb_softmax.get_config()
    head = HierarchicalSoftmax()
    return dataclasses.replace(
        base,
        model=dataclasses.replace(base.model, head=head),
    )
