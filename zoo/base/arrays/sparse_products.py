"""Products with a sparse matrix as sums of gathers, forward and backward.

A matrix is stored as levels of short, padded lists. A list of the first level has up to `width`
entries of one row of the matrix. A row with more entries has several lists, which the next level
sums in the same way, until each row has one list. The transpose has lists of its own, so that the
gradient of the product is a sum of gathers too: the scatter of autodiff is many times slower.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from zoo.base.arrays import sharded_functions

# Entries of a list. Longer lists have more padding, shorter lists more levels: a matrix gets the
# length with which its levels have the fewest slots.
WIDTHS = range(2, 11)
# Lists at a time: with 64 columns their sums fill half a MiB, which stays in a core's cache. Rows
# with more columns are read and written in long runs, and cutting the lists up costs more than it
# saves; a single column is small. On a mesh, each block of lists may be gathered.
LISTS_AT_A_TIME, MOST_CUT_COLUMNS = 2048, 64

Levels = list[dict[str, np.ndarray]]


def _best_width(counts: np.ndarray) -> int:
    """Finds the length of lists with the fewest slots in all levels, from the counts of rows."""

    def slots(width):
        lists = np.maximum(1, -(-counts // width))
        total = lists.sum()
        while lists.max(initial=1) > 1:
            lists = -(-lists // width)
            total += lists.sum()
        return width * int(total)

    return min(WIDTHS, key=slots)


def levels(
    rows: np.ndarray, columns: np.ndarray, values: np.ndarray, height: int, width: int | None = None
) -> Levels:
    """Makes {"columns": int32 [lists, width], "values": float32 [lists, width]} of each level of a
    sparse matrix, padded with the value 0."""
    levels_so_far = []
    if width is None:
        width = _best_width(np.bincount(rows, minlength=height))
    while True:
        if (np.diff(rows) < 0).any():
            order = np.argsort(rows, kind="stable")
            rows, columns, values = rows[order], columns[order], values[order]
        counts = np.bincount(rows, minlength=height)
        lists = np.maximum(1, -(-counts // width))  # an empty row has an empty list
        first_list = np.cumsum(lists) - lists
        in_row = np.arange(len(rows)) - (np.cumsum(counts) - counts)[rows]
        slot = width * first_list[rows] + in_row  # the lists of a row follow one another
        shape = (int(lists.sum()), width)
        level = {"columns": np.zeros(shape, np.int32), "values": np.zeros(shape, np.float32)}
        level["columns"].reshape(-1)[slot], level["values"].reshape(-1)[slot] = columns, values
        levels_so_far.append(level)
        if len(level["columns"]) == height:
            return levels_so_far
        rows = np.repeat(np.arange(height), lists)
        columns, values = np.arange(len(rows)), np.ones(len(rows), np.float32)


def _sum_lists(level, dense):
    """Computes sum_w values[l, w] * dense[columns[l, w]] for each list l, [lists, N]."""

    def sum_block(lists):
        rows, values = lists["columns"], lists["values"].astype(dense.dtype)
        # A loop, not an array with an axis more: the sum is fused with its gathers.
        return sum(
            values[:, w, None] * dense.at[rows[:, w]].get(mode="promise_in_bounds")
            for w in range(width)
        )

    count, width = level["columns"].shape
    if count <= LISTS_AT_A_TIME or not 1 < dense.shape[1] <= MOST_CUT_COLUMNS:
        return sum_block(level)
    blocks = -(-count // LISTS_AT_A_TIME)
    padding = blocks * LISTS_AT_A_TIME - count
    blocked = jax.tree.map(
        lambda x: jnp.pad(x, ((0, padding), (0, 0))).reshape(blocks, LISTS_AT_A_TIME, width), level
    )
    return jax.lax.map(sum_block, blocked).reshape(-1, dense.shape[1])[:count]


@jax.custom_vjp
def product(matrix: Levels, transpose: Levels, dense: jax.Array) -> jax.Array:
    """Computes A X for a sparse matrix A [R, C] and a dense matrix X [C, N]."""
    return functools.reduce(lambda lists, level: _sum_lists(level, lists), matrix, dense)


product.defvjp(
    lambda matrix, transpose, dense: (product(matrix, transpose, dense), (matrix, transpose)),
    lambda levels, cotangent: (None, None, product(*levels[::-1], cotangent)),
)


def product_of_parts(matrix: Levels, dense: jax.Array) -> jax.Array:
    """Computes A X where rows of X lie on several devices of a mesh: where they are more than the
    lists, each device sums its own rows, and sums are sent. Made for a product outside loops."""
    return functools.reduce(lambda lists, level: _sum_parts(level, lists), matrix, dense)


def _sum_parts(level, dense):
    runs = sharded_functions.grid(dense)[1]
    if runs == 1 or dense.shape[0] <= level["columns"].shape[0]:
        return _sum_lists(level, dense)

    def sum_run(run, level, rows):
        columns, is_here = sharded_functions.rows_here(level["columns"], run, rows.shape[0])
        values = jnp.where(is_here, level["values"], 0)
        return _sum_lists({"columns": columns, "values": values}, rows)

    return sharded_functions.over_grid((1, runs), sum_run, level, dense).sum(axis=0)
