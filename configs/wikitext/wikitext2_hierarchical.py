"""WikiText-2 with a hierarchical softmax: classes by frequency.

    python -m zoo data wikitext-2
    python train.py --config wikitext2_hierarchical runs/wikitext2_hierarchical
    python evaluate.py runs/wikitext2_hierarchical

Goodman (2001); ptb_hierarchical on another text. Data and budget are as in wikitext2_softmax. Not
run yet, so without an expected figure.
"""

from configs import wikitext2_softmax
from zoo import Experiment, changed
from zoo.heads import HierarchicalSoftmax


def get_config() -> Experiment:
    """Returns the experiment."""
    return changed(
        wikitext2_softmax.get_config(),
        {
            "model.head": HierarchicalSoftmax(),
        },
    )
