"""WikiText-2 by importance sampling, 1,024 different noise words a batch.

    python -m zoo data wikitext-2
    python train.py --config wikitext2_is runs/wikitext2_is
    python evaluate.py runs/wikitext2_is

Jozefowicz et al. (2016), section 3.1; ptb_is on another text. Data and budget are as in
wikitext2_softmax. Not run yet, so without an expected figure.
"""

from configs import wikitext2_softmax
from zoo import Experiment, changed
from zoo.heads import ImportanceSampling, UnigramNoise


def get_config() -> Experiment:
    """Returns the experiment."""
    return changed(
        wikitext2_softmax.get_config(),
        {
            "model.head": ImportanceSampling(
                noise=UnigramNoise(power=0.75), samples=1024, distinct=True
            ),
            "training.row_sparse": True,
        },
    )
