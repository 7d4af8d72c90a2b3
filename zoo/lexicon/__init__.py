"""The lexicon: all data that is fixed for each word.

The examples begin with

    >>> import numpy as np
    >>> from zoo.lexicon import Lexicon, Spelling, with_features
"""

from zoo.lexicon.lexicon import Lexicon, with_features
from zoo.lexicon.spelling import Spelling

__all__ = ["Lexicon", "Spelling", "with_features"]
