"""WikiText-2 with a hierarchical softmax: classes by frequency.

    python -m zoo data wikitext-2
    python train.py --config wikitext2_hierarchical runs/wikitext2_hierarchical

Goodman (2001); ptb_hierarchical on another text. Data and budget are as in wikitext2_softmax. Not
run yet, so without an expected figure.
"""

from configs import ptb_softmax, variant
from configs.ptb._shared import HIERARCHICAL
from configs.wikitext._shared import WIKITEXT_2

get_config = variant(ptb_softmax, {"data": WIKITEXT_2, **HIERARCHICAL})
