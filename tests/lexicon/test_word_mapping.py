"""Which trained word stands for each word of another lexicon, by hand."""

import dataclasses

import numpy as np
import pytest

from tests import examples
from zoo.lexicon.lexicon import NoUnknownWord, shares

TRAINED, OTHER = examples.trained_and_other()


def test_marks_stand_for_marks_and_new_words_for_the_unknown_one():
    found = shares(TRAINED, OTHER)
    assert found.word_ids.tolist() == [1, 3, 0, 2, 1, 1, 4, 1]
    assert found.shared.tolist() == [True, False, False, False, True, True, False, True]
    evenly = np.where(found.shared, -np.log(4), 0)  # x, y, z and the unknown word itself
    np.testing.assert_allclose(found.log_share, evenly, rtol=1e-6)
    without = dataclasses.replace(TRAINED, unknown=None)
    with pytest.raises(NoUnknownWord, match="x"):
        shares(without, OTHER)
    assert shares(without, without).word_ids.tolist() == [0, 1, 2, 3, 4]
