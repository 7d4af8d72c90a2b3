"""The AWD-LSTM of Merity, Keskar and Socher (2018) on WikiText-2.

    python -m zoo data wikitext-2
    python train.py --config wikitext2_awd_lstm runs/wikitext2_awd_lstm

As ptb_awd_lstm, with 80 batch rows and more dropout of inputs (section 5 of the paper). 33,545,278
parameters; the authors' code has 10,800 more, for a second bias of each gate. Blank lines count, as
in wikitext2_softmax. Not run yet on the whole, so without an expected figure; the paper has a test
perplexity of 66.0, and 65.8 after fine-tuning (see ptb_awd_lstm). Time and memory of a step:
docs/regularisation.md.
"""

from configs import ptb_awd_lstm, variant
from configs.wikitext._shared import WIKITEXT_2

get_config = variant(
    ptb_awd_lstm,
    {"data": WIKITEXT_2, "model.core.input_dropout": 0.65, "training.batch": 80},
)
