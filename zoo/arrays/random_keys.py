"""Random keys of a batch, with results that do not depend on how devices share its batch rows."""

from typing import NamedTuple

import jax


class Keys(NamedTuple):
    """Random keys of a batch, whose batch rows may lie on several devices.

    Draws that all batch rows share (noise words of the batch, masks of weights) use `batch`; draws
    for each position (masks of activations) use `rows`.
    """

    batch: jax.Array
    rows: jax.Array  # [B], one key for each batch row, whatever its device


def for_batch(key, batch: int) -> Keys:
    """Splits one key into the keys of a batch."""
    if isinstance(key, Keys):
        return key
    if key.ndim:
        raise ValueError(f"keys of shape {key.shape}: give one key, or Keys(batch, rows)")
    of_batch, of_rows = jax.random.split(key)
    return Keys(of_batch, jax.random.split(of_rows, batch))


def fold_in(keys: Keys, data: int) -> Keys:
    """Returns keys for another use of the same batch."""
    return Keys(jax.random.fold_in(keys.batch, data), fold_in_rows(keys.rows, data))


def fold_in_rows(rows: jax.Array, data: int) -> jax.Array:
    """Returns keys of batch rows for another use."""
    return jax.vmap(lambda key: jax.random.fold_in(key, data))(rows)
