"""The Penn Treebank with output vectors from the letters of words.

    python train.py --config ptb_cnn_softmax runs/ptb_cnn_softmax

Jozefowicz et al. (2016), section 3.2, with the small network of Kim et al. (2016), trained by
importance sampling as there: a step computes the vectors of some thousand words only. Data, core
and epochs are as in ptb_softmax; logits that are tied by the network need smaller steps, here
Adam's. The perplexity is exact. Expected, of one run: test perplexity 124.6 (validation 129.1), at
most 14 minutes on one of two CPU cores.
"""

from configs import ptb_softmax, variant
from configs.ptb._shared import LETTERS_OUT

get_config = variant(ptb_softmax, LETTERS_OUT)
