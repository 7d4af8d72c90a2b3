"""A small relative of the AWD-LSTM on the Penn Treebank, for a CPU.

    python train.py --config ptb_awd_small runs/ptb_awd_small

Two layers of 450 and 300 cells, 5,263,000 parameters, and everything of ptb_awd_lstm (Merity,
Keskar and Socher 2018) but averaging: the rate of SGD falls along a cosine, which needs fewer
epochs. Rates of dropout and of learning are the best on validation among 30 tried for 19 epochs
(docs/regularisation.md). Expected: test perplexity 72.1 (validation 74.9). Data: ptb/ (Mikolov's
files) in $ZOO_DATA.
"""

from configs import ptb_awd_lstm, variant
from configs.ptb._shared import SMALL_AWD

get_config = variant(ptb_awd_lstm, SMALL_AWD)
