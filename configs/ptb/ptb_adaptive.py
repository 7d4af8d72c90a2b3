"""The Penn Treebank with an adaptive softmax: rare words have smaller vectors.

    python train.py --config ptb_adaptive runs/ptb_adaptive

Grave et al. (2017). Data and budget are as in ptb_softmax. Expected, of one run: test perplexity
103.1 (validation 106.9), at most 17 minutes on one of two CPU cores.
"""

from configs import ptb_softmax, variant
from zoo.heads import AdaptiveSoftmax

get_config = variant(ptb_softmax, {"model.head": AdaptiveSoftmax(cutoffs=(2000, 5000), division=2)})
