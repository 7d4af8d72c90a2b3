"""Top-k of long rows."""

import jax
import jax.numpy as jnp

# Numbers of a block: few enough that most blocks are skipped, enough that few maxima are compared.
BLOCK = 128


def top_k(array: jax.Array, count: int) -> tuple[jax.Array, jax.Array]:
    """Finds the largest numbers of each row, in falling order, and their columns.

    The results are equal to `jax.lax.top_k`; among equal numbers the first column is taken. The
    function is faster on CPUs where rows are long: the largest numbers are in the `count` blocks of
    a row with the largest maxima.

    Args:
      array: [N, n], without nan.
      count: k; if it is above n, results are padded with -inf.

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
