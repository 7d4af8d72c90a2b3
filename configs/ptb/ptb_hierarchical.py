"""The Penn Treebank with a hierarchical softmax: 100 classes of 100 words.

    python train.py --config ptb_hierarchical runs/ptb_hierarchical

Goodman (2001). Data and budget are as in ptb_softmax. Expected, of one run: test perplexity 123.7
(validation 128.3), at most 46 minutes on one of two CPU cores.
"""

from configs import ptb_softmax, variant
from configs.ptb._shared import HIERARCHICAL

get_config = variant(ptb_softmax, HIERARCHICAL)
