"""A tuned log-linear LSTM over the words of French UD's training text.

Beside french_softmax: the same text, words, background and number of trials on validation. 2,500
words have features of their own; the others are known by tags from Sequoia, another treebank, and
by tags guessed from their endings (see llrnn_french_sequoia).

    python -m zoo data sequoia_tags
    python train.py --config french_log_linear runs/french_log_linear

Data: ud_french/ (UD French r1.4, CoNLL-U) and ud_french_sequoia/ in $ZOO_DATA. Expected: 4.717 nats
a word on the test, in at most 6 minutes on one of two CPU cores.
"""

from configs import french_softmax, variant
from configs.french._shared import LOG_LINEAR, SEQUOIA, SOME_WORDS
from zoo.cores import LSTM
from zoo.optimizers import Adam, Cosine

get_config = variant(
    french_softmax,
    {
        **LOG_LINEAR,
        "vocabulary.features": (SOME_WORDS, SEQUOIA),
        "model.core": LSTM(size=256, dropout=0.5),
        "training.optimizer": Adam(learning_rate=0.003, schedule=Cosine(warmup=20)),
        "training.epochs": 8,
    },
)
