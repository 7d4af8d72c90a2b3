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
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from zoo.base.arrays import row_lookup, sharded_functions
from zoo.base.arrays.precision import accumulator, cast_like
from zoo.base.arrays.sharded_functions import vary_together
from zoo.base.arrays.types import Array

# Rows of a block where the number of rows is symbolic: enough for fast products, without much
# padding where all rows are fewer.
DEFAULT_ROWS = 128


def is_known(rows: int) -> bool:
    """Whether a number of rows is an integer, not the symbol of an exported program."""
    return isinstance(rows, int | np.integer)


def at_most(block: int, rows: int) -> int:
    """Returns the number of rows of a block: `block`, or `rows` if that is known and less."""
    return max(1, min(block, rows)) if is_known(rows) else block


def even_block(rows: int, limit: int) -> int:
    """Chooses the number of rows of a block, for few blocks with little padding: up to half as many
    blocks more if their number divides the rows, since padding would change the rows' sharding."""
    if not is_known(rows):
        return max(1, min(limit, DEFAULT_ROWS))
    fewest = max(1, -(-rows // max(1, limit)))
    divisors = (count for count in range(fewest, fewest * 3 // 2 + 1) if rows % count == 0)
    return max(1, -(-rows // next(divisors, fewest)))


def map_rows(function: Callable, arrays: tuple[Array, ...], block: int) -> Any:
    """Computes a function row by row, a block of rows at a time.

    Gives the results, [N, ...] each, in the order of the rows. `function`: from a tuple of arrays
    of `block` rows, some of which may be padding, to arrays of as many rows.
    """
    rows = arrays[0].shape[0]
    if is_known(rows) and block >= rows:
        return function(arrays)
    return join_rows(jax.lax.map(function, cut_rows(arrays, block)), rows)


def cut_rows(tree: Any, block: int, filling: str = "constant") -> Any:
    """Reshapes leaves [N, ...] to [blocks, block, ...]; pads some blocks with zeros, or by "edge"
    with the last row, where zeros would not be a valid row."""

    def cut(x):
        count = -(-x.shape[0] // block)
        padding = ((0, count * block - x.shape[0]), *[(0, 0)] * (x.ndim - 1))
        is_full = is_known(count) and not padding[0][1]
        padded = x if is_full else jnp.pad(x, padding, mode=filling)
        return jnp.swapaxes(padded.reshape(block, count, *x.shape[1:]), 0, 1)

    return jax.tree.map(cut, tree)


def join_rows(tree: Any, rows: int) -> Any:
    """Reshapes leaves [blocks, block, ...] to [N, ...]: the inverse of `cut_rows`."""
    return jax.tree.map(
        lambda x: jnp.swapaxes(x, 0, 1).reshape(x.shape[0] * x.shape[1], *x.shape[2:])[:rows], tree
    )


class SortedRows(NamedTuple):
    """Blocks of rows sorted by a key, so that the rows of a block have similar keys.

    Each run of adjacent rows is sorted separately, and every block has the same number of rows of
    each run: no row leaves its device where each run lies on one.
    """

    # int [runs, blocks * size], the rows of each run in order; the last row may be repeated to fill
    # the last block
    order: Array
    rows: int
    size: int

    @classmethod
    def from_keys(cls, keys: Array, runs: int, size: int) -> "SortedRows":
        """Sorts rows by their keys [N], in runs, for blocks of at most `size` rows of each run."""
        order = jnp.argsort(keys.reshape(runs, -1), axis=1)
        size = at_most(size, order.shape[1])
        padding = -(-order.shape[1] // size) * size - order.shape[1]
        return cls(jnp.pad(order, ((0, 0), (0, padding)), mode="edge"), keys.shape[0], size)

    def cut(self, tree: Any) -> Any:
        """Rearranges leaves [N, ...] to sorted blocks [blocks, runs * size, ...]."""
        runs, length = self.order.shape

        def cut_leaf(x):
            x = x.reshape(runs, -1, *x.shape[1:])
            x = jax.vmap(lambda rows, order: rows[order])(x, self.order)
            x = x.reshape(runs, length // self.size, self.size, *x.shape[2:])
            return jnp.swapaxes(x, 0, 1).reshape(-1, runs * self.size, *x.shape[3:])

        return jax.tree.map(cut_leaf, tree)

    def is_first_copy(self) -> Array:
        """Whether each row of the sorted blocks is its first copy, bool [blocks, runs * size]."""
        runs, length = self.order.shape
        first = (jnp.arange(length) < self.rows // runs).reshape(-1, 1, self.size)
        copies = jnp.broadcast_to(first, (first.shape[0], runs, self.size))
        return copies.reshape(-1, runs * self.size)

    def join(self, x: Array) -> Array:
        """Rearranges sorted blocks to rows in their order: the inverse of `cut`."""
        runs, length = self.order.shape
        x = x.reshape(-1, runs, self.size, *x.shape[2:])
        x = jnp.swapaxes(x, 0, 1).reshape(runs, length, *x.shape[3:])

        def unsort(rows, order):
            return rows[jnp.zeros_like(order).at[order].set(jnp.arange(order.shape[0]))]

        x = jax.vmap(unsort)(x, self.order[:, : self.rows // runs])
        return x.reshape(self.rows, *x.shape[2:])


# Rows of a block are a multiple of this where they do not divide a table anyway.
ALIGNED = 16


class RowBlocks(NamedTuple):
    """Blocks of a table's rows that a loop reads or writes, one at a time.

    If their number divides the rows, blocks are strides, unless adjacent rows are asked for.
    Otherwise they are runs of adjacent rows, and the last block is shifted back to end with the
    table: its first rows are also in the block before, and must be masked, or they would count
    twice.

    Arguments of methods: the number of a block, which may be traced; the table, or an array with an
    axis of its rows.
    """

    rows: int
    blocks: int
    size: int
    is_strided: bool

    @classmethod
    def from_size(cls, rows: int, limit: int, adjacent: bool = False) -> "RowBlocks":
        """Cuts N rows into blocks of `limit` rows, or into a few more blocks that divide N."""
        size = even_block(rows, limit)
        count = -(-rows // size)
        divided = rows % count == 0
        # With `limit` rows a block, the last one would compute many rows again.
        size = size if divided else min(-(-size // ALIGNED) * ALIGNED, limit, rows)
        return cls(rows, count, size, divided and not adjacent)

    @property
    def overlapping(self) -> bool:
        return self.blocks * self.size != self.rows

    def numbers(self) -> Array:
        return jnp.arange(self.blocks)

    def row_numbers(self, number: int | Array) -> Array:
        """Returns the numbers of the rows of a block, int32 [size]."""
        if self.is_strided:
            return number + self.blocks * jnp.arange(self.size)
        return self._start(number) + jnp.arange(self.size)

    def masked(self, number: int | Array, array: Array, value: float) -> Array:
        """Replaces the entries of array [..., size] at rows that an earlier block has."""
        if not self.overlapping:
            return array
        return jnp.where(jnp.broadcast_to(self._is_first(number), array.shape), array, value)

    def take(self, number: int | Array, array: Array) -> Array:
        """Returns the rows of a block, [size, ...]."""
        if self.is_strided:
            return jax.lax.dynamic_index_in_dim(self._strides(array), number, 1, keepdims=False)
        return jax.lax.dynamic_slice_in_dim(array, self._start(number), self.size)

    def take_narrow(self, number: int | Array, array: Array) -> Array:
        """Returns the rows of a block of a table, which may be of 16-bit numbers or joined."""
        if isinstance(array, row_lookup.JoinedColumns):
            return array.join([self.take_narrow(number, part) for part in array.parts])
        return from_bits(self.take(number, bits(array)), array)

    def find(self, number: int | Array, rows: Array) -> tuple[Array, Array]:
        """Returns (the positions of rows in a block, whether the block is the first with them)."""
        if self.is_strided:
            return rows // self.blocks, rows % self.blocks == number
        positions = rows - self._start(number)
        return positions, (rows >= number * self.size) & (positions < self.size)

    def put(self, number: int | Array, array: Array, rows: Array) -> Array:
        """Replaces the rows of a block, except those that an earlier block has."""
        if self.is_strided:
            strides = self._strides(array)
            strides = jax.lax.dynamic_update_index_in_dim(strides, rows, number, 1)
            return strides.reshape(array.shape)
        if self.overlapping:
            is_first = self._is_first(number).reshape(-1, *(1,) * (rows.ndim - 1))
            rows = jnp.where(jnp.broadcast_to(is_first, rows.shape), rows, self.take(number, array))
        return jax.lax.dynamic_update_slice_in_dim(array, rows, self._start(number), 0)

    def add(self, number: int | Array, array: Array, rows: Array) -> Array:
        """Adds to the rows of a block; `rows` are 0 where an earlier block has them."""
        leaves, structure = jax.tree.flatten(array)
        sums = [
            self.put(number, x, self.take(number, x) + part.astype(x.dtype))
            for x, part in zip(leaves, row_lookup.split_columns(array, rows), strict=True)
        ]
        return jax.tree.unflatten(structure, sums)

    def _is_first(self, number):
        return self.row_numbers(number) >= number * self.size

    def _start(self, number):
        return jnp.minimum(number * self.size, self.rows - self.size)

    def _strides(self, array):
        return array.reshape(self.size, self.blocks, *array.shape[1:])


def bits(array: Array) -> Array:
    """Returns the bits of 16-bit numbers as integers, and other arrays as they are.

    XLA for CPUs converts a whole table of bfloat16 to float32 to read or write some of its rows.
    """
    narrow = jnp.issubdtype(array.dtype, jnp.floating) and array.dtype.itemsize == 2
    return jax.lax.bitcast_convert_type(array, jnp.uint16) if narrow else array


def from_bits(array: Array, like: Array) -> Array:
    """Converts the bits of numbers, as `bits` returns them, to numbers of the type of `like`."""
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


def widths(longest: int, minimum: int = 1) -> list[int]:
    """Lists the widths to which letters are cut: 4, 6, 9, 13, 19 ... and `longest`."""
    narrower, width = [], max(NARROWEST, minimum)
    while width <= 0.8 * longest:
        narrower.append(width)
        width += width // 2
    return [*narrower, longest]


class CustomGradient(NamedTuple):
    """A function of spellings with a gradient of its own."""

    # (params, letters [n, l], lengths [n], *inputs [n, ...]) -> (result [n, ...], residuals), a
    # pytree whose shapes are the same for every l
    forward: Callable
    # (params, letters, lengths, inputs, residuals, cotangent [n, ...]) -> (gradient of params,
    # gradient of the tuple inputs)
    backward: Callable


def with_recomputation(function: Callable) -> CustomGradient:
    """Gives a function of spellings a backward pass that computes the function once more."""

    def forward(*arguments):
        return function(*arguments), ()

    def backward(params, letters, lengths, inputs, residuals, cotangent):
        def block_results(params, inputs):
            return function(params, letters, lengths, *inputs)

        return jax.vjp(block_results, params, inputs)[1](cotangent)

    return CustomGradient(forward, backward)


def map_by_length(
    function, params, letters, lengths, inputs=(), *, min_width=1, count=None, rows=1
) -> Array:
    """Computes function(params, letters, lengths, *inputs) for N spellings, in blocks by length.

    Gives [N, ...], differentiable backwards in params and inputs. `function`: (params, letters [n,
    l], lengths [n], *inputs [n, ...]) -> [n, ...], row by row, the same for every l >= lengths; or
    a CustomGradient. Of all but the first `count` spellings, the results are 0.
    """
    params, letters, lengths, inputs = vary_together((params, letters, lengths, inputs))
    number, longest = letters.shape
    if count is not None:
        lengths = jnp.where(jnp.arange(number) < count, lengths, 0)
    runs, block = sharded_functions.split_rows(rows, BLOCK, (params, lengths, inputs))
    order = SortedRows.from_keys(-lengths, runs, block)
    letters, lengths, inputs = order.cut((letters, lengths, tuple(map(jnp.asarray, inputs))))
    if not isinstance(function, CustomGradient):
        function = with_recomputation(function)
    cuts = tuple(widths(longest, min_width))
    results = _map_blocks(function, cuts, params, letters, lengths, inputs)
    # The last block that is computed may have rows beyond `count`.
    has_spelling = (lengths > 0).reshape(*lengths.shape, *(1,) * (results.ndim - 2))
    return order.join(jnp.where(has_spelling, results, 0))


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _map_blocks(function, widths, *arguments):
    """Computes [m, n, ...] of blocks: letters [m, n, L], lengths [m, n], inputs [m, n, ...]; 0 of
    those without a spelling, which are the last and not computed."""
    return _forward(function, widths, *arguments)[0]


def _forward(function, widths, params, letters, lengths, inputs):
    blocks = letters, lengths, *inputs
    shapes = jax.eval_shape(function.forward, params, *_at(0, blocks))

    def compute(block, results):
        updates = call_narrowest(widths, function.forward, params, *_at(block, blocks))
        return jax.tree.map(lambda x, update: x.at[block].set(update), results, updates)

    zeros = jax.tree.map(
        lambda x: sharded_functions.zeros((letters.shape[0], *x.shape), x.dtype, letters), shapes
    )
    results, residuals = jax.lax.fori_loop(0, _count_filled(lengths), compute, zeros)
    return results, (params, letters, lengths, inputs, residuals)


def _backward(function, widths, residuals, cotangents):
    """Computes the gradients; autodiff would also add gradients of params from empty blocks."""
    params, *blocks = residuals

    def add(block, sums):
        params_sum, input_gradients = sums
        arrays = _at(block, (*blocks, cotangents))
        params_part, updates = call_narrowest(widths, function.backward, params, *arrays)
        input_gradients = jax.tree.map(lambda x, y: x.at[block].set(y), input_gradients, updates)
        return jax.tree.map(jnp.add, params_sum, params_part), input_gradients

    _, lengths, inputs, _ = blocks
    zeros = jax.tree.map(lambda x: jnp.zeros_like(x, accumulator(x)), params)
    zeros = zeros, jax.tree.map(jnp.zeros_like, inputs)
    params_sum, input_gradients = jax.lax.fori_loop(0, _count_filled(lengths), add, zeros)
    return cast_like(params_sum, params), None, None, input_gradients


_map_blocks.defvjp(_forward, _backward)


def _at(block, blocks):
    return jax.tree.map(lambda x: x[block], blocks)


def _count_filled(lengths):
    """Counts the blocks, of lengths [m, n], that have a spelling."""
    return (lengths.max(axis=1) > 0).sum()


def call_narrowest(widths, function, params, letters, lengths, *inputs) -> Any:
    """Calls a function of spellings with the letters cut to the narrowest width that holds them."""

    def call(width, params, letters, *arrays):
        return function(params, letters[:, :width], *arrays)

    choice = (jnp.asarray(widths) < lengths.max()).sum()
    branches = [functools.partial(call, width) for width in widths]
    return jax.lax.switch(choice, branches, params, letters, lengths, *inputs)
