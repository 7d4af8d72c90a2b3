"""Some rows of arrays at a time, where the results for all of them at once would not fit.

Blocks are strides: of n blocks, block j has the rows j, j + n, j + 2 n ... Where the rows are
shared out over devices, a run each, every block then has rows of each device, and all work on it at
once and send nothing; a block of adjacent rows would lie on one of them and be sent to all.

A program may be exported for any number of rows (`jax.export` with a symbolic shape). Then blocks
have as many rows as are fast for most numbers, and the last are filled up.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

# Rows of a block where nobody knows how many there are: enough for fast products, and few where
# all rows are fewer.
OF_ANY_ROWS = 128


def is_known(rows: int) -> bool:
    """Whether a number of rows is one, and not a symbol that stands for any."""
    return isinstance(rows, int | np.integer)


def at_most(block: int, rows: int) -> int:
    """The rows of a block, of which there are no more than `rows` if that is known."""
    return min(block, rows) if is_known(rows) else block


def even(rows: int, most: int) -> int:
    """The number of rows in a block, at least 1 and at most `most`: as few blocks, with little
    padding.

    Up to half as many blocks more are taken where their number then divides the rows: rows that are
    padded lie on the devices otherwise than they did.
    """
    if not is_known(rows):
        return max(1, min(most, OF_ANY_ROWS))
    fewest = max(1, -(-rows // max(1, most)))
    dividing = (count for count in range(fewest, fewest * 3 // 2 + 1) if rows % count == 0)
    return -(-rows // next(dividing, fewest))


def map_rows(function, arrays, block):
    """function((rows of each array)), a block of rows at a time, as rows in their order.

    Args:
      function: of a tuple of arrays of `block` rows, some of which may be padding, to arrays of as
        many rows.
      arrays: [N, ...] each.
      block: rows at a time; need not divide N.
    """
    rows = arrays[0].shape[0]
    if is_known(rows) and block >= rows:
        return function(arrays)
    return joined(jax.lax.map(function, of_rows(arrays, block)), rows)


def of_rows(tree, block, filling="constant"):
    """Leaves [N, ...] as [blocks, block, ...], the last rows of some blocks filled up.

    Args:
      filling: "constant" for zeros, "edge" for the last row again, where zeros would be no row.
    """

    def cut(x):
        count = -(-x.shape[0] // block)
        padding = ((0, count * block - x.shape[0]), *[(0, 0)] * (x.ndim - 1))
        whole = is_known(count) and not padding[0][1]
        padded = x if whole else jnp.pad(x, padding, mode=filling)
        return jnp.swapaxes(padded.reshape(block, count, *x.shape[1:]), 0, 1)

    return jax.tree.map(cut, tree)


def joined(tree, rows: int):
    """Leaves [blocks, block, ...] as [N, ...], N = rows: the inverse of `of_rows`."""
    return jax.tree.map(
        lambda x: jnp.swapaxes(x, 0, 1).reshape(x.shape[0] * x.shape[1], *x.shape[2:])[:rows],
        tree,
    )


class Sorted(NamedTuple):
    """Blocks of rows in the order of some key, in which rows of a block are alike.

    Runs of adjacent rows are sorted each for itself, and every block has as many rows of each: no
    row leaves its device where each run lies on one.

    Attributes:
      order: of the rows of each run, whose last may be there again to fill the last block; int
        [runs, blocks * size].
      rows: N.
      size: rows of a run in a block.
    """

    order: jax.Array
    rows: int
    size: int

    @classmethod
    def by(cls, keys, runs: int, size: int) -> "Sorted":
        """Sorts N rows by their keys [N], the least first.

        Args:
          runs: how many; must divide N. See `layouts.shares`.
          size: rows of a run in a block, at most; need not divide N / runs.
        """
        order = jnp.argsort(keys.reshape(runs, -1), axis=1)
        size = at_most(size, order.shape[1])
        padding = -(-order.shape[1] // size) * size - order.shape[1]
        return cls(jnp.pad(order, ((0, 0), (0, padding)), mode="edge"), keys.shape[0], size)

    def cut(self, tree):
        """Leaves [N, ...] as [blocks, runs * size, ...]."""
        runs, length = self.order.shape

        def of_leaf(x):
            x = x.reshape(runs, -1, *x.shape[1:])
            x = jax.vmap(lambda rows, order: rows[order])(x, self.order)
            x = x.reshape(runs, length // self.size, self.size, *x.shape[2:])
            return jnp.swapaxes(x, 0, 1).reshape(-1, runs * self.size, *x.shape[3:])

        return jax.tree.map(of_leaf, tree)

    def joined(self, x):
        """An array [blocks, runs * size, ...] as [N, ...]: the inverse of `cut`."""
        runs, length = self.order.shape
        x = x.reshape(-1, runs, self.size, *x.shape[2:])
        x = jnp.swapaxes(x, 0, 1).reshape(runs, length, *x.shape[3:])

        def of_run(rows, order):
            return rows[jnp.zeros_like(order).at[order].set(jnp.arange(order.shape[0]))]

        x = jax.vmap(of_run)(x, self.order[:, : self.rows // runs])
        return x.reshape(self.rows, *x.shape[2:])


class Cut(NamedTuple):
    """Blocks of a table's rows that a loop reads, and adds to, one at a time.

    Where their number divides the rows, blocks are strides. Where not, they are runs of adjacent
    rows, and the last is shifted back so that it does not stick out: the rows that the block before
    has seen are there again, and must be masked or they would count twice.

    Attributes:
      rows: N.
      blocks: how many.
      size: rows of a block.
    """

    rows: int
    blocks: int
    size: int

    @classmethod
    def of(cls, rows: int, most: int) -> "Cut":
        """Cuts N rows into blocks of `most`, at least 1 and at most N; of fewer rows if `most` does
        not divide N while the size of a few more blocks does."""
        size = even(rows, most)
        count = -(-rows // size)
        return cls(rows, count, size if rows % count == 0 else min(most, rows))

    @property
    def strided(self) -> bool:
        return self.blocks * self.size == self.rows

    def numbers(self) -> jax.Array:
        """The numbers of the blocks, for a loop."""
        return jnp.arange(self.blocks)

    def row_numbers(self, number) -> jax.Array:
        """The numbers of the rows of a block, int32 [size]."""
        if self.strided:
            return number + self.blocks * jnp.arange(self.size)
        return self._start(number) + jnp.arange(self.size)

    def masked(self, number, array, value):
        """array [..., size] with the value at the rows that an earlier block has had."""
        if self.strided:
            return array
        new = self.row_numbers(number) >= number * self.size
        return jnp.where(jnp.broadcast_to(new, array.shape), array, value)

    def take(self, number, array):
        """The rows of a block, [size, ...], of an array [N, ...]."""
        if self.strided:
            return jax.lax.dynamic_index_in_dim(self._strides(array), number, 1, keepdims=False)
        return jax.lax.dynamic_slice_in_dim(array, self._start(number), self.size)

    def add(self, number, array, rows):
        """The array [N, ...] with the rows [size, ...] added to those of a block."""
        total = self.take(number, array) + rows.astype(array.dtype)
        if self.strided:
            strides = self._strides(array)
            strides = jax.lax.dynamic_update_index_in_dim(strides, total, number, 1)
            return strides.reshape(array.shape)
        return jax.lax.dynamic_update_slice_in_dim(array, total, self._start(number), 0)

    def _start(self, number):
        return jnp.minimum(number * self.size, self.rows - self.size)

    def _strides(self, array):
        return array.reshape(self.size, self.blocks, *array.shape[1:])
