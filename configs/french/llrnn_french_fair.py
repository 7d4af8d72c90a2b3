"""The log-linear RNN on French UD, its features and background without the test sets.

As llrnn_french, but as section 5.4 of Dymetman and Xiao (2016) asks for: the most frequent words,
the morphology and the unigram background come only from the training text. Words that only occur in
validation or test sets are in the vocabulary, so that figures are over the same V; their tags are
guessed from their endings, and the background counts each of them as half a token.

    python train.py --config llrnn_french_fair runs/llrnn_french_fair

Data: ud_french/ (UD French r1.4, CoNLL-U) in $ZOO_DATA. Expected, with training.batch=128: 5.568
and 5.589 nats a word on the tests, at most 6 minutes on one of two CPU cores.
"""

from configs import rnn_french, variant
from configs.french._shared import BACKGROUND, LOG_LINEAR, SOME_WORDS, TRAIN
from zoo import priors

get_config = variant(
    rnn_french,
    {
        **LOG_LINEAR,
        "vocabulary.features": (
            SOME_WORDS,
            priors.Morphology(splits=TRAIN, guesser=priors.SuffixGuesser()),
        ),
        "vocabulary.background": BACKGROUND,
    },
)
