"""Data: sources of text, and from corpora to batches of word ids.

The examples start in an empty folder with

    >>> import dataclasses
    >>> import pathlib
    >>> import numpy as np
    >>> from zoo import data, priors
    >>> from zoo.lexicon import Lexicon
    >>> _ = pathlib.Path("text.txt").write_text("the cat sat\\nthe cat\\n")
    >>> paths = {"train": "text.txt", "validation": "text.txt"}  # of a source's splits
"""

from zoo.data.batches import Buckets, RandomWindows
from zoo.data.vocabulary import Vocabulary, with_background, with_priors
from zoo.sources.conllu import Conllu
from zoo.sources.micro import Micro, MicroPairs
from zoo.sources.mixed import Mixed
from zoo.sources.pairs import AsPairs, Pairs, Prefixed, RawPairs
from zoo.sources.source import Corpus, Source
from zoo.sources.text import Characters, RawText, Text
from zoo.sources.unknown import Unknown

__all__ = [
    "AsPairs",
    "Buckets",
    "Characters",
    "Conllu",
    "Corpus",
    "Micro",
    "MicroPairs",
    "Mixed",
    "Pairs",
    "Prefixed",
    "RandomWindows",
    "RawPairs",
    "RawText",
    "Source",
    "Text",
    "Unknown",
    "Vocabulary",
    "with_background",
    "with_priors",
]
