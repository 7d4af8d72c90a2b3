"""The log-linear RNN of Dymetman and Xiao (2016), table 4, M = 2,500, on French UD.

As rnn_french, but words are sets of features in and out: the 2,500 most frequent words, "not among
them", and the morphology of all tokens of a type; the background is the unigram distribution over
all splits, the test sets too, as in the paper (section 5.3).

    python train.py --config llrnn_french runs/llrnn_french

Data: ud_french/ (UD French r1.4, CoNLL-U) in $ZOO_DATA. Expected, of one run: 5.514 and 5.478 nats
a word on the tests, at most 8 minutes on one of two CPU cores. The paper has 5.08 and 5.07 by
another denominator.
"""

from configs import rnn_french, variant
from configs.french._shared import LOG_LINEAR
from zoo import priors

get_config = variant(
    rnn_french,
    {
        **LOG_LINEAR,
        "vocabulary.features": (priors.TopWords(count=2500), priors.Morphology()),
        "vocabulary.background": priors.Unigram(),
    },
)
