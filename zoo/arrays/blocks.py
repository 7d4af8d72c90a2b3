"""Some rows of arrays at a time, where the results for all of them at once would not fit.

Blocks are strides: of n blocks, block j has the rows j, j + n, j + 2 n ... Where the rows are
shared out over devices, a run each, every block then has rows of each device, and all work on it at
once and send nothing; a block of adjacent rows would lie on one of them and be sent to all.
"""

import jax
import jax.numpy as jnp


def even(rows: int, most: int) -> int:
    """Rows to take at a time, `most` or 1 if that is less: as few blocks, with little padding.

    Up to half as many blocks more are taken where their number then divides the rows: rows that are
    padded lie on the devices otherwise than they did.
    """
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
    rows = len(arrays[0])
    if block >= rows:
        return function(arrays)
    return joined(jax.lax.map(function, of_rows(arrays, block)), rows)


def of_rows(tree, block, filling="constant"):
    """Leaves [N, ...] as [blocks, block, ...], the last rows of some blocks filled up.

    Args:
      filling: "constant" for zeros, "edge" for the last row again, where zeros would be no row.
    """

    def cut(x):
        padding = ((0, -x.shape[0] % block), *[(0, 0)] * (x.ndim - 1))
        padded = jnp.pad(x, padding, mode=filling) if padding[0][1] else x
        return jnp.swapaxes(padded.reshape(block, -1, *x.shape[1:]), 0, 1)

    return jax.tree.map(cut, tree)


def joined(tree, rows: int):
    """Leaves [blocks, block, ...] as [N, ...], N = rows: the inverse of `of_rows`."""
    return jax.tree.map(
        lambda x: jnp.swapaxes(x, 0, 1).reshape(-1, *x.shape[2:])[:rows],
        tree,
    )
