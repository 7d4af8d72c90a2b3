"""The log-linear RNN on French UD, with Adam, dropout and an average.

As llrnn_french, with the same words and background, but trained with Adam on a cosine, dropout, an
average of the parameters, and windows of 35 words. The last two letters of a word are features,
too: by their tags alone all rare words of a tag would be equal.

    python train.py --config llrnn_french_best runs/llrnn_french_best

Data: ud_french/ (UD French r1.4, CoNLL-U) in $ZOO_DATA. Expected, of one run: 5.185 and 5.186 nats
a word on the tests, at most 28 minutes on one of two CPU cores.
"""

from configs import rnn_french, variant
from configs.french._shared import BEST, LOG_LINEAR
from zoo import priors

get_config = variant(
    rnn_french,
    {
        **LOG_LINEAR,
        **BEST,
        "vocabulary.features": (
            priors.TopWords(count=2500),
            priors.Morphology(),
            priors.Affixes(prefixes=(), suffixes=(2,)),
        ),
        "vocabulary.background": priors.Unigram(),
    },
)
