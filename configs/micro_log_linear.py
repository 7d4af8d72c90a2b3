"""The micro language with a log-linear head over its morphology.

    python train.py --config micro_log_linear --workdir runs/quickstart/log_linear

As micro_softmax, but a word is the set of its features, in and out: its identity if it is among the
200 most frequent of the training text, and its part of speech, gender, number and class. The
background is the smoothed unigram distribution of the training text alone.
"""

import dataclasses

from configs import micro_softmax
from zoo import Experiment, priors
from zoo.embeddings import Features
from zoo.heads import LogLinear


def get_config() -> Experiment:
    """The experiment."""
    base = micro_softmax.get_config()
    return dataclasses.replace(
        base,
        vocabulary=dataclasses.replace(
            base.vocabulary,
            features=(
                priors.TopWords(count=200, splits=("train",)),
                priors.Morphology(splits=("train",)),
            ),
            background=priors.Unigram(splits=("train",), smoothing=0.5),
        ),
        model=dataclasses.replace(base.model, embedding=Features(size=128), head=LogLinear()),
    )
