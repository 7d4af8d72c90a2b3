"""The Penn Treebank with output vectors from letters, corrected a little for each word.

    python train.py --config ptb_cnn_softmax_correction runs/ptb_cnn_softmax_correction

Jozefowicz et al. (2016), section 3.2: ptb_cnn_softmax with 32 learned numbers a word and their
projection, an eighth of the hidden size as in the paper. Expected, of one run: test perplexity
110.3 (validation 115.2), at most 14 minutes on one of two CPU cores.
"""

from configs import ptb_softmax, variant
from configs.ptb._shared import LETTERS_OUT

get_config = variant(ptb_softmax, {**LETTERS_OUT, "model.head.correction": 32})
