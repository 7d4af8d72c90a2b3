"""Which trained word stands for each word of another lexicon, by hand."""

import dataclasses

import numpy as np
import pytest

from zoo.lexicon import Lexicon
from zoo.shares import shares

TRAINED = Lexicon(
    words=("</s>", "<unk>", "b", "a", "c"),
    counts=np.array([9, 3, 2, 4, 1]),
    boundary="</s>",
    unknown="<unk>",
)
# Its own marks, in another order, and three new words.
WORDS = ("x", "a", "<s>", "b", "y", "?", "c", "z")
OTHER = Lexicon(words=WORDS, counts=np.zeros(8, np.int64), boundary="<s>", unknown="?")


def test_marks_stand_for_marks_and_new_words_for_the_unknown_one():
    found = shares(TRAINED, OTHER)
    assert found.place.tolist() == [1, 3, 0, 2, 1, 1, 4, 1]
    assert found.shared.tolist() == [True, False, False, False, True, True, False, True]
    without = dataclasses.replace(TRAINED, unknown=None)
    with pytest.raises(LookupError, match="x"):
        shares(without, OTHER)
    assert shares(without, without).place.tolist() == [0, 1, 2, 3, 4]
