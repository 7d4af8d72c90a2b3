"""WikiText-2 with a mixture of three softmaxes.

    python -m zoo data wikitext-2
    python train.py --config wikitext2_mixture runs/wikitext2_mixture

Yang et al. (2018); ptb_mixture on another text. Data and budget are as in wikitext2_softmax. Not
run yet, so without an expected figure.
"""

from configs import ptb_softmax, variant
from configs.ptb._shared import MIXTURE
from configs.wikitext._shared import WIKITEXT_2

get_config = variant(ptb_softmax, {"data": WIKITEXT_2, **MIXTURE})
