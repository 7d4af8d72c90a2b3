"""Word alignments of sentence pairs: IBM model 1, symmetrisation, a dictionary, unknown words.

An alignment is a set of links (i, j): the target word at position j translates the source word at
position i, both from 0. `zoo.sources.pairs` reads and writes files of alignments.

The examples begin with

    >>> import numpy as np
    >>> from zoo import alignment
    >>> source, target = "the portico in Metz".split(), "le portique de Metz".split()
    >>> links, known_words = [(0, 0), (1, 1), (2, 2), (3, 3)], ({"the", "in"}, {"le", "de"})
    >>> dictionary = {"portico": "portique"}
"""

from zoo.alignment.model1 import METHODS, Model1, symmetrise
from zoo.alignment.unknown_words import (
    STRATEGIES,
    Copyable,
    PositionalAll,
    PositionalUnknown,
    UnknownWords,
    in_sentence_order,
    learn_dictionary,
    most_attended,
    restore_by_attention,
)

__all__ = [
    "METHODS",
    "STRATEGIES",
    "Copyable",
    "Model1",
    "PositionalAll",
    "PositionalUnknown",
    "UnknownWords",
    "in_sentence_order",
    "learn_dictionary",
    "most_attended",
    "restore_by_attention",
    "symmetrise",
]
