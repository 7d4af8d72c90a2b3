"""Lookup of table rows that a trainer can differentiate by the rows instead of the table."""

import copy
import math

import jax
import jax.numpy as jnp

from zoo.arrays import products, sharded_functions


def take(table, ids):
    """Looks up table[ids]. Gives [..., *row]."""
    if isinstance(table, Watched | Computed):
        return table.take(ids)
    return _narrow_rows(table, ids) if products.is_narrow(table) else table[ids]


@jax.custom_vjp
def _narrow_rows(table, ids):
    """Looks up table[ids]; the gradients of a row that is looked up often are summed in float32."""
    return table[ids]


def _narrow_rows_backward(residuals, cotangent):
    ids, table = residuals
    total = sharded_functions.zeros(table.shape, jnp.float32, cotangent)
    return total.at[ids].add(cotangent.astype(total.dtype)).astype(table.dtype), None


_narrow_rows.defvjp(
    lambda table, ids: (_narrow_rows(table, ids), (ids, table)), _narrow_rows_backward
)


class Computed:
    """A table that is never formed: its rows are computed when they are looked up."""

    def __init__(self, compute):
        """Makes a table of computed rows."""
        self.take = compute


class Watched:
    """A stand-in for a table whose gradient is computed as one row for each lookup.

    Every lookup gives table[ids] + offset. The offset is zeros that are differentiated instead of
    the table: the gradient is [lookups, *row], never [V, *row].
    """

    def __init__(self, table, offsets=None):
        """Makes the stand-in for a table."""
        self.table, self._offsets, self.ids = table, offsets, []
        self._dtype = table.dtype

    @property
    def shape(self):
        """The shape of the table."""
        return self.table.shape

    @property
    def dtype(self):
        """The dtype of the rows."""
        return self._dtype

    def astype(self, dtype):
        """Returns the same table with rows of another dtype; both record lookups in one list."""
        other = copy.copy(self)
        other._dtype = jnp.dtype(dtype)
        return other

    def take(self, ids):
        """Looks up rows, and records their ids. Gives [..., *row]."""
        ids = jnp.asarray(ids)
        self.ids.append(ids)
        rows = jax.lax.stop_gradient(self.table)[ids]
        rows = rows if self._offsets is None else rows + self._offsets[len(self.ids) - 1]
        return rows.astype(self._dtype)


# ----------------------------------------------------------- top-k and argmax of long rows

# Numbers of a block at least; where blocks would be smaller, rows are taken whole.
LEAST = 8


def top_k(array: jax.Array, count: int) -> tuple[jax.Array, jax.Array]:
    """Finds the largest numbers of each row, in falling order, and their columns.

    The results are equal to `jax.lax.top_k`; among equal numbers the first column is taken. The
    function is faster on CPUs where rows are long: the largest numbers are in the `count` blocks of
    a row with the largest maxima.

    Gives (numbers [N, count], columns int32 [N, count]).
    """
    rows, size = array.shape
    block = block_size(size, count)
    if block < LEAST:
        return _of_rows(_padded(array, max(0, count - size)), count)
    blocked = _padded(array, -size % block).reshape(rows, -1, block)
    _, chosen = _of_rows(blocked.max(axis=-1), count)
    chosen = jnp.sort(chosen, axis=-1)  # so that of equals the first still comes first
    candidates = blocked[jnp.arange(rows)[:, None], chosen].reshape(rows, count * block)
    numbers, columns = _of_rows(candidates, count)
    columns = jnp.take_along_axis(chosen, columns // block, axis=1) * block + columns % block
    return numbers, columns


def block_size(size: int, count: int) -> int:
    """Returns the greatest power of two with at least as many blocks as numbers of `count` blocks.

    So about as many maxima are compared as numbers of the blocks that are not skipped.
    """
    return 1 << (math.isqrt(max(1, size // count)).bit_length() - 1)


def argmax(array: jax.Array) -> jax.Array:
    """Finds the column of the largest number of each row, of equal ones the first.

    The result is equal to `jnp.argmax`. On CPUs, where XLA compares one pair of number and column
    at a time, the function is faster: it finds the largest number, then its first column.
    """

    def by_maximum(array):
        # Behind a barrier: each of the two reductions would compute the array once more.
        array = jax.lax.optimization_barrier(array)
        below = array < array.max(axis=-1, keepdims=True)
        columns = jax.lax.broadcasted_iota(jnp.int32, array.shape, array.ndim - 1)
        return jnp.where(below, array.shape[-1], columns).min(axis=-1)

    def by_pairs(array):
        return jnp.argmax(array, axis=-1).astype(jnp.int32)

    return jax.lax.platform_dependent(array, cpu=by_maximum, default=by_pairs)


def _padded(array, count):
    return jnp.pad(array, ((0, 0), (0, count)), constant_values=-jnp.inf)


def _of_rows(array, count):
    # Behind a barrier: where slices of these reach XLA's top-k on CPUs, it sorts the rows instead.
    numbers, columns = jax.lax.optimization_barrier(jax.lax.top_k(array, count))
    return numbers, columns.astype(jnp.int32)
