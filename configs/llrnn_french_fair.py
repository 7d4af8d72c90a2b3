"""The log-linear RNN on French UD, its features and background without the test sets.

As llrnn_french, with what section 5.4 of Dymetman and Xiao (2016) wishes for: the most frequent
words, the morphology and the unigram background are those of the training text alone. Words that
only validation or test sets have are in the vocabulary, so that figures are over the same V; their
tags are guessed from their endings, and the background gives each word half a token.

    python train.py --config llrnn_french_fair --workdir runs/llrnn_french_fair
    python evaluate.py --workdir runs/llrnn_french_fair

Data: ud_french/ (UD French r1.4, CoNLL-U) in $ZOO_DATA. Results: docs/results.md.
"""

import dataclasses

from configs import llrnn_french
from zoo import Experiment, priors


def get_config() -> Experiment:
    """The experiment."""
    base = llrnn_french.get_config()
    train = ("train",)
    return dataclasses.replace(
        base,
        vocabulary=dataclasses.replace(
            base.vocabulary,
            features=(
                priors.TopWords(count=2500, splits=train),
                priors.Morphology(splits=train, guesser=priors.SuffixGuesser()),
            ),
            background=priors.Unigram(splits=train, smoothing=0.5),
        ),
    )
