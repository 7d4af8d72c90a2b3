"""WikiText-2 with the adaptive softmax: rare words in clusters.

    python -m zoo data wikitext-2
    python train.py --config wikitext2_adaptive runs/wikitext2_adaptive

Grave et al. (2017); ptb_adaptive on another text, with a third cluster of rare words. Data and
budget are as in wikitext2_softmax. Not run yet, so without an expected figure.
"""

from configs import ptb_softmax, variant
from configs.wikitext._shared import WIKITEXT_2
from zoo.heads import AdaptiveSoftmax

HEAD = AdaptiveSoftmax(cutoffs=(2000, 5000, 15000), division=2)
get_config = variant(ptb_softmax, {"data": WIKITEXT_2, "model.head": HEAD})
