"""A 2 x 256 LSTM with a tied softmax on the Penn Treebank.

    python train.py --config ptb_small runs/ptb_small

Figures count every word and </s>, with <unk> as a word and the state carried over sentences, as is
usual for these files (Zaremba et al. 2014). Expected, of one run without a record: test perplexity
83.5 (validation 87.3) after 57 minutes on one CPU core; TheanoLM reports 104.7 for an LSTM of this
size. Data: ptb/ (Mikolov's files) in $ZOO_DATA.
"""

from configs import ptb_softmax, variant
from zoo.cores import LSTM

get_config = variant(
    ptb_softmax,
    {
        "model.core": LSTM(size=256, layers=2, dropout=0.3, input_dropout=0.3),
        "model.head.tied": True,
        "training.epochs": 22,
    },
)
