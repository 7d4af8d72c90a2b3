"""The Penn Treebank by importance sampling: 1,024 noise words a batch.

    python train.py --config ptb_is runs/ptb_is

Jozefowicz et al. (2016), section 3.1. Data and budget are as in ptb_softmax; a step only updates
the rows that it touches. The perplexity is exact, over all words. Expected, of one run: test
perplexity 106.0 (validation 109.4), at most 9 minutes on one of two CPU cores.
"""

from configs import ptb_softmax, variant
from configs.ptb._shared import IS

get_config = variant(ptb_softmax, IS)
