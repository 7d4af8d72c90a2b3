r"""An LSTM that spells the next word, to re-score hypotheses over all spellings.

    python train.py --config speech_char_lstm runs/speech_char_lstm \
        --set init_from=runs/speech_cnn_softmax --set 'training.frozen=("embedding","core")'

As speech_cnn_softmax, whose embedding and core it keeps frozen, except for the head, which spells
words (Jozefowicz et al. 2016, section 3.3, also on a frozen word model). Every word has a
probability; --add-words lists words outside the training text. No noise words are drawn.

Data: speech/ in $ZOO_DATA. Expected, of one run: validation perplexity 5335.95 over all spellings.
"""

from configs import speech_softmax, variant
from configs.speech._shared import WORDS_AND_LETTERS
from zoo.heads import CharLSTM

get_config = variant(
    speech_softmax,
    {
        "model.embedding": WORDS_AND_LETTERS,
        "model.head": CharLSTM(size=128),
        "training.epochs": 4,
    },
)
