"""The Penn Treebank by noise-contrastive estimation, 100 noise words a batch row.

    python train.py --config ptb_nce runs/ptb_nce

Mnih and Teh (2012), with Z fixed to 1. Data and budget are as in ptb_softmax, the learning rate is
twice as high; a step only updates the rows that it touches. The 35 tokens of a batch row share
their noise words, which costs as much as one draw for the whole batch, and gives twenty times as
many words a step. The perplexity is exact, over all words. Expected, of one run: test perplexity
107.2 (validation 110.5), at most 9 minutes on one of two CPU cores.
"""

from configs import ptb_softmax, variant
from configs.ptb._shared import NOISE_CONTRASTIVE

get_config = variant(ptb_softmax, NOISE_CONTRASTIVE)
