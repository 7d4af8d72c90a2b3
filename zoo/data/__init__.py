"""Data: from corpora to batches of word ids. The sources of zoo.sources are here by name, too."""

from zoo.data.buckets import Buckets
from zoo.data.own_lexicon import with_background, with_priors
from zoo.data.vocabulary import Vocabulary
from zoo.sources import (
    Characters,
    Conllu,
    Corpus,
    Facts,
    Micro,
    MicroPairs,
    Mixed,
    Overnight,
    Pairs,
    Prefixed,
    Realisations,
    Source,
    Text,
)

__all__ = [
    "Buckets",
    "Characters",
    "Conllu",
    "Corpus",
    "Facts",
    "Micro",
    "MicroPairs",
    "Mixed",
    "Overnight",
    "Pairs",
    "Prefixed",
    "Realisations",
    "Source",
    "Text",
    "Vocabulary",
    "with_background",
    "with_priors",
]
