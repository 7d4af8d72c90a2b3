"""Shared parts of the recipes of the French treebank: log-linear models."""

from zoo import priors
from zoo.embeddings import Features
from zoo.heads import LogLinear

TRAIN = ("train",)
SOME_WORDS = priors.TopWords(count=2500, splits=TRAIN)
# Tags from another treebank, whose gold tags are independent of the tests.
SEQUOIA = priors.Morphology(
    splits=TRAIN,
    treebanks=("ud_french_sequoia/fr_sequoia-ud-train.conllu",),
    guesser=priors.SuffixGuesser(),
)
# What only the training text knows.
BACKGROUND = priors.Unigram(splits=TRAIN, smoothing=0.5)
LOG_LINEAR = {"model.embedding": Features(size=256), "model.head": LogLinear()}
