"""A softmax on WikiText-2.

    python -m zoo data wikitext-2
    python train.py --config wikitext2_softmax runs/wikitext2_softmax

The recipe is ptb_softmax's: 256 LSTM cells, five epochs of stochastic gradient descent. Other heads
are set as there, such as --set model.head=HierarchicalSoftmax. Figures count every word and </s>,
also of blank lines, as papers count (Merity et al. 2016: 2,088,628, 217,646 and 245,569 tokens, V =
33,278), with <unk> as a word and the state carried. Not run yet, so without an expected figure.
"""

from configs import ptb_softmax, variant
from configs.wikitext._shared import WIKITEXT_2

get_config = variant(ptb_softmax, {"data": WIKITEXT_2})
