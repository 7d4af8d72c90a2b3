"""WikiText-2 by noise-contrastive estimation, 100 noise words a batch row.

    python -m zoo data wikitext-2
    python train.py --config wikitext2_nce runs/wikitext2_nce

Mnih and Teh (2012); ptb_nce on another text. Data and budget are as in wikitext2_softmax. Not run
yet, so without an expected figure.
"""

from configs import ptb_softmax, variant
from configs.ptb._shared import NOISE_CONTRASTIVE
from configs.wikitext._shared import WIKITEXT_2

get_config = variant(ptb_softmax, {"data": WIKITEXT_2, **NOISE_CONTRASTIVE})
