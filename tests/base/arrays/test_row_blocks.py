"""Blocks of rows: strides in which every device has a part, and blocks cut to their lengths."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from zoo.base.arrays import row_blocks
from zoo.base.arrays.row_blocks import map_by_length


def test_blocks_are_strides():
    rows = jnp.arange(6)
    np.testing.assert_array_equal(row_blocks.cut_rows(rows, 2), [[0, 3], [1, 4], [2, 5]])
    np.testing.assert_array_equal(row_blocks.cut_rows(rows, 4), [[0, 2, 4, 0], [1, 3, 5, 0]])
    np.testing.assert_array_equal(
        row_blocks.cut_rows(rows, 4, filling="edge"), [[0, 2, 4, 5], [1, 3, 5, 5]]
    )


@pytest.mark.parametrize("block", [1, 2, 3, 4, 6, 7])
def test_rows_come_back_in_their_order(block):
    tree = {"rows": jnp.arange(7), "more": jnp.arange(14).reshape(7, 2)}
    back = row_blocks.join_rows(row_blocks.cut_rows(tree, block), 7)
    for name, array in tree.items():
        np.testing.assert_array_equal(back[name], array)
    squares = row_blocks.map_rows(lambda rows: rows[0] * rows[0], (tree["rows"],), block)
    np.testing.assert_array_equal(squares, np.arange(7) ** 2)


def test_blocks_are_even():
    assert row_blocks.even_block(101, 100) == 51  # not 100 and 1
    assert row_blocks.even_block(1024, 384) == 256  # four blocks without padding, not three with
    assert (
        row_blocks.even_block(97, 30) == 25
    )  # a prime: five blocks or six would not divide it either
    assert row_blocks.even_block(12, 0) == row_blocks.even_block(1, 5) == 1
    assert row_blocks.even_block(0, 5) == 1


def problem(number, longest, random):
    """(weights, letters with filling that would show, lengths, others)."""
    lengths = random.integers(1, longest + 1, number)
    letters = random.integers(1, 9, (number, longest))
    letters = np.where(np.arange(longest) < lengths[:, None], letters, 99)
    inputs = random.normal(size=(number, 2))
    return random.normal(size=2), letters, lengths, inputs


def score(weights, letters, lengths, inputs):
    """sum_i i letter_i tanh(weights . other), [n, 1]."""
    positions = jnp.arange(letters.shape[1])
    is_letter = positions[None] < lengths[:, None]
    sums = jnp.where(is_letter, positions[None] * letters, 0).sum(1)
    return (sums * jnp.tanh(inputs @ weights))[:, None]


def expected(weights, letters, lengths, inputs):
    rows = zip(letters, lengths, inputs, strict=True)
    return np.array(
        [
            [sum(i * letter for i, letter in enumerate(row[:n])) * np.tanh(row_inputs @ weights)]
            for row, n, row_inputs in rows
        ]
    )


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize(("number", "longest"), [(1, 1), (5, 8), (301, 16)])
def test_values_are_those_of_each_row(number, longest, random):
    weights, letters, lengths, inputs = problem(number, longest, random)
    results = jax.jit(lambda w, x: map_by_length(score, w, letters, lengths, (x,)))(weights, inputs)
    np.testing.assert_allclose(results, expected(weights, letters, lengths, inputs), rtol=1e-12)


@pytest.mark.usefixtures("float64")
def test_gradients_are_those_of_the_whole(random):
    weights, letters, lengths, inputs = problem(301, 16, random)
    cotangent = random.normal(size=(301, 1))

    def objective(function):
        return jax.jit(jax.grad(lambda w, x: jnp.sum(cotangent * function(w, x)), argnums=(0, 1)))

    cut = objective(lambda w, x: map_by_length(score, w, letters, lengths, (x,)))
    at_once = objective(lambda w, x: score(w, letters, lengths, x))
    for actual, desired in zip(cut(weights, inputs), at_once(weights, inputs), strict=True):
        np.testing.assert_allclose(actual, desired, rtol=1e-11)


def test_only_the_first_are_computed(random):
    weights, letters, lengths, inputs = problem(301, 14, random)
    compute = jax.jit(functools.partial(map_by_length, score, count=7))
    results = compute(weights, letters, lengths, (inputs,))
    np.testing.assert_allclose(
        results[:7], expected(weights, letters, lengths, inputs)[:7], rtol=1e-4, atol=1e-4
    )
    np.testing.assert_array_equal(results[7:], 0)


def test_widths_grow_by_half():
    assert row_blocks.widths(30) == [4, 6, 9, 13, 19, 30]
    assert row_blocks.widths(30, minimum=20) == [20, 30]
    assert row_blocks.widths(52) == [4, 6, 9, 13, 19, 28, 52]
    assert row_blocks.widths(8) == [4, 6, 8]
    assert row_blocks.widths(3) == [3]


@pytest.mark.parametrize("rows, limit", [(5_650, 512), (3_665, 512), (5_738, 2_048), (13, 5)])
def test_blocks_that_do_not_divide_a_table_repeat_few_rows(rows, limit):
    blocks = row_blocks.RowBlocks.from_size(rows, limit, adjacent=True)
    assert blocks.size <= limit and blocks.blocks == -(-rows // limit)
    assert 0 <= blocks.blocks * blocks.size - rows < blocks.blocks * row_blocks.ALIGNED
    table = jnp.arange(rows)
    block_rows = [
        blocks.masked(number, blocks.take(number, table), -1) for number in range(blocks.blocks)
    ]
    row_numbers = np.concatenate(block_rows)
    np.testing.assert_array_equal(row_numbers[row_numbers >= 0], np.arange(rows))  # each row once
