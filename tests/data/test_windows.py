"""Windows of random length."""

import numpy as np
import pytest

from zoo.data.batches import Batches, RandomWindows, batch_count, equal_windows
from zoo.data.encoded_text import EncodedText
from zoo.errors import UserError


def test_lengths_follow_the_recipe():
    windows = RandomWindows(deviation=5, half=0.25)
    lengths = np.diff(windows.starts(300_000, 70, np.random.default_rng(0)))
    assert (lengths % 5 == 0).all() and (lengths >= 5).all()
    halves = lengths < 53
    assert abs(halves.mean() - 0.25) < 0.03
    assert abs(lengths[~halves].mean() - 70) < 0.5 and abs(lengths[halves].mean() - 35) < 1
    assert 4.5 < lengths[~halves].std() < 6  # 5, and that of rounding


def test_windows_cover_a_row_once():
    starts = RandomWindows().starts(1_001, 35, np.random.default_rng(1))
    assert starts[0] == 0 and starts[-2] < 1_001 <= starts[-1]
    np.testing.assert_array_equal(equal_windows(7, 3), [0, 3, 6, 9])
    np.testing.assert_array_equal(equal_windows(6, 3), [0, 3, 6])


def test_batches_of_windows_have_each_word_once():
    words = np.arange(1, 402, dtype=np.int32)
    text = EncodedText(words, np.ones(401, bool), np.array([0]), np.ones(401, bool))

    def starts(width):
        return RandomWindows(half=0.3).starts(width, 20, np.random.default_rng(3))

    batches = Batches(text, 2, 20, "carried", 0, starts)
    assert len(batches) == batch_count(text.lengths, 2, 20, "carried", 0, starts) > 5
    parts = [batches[number] for number in range(len(batches))]
    assert len({part.words.shape[1] for part in parts}) > 2
    found = np.concatenate([part.positions for part in parts], axis=1)
    np.testing.assert_array_equal(np.sort(found[found >= 0]), np.arange(401))
    assert all(part.targets.shape == part.words.shape for part in parts)


def test_impossible_windows_are_refused():
    with pytest.raises(UserError, match="half is 1"):
        RandomWindows(half=1.0)
    with pytest.raises(UserError, match="deviation"):
        RandomWindows(deviation=-1.0)
