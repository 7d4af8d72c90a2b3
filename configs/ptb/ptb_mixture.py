"""The Penn Treebank with a mixture of three softmaxes, at the parameters of one.

    python train.py --config ptb_mixture runs/ptb_mixture

Yang et al. (2018). Word vectors of size 237 make up for the projections, so that ptb_softmax has as
many parameters; data and budget are the same. Expected, of one run: test perplexity 98.5
(validation 101.5), at most 88 minutes on one of two CPU cores.
"""

from configs import ptb_softmax, variant
from configs.ptb._shared import MIXTURE

get_config = variant(ptb_softmax, MIXTURE)
