"""Rows of a table, looked up so that a trainer can differentiate the rows instead of the table."""

import copy

import jax
import jax.numpy as jnp


def take(table, ids):
    """table[ids], [..., *row], of a table [V, *row] or of what stands in for one."""
    return table.take(ids) if isinstance(table, Watched | Computed) else table[ids]


class Computed:
    """A table that is never formed: its rows are computed when they are looked up."""

    def __init__(self, compute):
        """Takes the function that computes rows.

        Args:
          compute: from ids [...] to rows [..., *row].
        """
        self.take = compute


class Watched:
    """A table that stands in for itself while its gradient is formed, a row a lookup.

    Every lookup gives table[ids] + offset, the offset being zeros that are differentiated in the
    table's stead: what comes back is [lookups, *row], never [V, *row].

    Attributes:
      ids: what was looked up, in order.
    """

    def __init__(self, table, offsets=None):
        """Watches lookups in a table.

        Args:
          table: [V, *row], or what stands for one.
          offsets: the zeros of each lookup to come, in order; None to learn of the lookups.
        """
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
        """The same watcher with rows of another type; lookups in either are noted in one list."""
        other = copy.copy(self)
        other._dtype = jnp.dtype(dtype)
        return other

    def take(self, ids):
        """Looks rows up, and notes which."""
        ids = jnp.asarray(ids)
        self.ids.append(ids)
        rows = jax.lax.stop_gradient(self.table)[ids]
        rows = rows if self._offsets is None else rows + self._offsets[len(self.ids) - 1]
        return rows.astype(self._dtype)
