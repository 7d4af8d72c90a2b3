"""The largest numbers found by blocks equal a sort, and the first largest numpy's argmax."""

import jax
import numpy as np
import pytest

from zoo.decoding.beam import block_size, top_k
from zoo.decoding.sampling import argmax


@pytest.mark.parametrize("size", [1, 5, 385, 447, 448, 3583, 5129])
@pytest.mark.parametrize("values", [3, 100_000], ids=["ties", "few ties"])
def test_they_are_those_of_a_stable_sort(random, size, values):
    array = random.integers(0, values, (3, size)).astype(np.float32)
    array[0, size // 2 :] = -np.inf
    numbers, columns = top_k(array, 7)
    for row in range(3):
        expected = np.argsort(-array[row], kind="stable")[:7]
        count = len(expected)
        np.testing.assert_array_equal(columns[row, :count], expected)
        np.testing.assert_array_equal(numbers[row, :count], array[row, expected])
        np.testing.assert_array_equal(numbers[row, count:], -np.inf)


def test_there_are_as_many_blocks_as_numbers_of_the_largest():
    assert [block_size(size, 7) for size in (1, 447, 448, 1791, 1792)] == [1, 4, 8, 8, 16]


@pytest.mark.parametrize("shape", [(3, 1), (2, 3, 400)])
def test_argmax_is_the_first_of_equals(random, shape):
    array = random.integers(0, 5, shape).astype(np.float32)
    array[0] = -np.inf
    for function in (argmax, jax.jit(argmax), jax.vmap(argmax)):
        np.testing.assert_array_equal(function(array), array.argmax(axis=-1))
