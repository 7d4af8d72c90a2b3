"""Shared parts of the recipes of captions: a log-linear decoder, and attention."""

from zoo import priors
from zoo.attention import Bahdanau
from zoo.cores import LSTM, Bidirectional
from zoo.embeddings import Features, Lookup
from zoo.heads import LogLinear

# A word is its identity if it is among the 3,000 most frequent, its beginning and its endings.
LOG_LINEAR = {
    "vocabulary.features": (
        priors.TopWords(count=3000, splits=("train",)),
        priors.Affixes(suffixes=(1, 2, 3), minimum_words=10),
    ),
    "vocabulary.background": priors.Unigram(splits=("train",), smoothing=0.5),
    "model.embedding": Features(size=256),
    "model.source_embedding": Lookup(size=256, initial_scale=1.0),
    "model.head": LogLinear(),
}
_BOTH_WAYS = LSTM(size=256, layers=1, dropout=0.3, input_dropout=0.3)
ATTENTION = {
    "model.core": _BOTH_WAYS,
    "model.encoder": Bidirectional(_BOTH_WAYS),
    "model.attention": Bahdanau(),
    "model.order": "forward",
}
