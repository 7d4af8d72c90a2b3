"""WikiText-2 by noise-contrastive estimation, 100 noise words a batch row.

    python -m zoo data wikitext-2
    python train.py --config wikitext2_nce runs/wikitext2_nce
    python evaluate.py runs/wikitext2_nce

Mnih and Teh (2012); ptb_nce on another text. Data and budget are as in wikitext2_softmax. Not run
yet, so without an expected figure.
"""

from configs import wikitext2_softmax
from zoo import Experiment, changed
from zoo.heads import NCE, UnigramNoise


def get_config() -> Experiment:
    """Returns the experiment."""
    return changed(
        wikitext2_softmax.get_config(),
        {
            "model.head": NCE(noise=UnigramNoise(), samples=100, noise_per="row"),
            "training.row_sparse": True,
            "training.optimizer.learning_rate": 40.0,
        },
    )
