"""WikiText-2 by importance sampling, 1,024 different noise words a batch.

    python -m zoo data wikitext-2
    python train.py --config wikitext2_is runs/wikitext2_is

Jozefowicz et al. (2016), section 3.1; ptb_is on another text. Data and budget are as in
wikitext2_softmax. Not run yet, so without an expected figure.
"""

from configs import ptb_softmax, variant
from configs.ptb._shared import IS
from configs.wikitext._shared import WIKITEXT_2

get_config = variant(ptb_softmax, {"data": WIKITEXT_2, **IS})
