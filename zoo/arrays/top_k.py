"""The largest numbers of long rows."""

import jax
import jax.numpy as jnp

# Numbers of a block: few enough that most blocks are left out, enough that few are compared.
BLOCK = 128


def top_k(array: jax.Array, count: int) -> tuple[jax.Array, jax.Array]:
    """The largest numbers of each row, falling, and their columns; of equals the first.

    As `jax.lax.top_k`, to the column; sooner on CPUs where rows are long: the numbers are among
    those `count` blocks of a row whose largest are the largest.

    Args:
      array: [N, n], without nan.
      count: perhaps above n, then -inf comes after them.

    Returns:
      (numbers [N, count], columns int32 [N, count]).
    """
    rows, size = array.shape
    if size < 4 * count * BLOCK:
        return _of_rows(_padded(array, max(0, count - size)), count)
    blocked = _padded(array, -size % BLOCK).reshape(rows, -1, BLOCK)
    _, chosen = _of_rows(blocked.max(axis=-1), count)
    chosen = jnp.sort(chosen, axis=-1)  # so that of equals the first still comes first
    candidates = blocked[jnp.arange(rows)[:, None], chosen].reshape(rows, count * BLOCK)
    numbers, columns = _of_rows(candidates, count)
    columns = jnp.take_along_axis(chosen, columns // BLOCK, axis=1) * BLOCK + columns % BLOCK
    return numbers, columns


def _padded(array, count):
    return jnp.pad(array, ((0, 0), (0, count)), constant_values=-jnp.inf)


def _of_rows(array, count):
    # Behind a barrier: where slices of these reach XLA's top-k on CPUs, it sorts the rows instead.
    numbers, columns = jax.lax.optimization_barrier(jax.lax.top_k(array, count))
    return numbers, columns.astype(jnp.int32)
