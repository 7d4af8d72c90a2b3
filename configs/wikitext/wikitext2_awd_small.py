"""A small relative of the AWD-LSTM on WikiText-2, for a CPU.

    python -m zoo data wikitext-2
    python train.py --config wikitext2_awd_small runs/wikitext2_awd_small

ptb_awd_small with vectors of 128 numbers and layers of 300 and 128 cells, so that the 33,278 words
leave it at 5,027,310 parameters, and 15 epochs. Blank lines count, as in wikitext2_softmax. Not run
yet on the whole, so without an expected figure.
"""

from configs import ptb_awd_lstm, variant
from configs.wikitext._shared import SMALL_AWD

get_config = variant(ptb_awd_lstm, {**SMALL_AWD, "training.epochs": 15})
