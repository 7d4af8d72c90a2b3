"""WikiText-2 with a mixture of three softmaxes.

    python -m zoo data wikitext-2
    python train.py --config wikitext2_mixture runs/wikitext2_mixture
    python evaluate.py runs/wikitext2_mixture

Yang et al. (2018); ptb_mixture on another text. Data and budget are as in wikitext2_softmax. Not
run yet, so without an expected figure.
"""

from configs import wikitext2_softmax
from zoo import Experiment, changed
from zoo.heads import MixtureOfSoftmaxes


def get_config() -> Experiment:
    """Returns the experiment."""
    return changed(
        wikitext2_softmax.get_config(),
        {
            "model.head": MixtureOfSoftmaxes(components=3, size=237),
        },
    )
