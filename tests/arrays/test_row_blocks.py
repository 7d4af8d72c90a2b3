"""Blocks of rows: strides over all rows, in which every device has a part."""

import jax.numpy as jnp
import numpy as np
import pytest

from zoo.arrays import row_blocks


def test_blocks_are_strides():
    rows = jnp.arange(6)
    np.testing.assert_array_equal(row_blocks.of_rows(rows, 2), [[0, 3], [1, 4], [2, 5]])
    np.testing.assert_array_equal(row_blocks.of_rows(rows, 4), [[0, 2, 4, 0], [1, 3, 5, 0]])
    np.testing.assert_array_equal(
        row_blocks.of_rows(rows, 4, filling="edge"), [[0, 2, 4, 5], [1, 3, 5, 5]]
    )


@pytest.mark.parametrize("block", [1, 2, 3, 4, 6, 7])
def test_rows_come_back_in_their_order(block):
    tree = {"rows": jnp.arange(7), "more": jnp.arange(14).reshape(7, 2)}
    back = row_blocks.joined(row_blocks.of_rows(tree, block), 7)
    for name, array in tree.items():
        np.testing.assert_array_equal(back[name], array)
    squares = row_blocks.map_rows(lambda rows: rows[0] * rows[0], (tree["rows"],), block)
    np.testing.assert_array_equal(squares, np.arange(7) ** 2)


def test_blocks_are_even():
    assert row_blocks.even(101, 100) == 51  # not 100 and 1
    assert row_blocks.even(1024, 384) == 256  # four blocks without padding, not three with
    assert row_blocks.even(97, 30) == 25  # a prime: five blocks or six would not divide it either
    assert row_blocks.even(12, 0) == row_blocks.even(1, 5) == 1
    assert row_blocks.even(0, 5) == 1
