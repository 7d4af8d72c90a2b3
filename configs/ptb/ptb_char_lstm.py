r"""The Penn Treebank with a small LSTM that spells the next word.

    python train.py --config ptb_char_lstm runs/ptb_char_lstm
    python evaluate.py runs/ptb_char_lstm
    python evaluate.py runs/ptb_char_lstm --renormalise --data 'ptb/ptb.test.txt[:50]'

or, as in the paper, on a frozen word model:

    python train.py --config ptb_char_lstm --set init_from=runs/ptb_softmax \
        --set 'training.frozen=("embedding","core")' runs/ptb_char_lstm_frozen

Jozefowicz et al. (2016), section 3.3. The first perplexity is over all spellings; the second is
over the words of the lexicon. It sums over their spellings at every position, which takes a
twentieth of a second each, so it is for a part of a text. Data, core and epochs are as in
ptb_softmax; the optimiser is Adam, and windows of ten words give more steps. Expected, of one run
on a frozen word model: test perplexity 183.6 over all spellings, at most 33 minutes on one of two
CPU cores. Without a frozen model it has not been run to its end.
"""

from configs import ptb_softmax, variant
from zoo.heads import CharLSTM
from zoo.optimizers import Adam, Cosine

get_config = variant(
    ptb_softmax,
    {
        "model.head": CharLSTM(size=256),
        "training.length": 10,
        "training.optimizer": Adam(learning_rate=0.003, schedule=Cosine(warmup=100)),
        "training.clip": 1.0,
    },
)
