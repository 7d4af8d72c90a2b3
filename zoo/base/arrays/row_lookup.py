"""Lookup of table rows that a trainer can differentiate by the rows instead of the table."""

import copy
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from zoo.base.arrays import precision, sharded_functions
from zoo.base.arrays.types import Array


def take(table: Any, ids: Array) -> Array:
    """Looks up table[ids]. Gives [..., *row]."""
    if isinstance(table, Watched | Computed):
        return table.take(ids)
    if isinstance(table, JoinedColumns):
        return table.join([take(part, ids) for part in table.parts])
    return _narrow_rows(table, ids) if precision.is_narrow(table) else jnp.asarray(table)[ids]


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


class JoinedColumns(NamedTuple):
    """The columns of several tables with the same rows, [V, ?] each, as a table that is never
    formed: rows are joined when they are looked up."""

    parts: tuple[Array, ...]

    @property
    def shape(self):
        return self.parts[0].shape[0], sum(part.shape[1] for part in self.parts)

    @property
    def dtype(self):
        return jnp.result_type(*self.parts)

    def join(self, rows: list[Array]) -> Array:
        """Joins the rows of each part, [..., ?], to rows of the table."""
        return jnp.concatenate(rows, axis=-1, dtype=self.dtype)


def split_columns(table: Any, rows: Array) -> list[Array]:
    """Cuts an array with the columns of a table, [..., ?], into one for each of its parts."""
    if not isinstance(table, JoinedColumns):
        return [rows]
    ends = [sum(part.shape[1] for part in table.parts[:end]) for end in range(1, len(table.parts))]
    return jnp.split(rows, ends, axis=-1)


class Computed:
    """A table that is never formed: its rows are computed when they are looked up."""

    def __init__(self, compute):
        self.take = compute


class Watched:
    """A stand-in for a table whose gradient is computed as one row for each lookup.

    Every lookup gives table[ids] + offset. The offset is zeros that are differentiated instead of
    the table: the gradient is [lookups, *row], never [V, *row].
    """

    def __init__(self, table, offsets=None):
        self.table, self._offsets, self.ids = table, offsets, []
        self._dtype = table.dtype

    @property
    def shape(self):
        return self.table.shape

    @property
    def dtype(self):
        return self._dtype

    def astype(self, dtype: Any) -> "Watched":
        """Returns the same table with rows of another dtype; both record lookups in one list."""
        cast = copy.copy(self)
        cast._dtype = jnp.dtype(dtype)
        return cast

    def take(self, ids: Array) -> Array:
        """Looks up rows, and records their ids. Gives [..., *row]."""
        ids = jnp.asarray(ids)
        self.ids.append(ids)
        rows = jax.lax.stop_gradient(self.table)[ids]
        rows = rows if self._offsets is None else rows + self._offsets[len(self.ids) - 1]
        return rows.astype(self._dtype)
