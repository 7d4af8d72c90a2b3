"""Several embeddings side by side: what they note of words."""

import numpy as np

from zoo.arrays.sharded_functions import FEATURES, HIDDEN, WORDS
from zoo.embeddings import CharCNN, Concat, Features, Lookup
from zoo.layers.char_convolution import Convolution
from zoo.lexicon import Lexicon
from zoo.lexicon.spelling import Spelling

LEXICON = Lexicon(("a", "abc", "abcd"), np.ones(3, np.int64))


def letters(longest):
    return CharCNN(size=2, network=Convolution(Spelling(longest=longest), widths=(2,)))


def test_notes_of_one_part_are_as_they_are():
    assert Concat((Lookup(2), letters(3))).warnings(LEXICON) == {"words cut by the embedding": 1}
    assert Concat((Lookup(2),)).warnings(LEXICON) == {}


def test_notes_of_several_parts_do_not_hide_each_other():
    assert Concat((letters(2), Lookup(2), letters(9))).warnings(LEXICON) == {
        "words cut by the embedding, part 0": 2,
        "words cut by the embedding, part 2": 0,
    }


def test_axes_are_named_by_the_part_that_has_them():
    assert Concat((Lookup(2), letters(3), Features(size=2))).parameter_axes == {
        "0/table": (WORDS, HIDDEN),
        "2/table": (FEATURES, HIDDEN),
    }
