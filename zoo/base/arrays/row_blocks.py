"""Computes on blocks of rows, where the results for all rows at once would not fit in memory.

Blocks are strides: of n blocks, block j has the rows j, j + n, j + 2 n ... Where rows are sharded
over devices, a run of adjacent rows each, every block then has rows of each device: all devices
work on it at once and send nothing. A block of adjacent rows would lie on one device and be sent to
all.

A program may be exported for any number of rows (`jax.export` with a symbolic shape). Then blocks
have a number of rows that is fast for most numbers, and the last block is padded.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from zoo.base.arrays import sharded_functions
from zoo.base.arrays.precision import accumulator
from zoo.base.arrays.sharded_functions import vary_together

# Rows of a block where the number of rows is symbolic: enough for fast products, without much
# padding where all rows are fewer.
OF_ANY_ROWS = 128


def is_known(rows: int) -> bool:
    """Whether a number of rows is an integer, not the symbol of an exported program."""
    return isinstance(rows, int | np.integer)


def at_most(block: int, rows: int) -> int:
    """Returns the number of rows of a block: `block`, or `rows` if that is known and less."""
    return max(1, min(block, rows)) if is_known(rows) else block


def even_block(rows: int, most: int) -> int:
    """Chooses the number of rows of a block, for few blocks with little padding: up to half as many
    blocks more if their number divides the rows, since padding would change the rows' sharding."""
    if not is_known(rows):
        return max(1, min(most, OF_ANY_ROWS))
    fewest = max(1, -(-rows // max(1, most)))
    dividing = (count for count in range(fewest, fewest * 3 // 2 + 1) if rows % count == 0)
    return max(1, -(-rows // next(dividing, fewest)))


def map_rows(function, arrays, block):
    """Computes a function row by row, a block of rows at a time.

    Gives the results, [N, ...] each, in the order of the rows. `function`: from a tuple of arrays
    of `block` rows, some of which may be padding, to arrays of as many rows.
    """
    rows = arrays[0].shape[0]
    if is_known(rows) and block >= rows:
        return function(arrays)
    return join_rows(jax.lax.map(function, cut_rows(arrays, block)), rows)


def cut_rows(tree, block, filling="constant"):
    """Reshapes leaves [N, ...] to [blocks, block, ...]; pads some blocks with zeros, or by "edge"
    with the last row, where zeros would not be a valid row."""

    def cut(x):
        count = -(-x.shape[0] // block)
        padding = ((0, count * block - x.shape[0]), *[(0, 0)] * (x.ndim - 1))
        whole = is_known(count) and not padding[0][1]
        padded = x if whole else jnp.pad(x, padding, mode=filling)
        return jnp.swapaxes(padded.reshape(block, count, *x.shape[1:]), 0, 1)

    return jax.tree.map(cut, tree)


def join_rows(tree, rows: int):
    """Reshapes leaves [blocks, block, ...] to [N, ...]: the inverse of `cut_rows`."""
    return jax.tree.map(
        lambda x: jnp.swapaxes(x, 0, 1).reshape(x.shape[0] * x.shape[1], *x.shape[2:])[:rows],
        tree,
    )


class SortedRows(NamedTuple):
    """Blocks of rows sorted by a key, so that the rows of a block have similar keys.

    Each run of adjacent rows is sorted separately, and every block has the same number of rows of
    each run: no row leaves its device where each run lies on one.
    """

    # int [runs, blocks * size], the rows of each run in order; the last row may be repeated to fill
    # the last block
    order: jax.Array
    rows: int
    size: int

    @classmethod
    def from_keys(cls, keys, runs: int, size: int) -> "SortedRows":
        order = jnp.argsort(keys.reshape(runs, -1), axis=1)
        size = at_most(size, order.shape[1])
        padding = -(-order.shape[1] // size) * size - order.shape[1]
        return cls(jnp.pad(order, ((0, 0), (0, padding)), mode="edge"), keys.shape[0], size)

    def cut(self, tree):
        """Rearranges leaves [N, ...] to sorted blocks [blocks, runs * size, ...]."""
        runs, length = self.order.shape

        def of_leaf(x):
            x = x.reshape(runs, -1, *x.shape[1:])
            x = jax.vmap(lambda rows, order: rows[order])(x, self.order)
            x = x.reshape(runs, length // self.size, self.size, *x.shape[2:])
            return jnp.swapaxes(x, 0, 1).reshape(-1, runs * self.size, *x.shape[3:])

        return jax.tree.map(of_leaf, tree)

    def distinct(self):
        """Whether each row of the sorted blocks is its first copy, bool [blocks, runs * size]."""
        runs, length = self.order.shape
        first = (jnp.arange(length) < self.rows // runs).reshape(-1, 1, self.size)
        return jnp.broadcast_to(first, (first.shape[0], runs, self.size)).reshape(
            -1, runs * self.size
        )

    def joined(self, x):
        """Rearranges sorted blocks to rows in their order: the inverse of `cut`."""
        runs, length = self.order.shape
        x = x.reshape(-1, runs, self.size, *x.shape[2:])
        x = jnp.swapaxes(x, 0, 1).reshape(runs, length, *x.shape[3:])

        def of_run(rows, order):
            return rows[jnp.zeros_like(order).at[order].set(jnp.arange(order.shape[0]))]

        x = jax.vmap(of_run)(x, self.order[:, : self.rows // runs])
        return x.reshape(self.rows, *x.shape[2:])


# Rows of a block are a multiple of this where they do not divide a table anyway.
ALIGNED = 16


class RowBlocks(NamedTuple):
    """Blocks of a table's rows that a loop reads or writes, one at a time.

    If their number divides the rows, blocks are strides, unless adjacent rows are asked for.
    Otherwise they are runs of adjacent rows, and the last block is shifted back to end with the
    table: its first rows are also in the block before, and must be masked, or they would count
    twice.
    """

    rows: int
    blocks: int
    size: int
    strided: bool

    @classmethod
    def from_size(cls, rows: int, most: int, adjacent=False) -> "RowBlocks":
        """Cuts N rows into blocks of `most` rows, or into a few more blocks that divide N."""
        size = even_block(rows, most)
        count = -(-rows // size)
        divided = rows % count == 0
        # With `most` rows a block, the last one would compute many rows again.
        size = size if divided else min(-(-size // ALIGNED) * ALIGNED, most, rows)
        return cls(rows, count, size, divided and not adjacent)

    @property
    def overlapping(self) -> bool:
        return self.blocks * self.size != self.rows

    def numbers(self) -> jax.Array:
        return jnp.arange(self.blocks)

    def row_numbers(self, number) -> jax.Array:
        """Returns the numbers of the rows of a block, int32 [size]."""
        if self.strided:
            return number + self.blocks * jnp.arange(self.size)
        return self._start(number) + jnp.arange(self.size)

    def masked(self, number, array, value):
        """Replaces the entries of array [..., size] at rows that an earlier block has."""
        if not self.overlapping:
            return array
        new = self.row_numbers(number) >= number * self.size
        return jnp.where(jnp.broadcast_to(new, array.shape), array, value)

    def take(self, number, array):
        """Returns the rows of a block, [size, ...]."""
        if self.strided:
            return jax.lax.dynamic_index_in_dim(self._strides(array), number, 1, keepdims=False)
        return jax.lax.dynamic_slice_in_dim(array, self._start(number), self.size)

    def take_narrow(self, number, array):
        """Returns the rows of a block of a table, which may be of 16-bit numbers."""
        return from_bits(self.take(number, bits(array)), array)

    def put(self, number, array, rows):
        """Replaces the rows of a block, except those that an earlier block has."""
        if self.strided:
            strides = self._strides(array)
            strides = jax.lax.dynamic_update_index_in_dim(strides, rows, number, 1)
            return strides.reshape(array.shape)
        if self.overlapping:
            columns = (1,) * (rows.ndim - 1)
            new = (self.row_numbers(number) >= number * self.size).reshape(-1, *columns)
            rows = jnp.where(jnp.broadcast_to(new, rows.shape), rows, self.take(number, array))
        return jax.lax.dynamic_update_slice_in_dim(array, rows, self._start(number), 0)

    def add(self, number, array, rows):
        """Adds to the rows of a block; `rows` are 0 where an earlier block has them."""
        return self.put(number, array, self.take(number, array) + rows.astype(array.dtype))

    def _start(self, number):
        return jnp.minimum(number * self.size, self.rows - self.size)

    def _strides(self, array):
        return array.reshape(self.size, self.blocks, *array.shape[1:])


def bits(array):
    """Returns the bits of 16-bit numbers as integers, and other arrays as they are.

    XLA for CPUs converts a whole table of bfloat16 to float32 to read or write some of its rows.
    """
    narrow = jnp.issubdtype(array.dtype, jnp.floating) and array.dtype.itemsize == 2
    return jax.lax.bitcast_convert_type(array, jnp.uint16) if narrow else array


def from_bits(array, like):
    """Returns the numbers, of the type of `like`, whose bits are given."""
    return jax.lax.bitcast_convert_type(array, like.dtype)


# ---- functions of spellings at a cost by their own lengths, not by the length of the longest
# The shapes of a compiled program are fixed, so a batch of spellings [N, L] is as wide as the
# longest word can be, and most of it is padding. `map_by_length` sorts the spellings, longest
# first, takes them in blocks, and computes each block in the narrowest of a few widths that holds
# it; a block without any spelling is not computed at all. The widths grow by half, so that less
# than a third of the work is padding.

# Spellings computed together: enough for efficient products, few enough that lengths are alike.
BLOCK = 128
NARROWEST = 4


def widths(longest: int, least: int = 1) -> list[int]:
    """Lists the widths to which letters are cut: 4, 6, 9, 13, 19 ... and `longest`."""
    narrower, width = [], max(NARROWEST, least)
    while width <= 0.8 * longest:
        narrower.append(width)
        width += width // 2
    return [*narrower, longest]


class CustomGradient(NamedTuple):
    """A function of spellings with a gradient of its own."""

    # (params, letters [n, l], lengths [n], *others [n, ...]) -> (result [n, ...], kept), a pytree
    # whose shapes are the same for every l
    forward: Callable
    # (params, letters, lengths, others, kept, cotangent [n, ...]) -> (gradient of params, gradient
    # of the tuple others)
    backward: Callable


def recomputed(function) -> CustomGradient:
    """Gives a function of spellings a backward pass that computes the function once more."""

    def forward(*arguments):
        return function(*arguments), ()

    def backward(params, letters, lengths, others, kept, cotangent):
        def of_block(params, others):
            return function(params, letters, lengths, *others)

        return jax.vjp(of_block, params, others)[1](cotangent)

    return CustomGradient(forward, backward)


def map_by_length(function, params, letters, lengths, others=(), *, least=1, count=None, rows=1):
    """Computes function(params, letters, lengths, *others) for N spellings, in blocks by length.

    Gives [N, ...], differentiable backwards in params and others. `function`: (params, letters [n,
    l], lengths [n], *others [n, ...]) -> [n, ...], row by row, the same for every l >= lengths; or
    a CustomGradient. Of all but the first `count` spellings, the results are 0.
    """
    params, letters, lengths, others = vary_together((params, letters, lengths, others))
    number, longest = letters.shape
    if count is not None:
        lengths = jnp.where(jnp.arange(number) < count, lengths, 0)
    runs, block = sharded_functions.shares(rows, BLOCK, (params, lengths, others))
    order = SortedRows.from_keys(-lengths, runs, block)
    letters, lengths, others = order.cut((letters, lengths, tuple(map(jnp.asarray, others))))
    if not isinstance(function, CustomGradient):
        function = recomputed(function)
    cuts = tuple(widths(longest, least))
    results = _of_blocks(function, cuts, params, letters, lengths, others)
    # The last block that is computed may have rows beyond `count`.
    asked = (lengths > 0).reshape(*lengths.shape, *(1,) * (results.ndim - 2))
    return order.joined(jnp.where(asked, results, 0))


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _of_blocks(function, cuts, params, letters, lengths, others):
    """Computes [m, n, ...] of blocks: letters [m, n, L], lengths [m, n], others [m, n, ...]; 0 of
    those without a spelling, which are the last and not computed."""
    return _forward(function, cuts, params, letters, lengths, others)[0]


def _forward(function, cuts, params, letters, lengths, others):
    blocks = letters, lengths, *others
    shapes = jax.eval_shape(function.forward, params, *_at(0, blocks))

    def compute(block, results):
        of_block = cut_by_length(cuts, function.forward, params, *_at(block, blocks))
        return jax.tree.map(lambda x, new: x.at[block].set(new), results, of_block)

    zeros = jax.tree.map(
        lambda x: sharded_functions.zeros((letters.shape[0], *x.shape), x.dtype, letters), shapes
    )
    results, kept = jax.lax.fori_loop(0, _filled(lengths), compute, zeros)
    return results, (params, letters, lengths, others, kept)


def _backward(function, cuts, residuals, cotangents):
    """Computes the gradients; autodiff would also add gradients of params from empty blocks."""
    params, *blocks = residuals

    def add(block, sums):
        of_params, of_others = sums
        of_block = _at(block, (*blocks, cotangents))
        more, new = cut_by_length(cuts, function.backward, params, *of_block)
        of_others = jax.tree.map(lambda x, new: x.at[block].set(new), of_others, new)
        return jax.tree.map(jnp.add, of_params, more), of_others

    _, lengths, others, _ = blocks
    zeros = jax.tree.map(lambda x: jnp.zeros_like(x, accumulator(x)), params)
    zeros = zeros, jax.tree.map(jnp.zeros_like, others)
    of_params, of_others = jax.lax.fori_loop(0, _filled(lengths), add, zeros)
    of_params = jax.tree.map(lambda total, x: total.astype(x.dtype), of_params, params)
    return of_params, None, None, of_others


_of_blocks.defvjp(_forward, _backward)


def _at(block, blocks):
    return jax.tree.map(lambda x: x[block], blocks)


def _filled(lengths):
    """Counts the blocks, of lengths [m, n], that have a spelling."""
    return (lengths.max(axis=1) > 0).sum()


def cut_by_length(cuts, function, params, letters, lengths, *rest):
    """Calls function with the letters of a block cut to the narrowest width that holds them."""

    def cut(width, params, letters, *rest):
        return function(params, letters[:, :width], *rest)

    chosen = (jnp.asarray(cuts) < lengths.max()).sum()
    branches = [functools.partial(cut, width) for width in cuts]
    return jax.lax.switch(chosen, branches, params, letters, lengths, *rest)
