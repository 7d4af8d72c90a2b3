"""The log-linear RNN of Dymetman and Xiao (2016), table 4, M = 2,500, on French UD.

As rnn_french, but words are sets of features in and out: the 2,500 most frequent words, "not among
them", and the morphology of all tokens of a type; the background is the unigram distribution over
all splits, the test sets too, as in the paper (section 5.3).

    python train.py --config llrnn_french --workdir runs/llrnn_french
    python evaluate.py --workdir runs/llrnn_french

Data: ud_french/ (UD French r1.4, CoNLL-U) in $ZOO_DATA. Results: docs/results.md.
"""

import dataclasses

from configs import rnn_french
from zoo import Experiment, priors
from zoo.embeddings import Features
from zoo.heads import LogLinear


def get_config() -> Experiment:
    """The experiment."""
    base = rnn_french.get_config()
    return dataclasses.replace(
        base,
        vocabulary=dataclasses.replace(
            base.vocabulary,
            features=(priors.TopWords(count=2500), priors.Morphology()),
            background=priors.Unigram(),
        ),
        model=dataclasses.replace(base.model, embedding=Features(size=256), head=LogLinear()),
    )
