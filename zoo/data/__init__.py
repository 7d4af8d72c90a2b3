"""Data: from corpora to batches of word ids. The names of zoo.sources can be used here, too.

The examples start in an empty folder with

    >>> import dataclasses
    >>> import pathlib
    >>> import numpy as np
    >>> from zoo import data, priors
    >>> from zoo.lexicon import Lexicon
    >>> _ = pathlib.Path("text.txt").write_text("the cat sat\\nthe cat\\n")
    >>> paths = {"train": "text.txt", "validation": "text.txt"}  # of a source's splits
"""

from typing import TYPE_CHECKING

from zoo import sources
from zoo.data.batches import Buckets as Buckets
from zoo.data.batches import RandomWindows as RandomWindows
from zoo.data.vocabulary import Vocabulary as Vocabulary
from zoo.data.vocabulary import with_background as with_background
from zoo.data.vocabulary import with_priors as with_priors
from zoo.sources import *  # noqa: F403

if not TYPE_CHECKING:  # type checkers read the imports
    own = {"Buckets", "RandomWindows", "Vocabulary", "with_background", "with_priors"}
    __all__ = sorted({*sources.__all__, *own})
