"""Data: from corpora to batches of word ids. The sources of zoo.sources are here by name, too.

The examples begin in a folder of their own with

    >>> import dataclasses
    >>> import pathlib
    >>> import numpy as np
    >>> from zoo import data, priors
    >>> from zoo.lexicon import Lexicon
    >>> _ = pathlib.Path("text.txt").write_text("the cat sat\\nthe cat\\n")
    >>> paths = {"train": "text.txt", "validation": "text.txt"}  # of a source's splits
"""

from typing import TYPE_CHECKING

from zoo import lazy

if TYPE_CHECKING:
    from zoo.data.buckets import Buckets
    from zoo.data.own_lexicon import with_background, with_priors
    from zoo.data.vocabulary import Vocabulary
    from zoo.sources import (
        AsPairs,
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

__getattr__, __dir__ = lazy.doors(__name__, __file__)

__all__ = [
    "AsPairs",
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
