"""The micro language with a log-linear head over its morphology.

    python train.py --config micro_log_linear runs/quickstart/log_linear

As micro_softmax, but a word is the set of its features, in and out: its identity if it is among the
200 most frequent of the training text, and its part of speech, gender, number and class. The
background is the smoothed unigram distribution of the training text alone. Expected: 3.1154 nats a
token on the test text (perplexity 22.54); at most 1 minute on two cores (19 seconds of steps).
"""

from configs import micro_softmax, variant
from zoo import priors
from zoo.embeddings import Features
from zoo.heads import LogLinear

get_config = variant(
    micro_softmax,
    {
        "vocabulary.features": (
            priors.TopWords(count=200, splits=("train",)),
            priors.Morphology(splits=("train",)),
        ),
        "vocabulary.background": priors.Unigram(splits=("train",), smoothing=0.5),
        "model.embedding": Features(size=128),
        "model.head": LogLinear(),
    },
)
