"""Some rows of arrays at a time, where the results for all of them at once would not fit."""

import jax
import jax.numpy as jnp


def even(rows: int, most: int) -> int:
    """Rows to take at a time, `most` or 1 if that is less: as few blocks, with little padding."""
    return -(-rows // -(-rows // max(1, most)))


def map_rows(function, arrays, block):
    """function((rows of each array)), `block` rows at a time, the results one after the other.

    Args:
      function: of a tuple of arrays of `block` rows, to arrays that have a leading axis: a row a
        row, or any number a block if the last block's padding, rows of zeros, does no harm there.
      arrays: [N, ...] each.
    """
    rows = len(arrays[0])
    if block >= rows:
        return function(arrays)
    results = jax.lax.map(function, of_rows(arrays, block))
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[:rows], results)


def of_rows(tree, block, filling="constant"):
    """Leaves [N, ...] as [blocks, block, ...], the last block filled up.

    Args:
      filling: "constant" for zeros, "edge" for the last row again, where zeros would be no row.
    """

    def cut(x):
        padding = ((0, -x.shape[0] % block), *[(0, 0)] * (x.ndim - 1))
        return jnp.pad(x, padding, mode=filling).reshape(-1, block, *x.shape[1:])

    return jax.tree.map(cut, tree)
