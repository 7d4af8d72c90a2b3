"""The Penn Treebank with a mixture of three softmaxes, at the parameters of one.

    python train.py --config ptb_mixture --workdir runs/ptb_mixture
    python evaluate.py --workdir runs/ptb_mixture

Yang et al. (2018). Word vectors of 237 numbers make up for the projections, so that the parameters
are no more than those of ptb_softmax; data and budget are the same. Results: docs/results.md.
"""

import dataclasses

from configs import ptb_softmax
from zoo import Experiment
from zoo.heads import MixtureOfSoftmaxes


def get_config() -> Experiment:
    """The experiment."""
    base = ptb_softmax.get_config()
    head = MixtureOfSoftmaxes(components=3, size=237)
    return dataclasses.replace(
        base,
        model=dataclasses.replace(base.model, head=head),
    )
