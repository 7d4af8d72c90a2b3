"""Czech with a trigram model, letters in, and an LSTM that spells the next word.

    python train.py --config czech_char_lstm_3 runs/czech_char_lstm_3

As czech_cwe_3, except for the head (Jozefowicz et al. 2016, section 3.3), which does not use noise
words, and Adam on larger batches. The perplexity is over all spellings. Not run to its end yet.
"""

from configs import czech_we_3, variant
from configs.czech._shared import WORDS_AND_LETTERS
from zoo.heads import CharLSTM
from zoo.optimizers import Adam, Cosine

get_config = variant(
    czech_we_3,
    {
        "model.embedding": WORDS_AND_LETTERS,
        "model.head": CharLSTM(size=128),
        "training.row_sparse": True,
        "training.batch": 64,
        "training.epochs": 10,
        "training.optimizer": Adam(learning_rate=0.001, schedule=Cosine(warmup=500)),
        "training.clip": 1.0,
    },
)
