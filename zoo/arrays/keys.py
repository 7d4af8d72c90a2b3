"""Random keys of a batch: results must not depend on how its lanes are shared out over devices."""

from typing import NamedTuple

import jax


class Keys(NamedTuple):
    """Random keys of a batch, whose lanes may lie on several devices.

    What all lanes share (noise words drawn once for the batch, masks of weights) comes from
    `batch`; what is drawn anew for each position (masks of activations) comes from `rows`.

    Attributes:
      batch: one key, the same on every device.
      rows: a key a lane, [B], whatever device it is on.
    """

    batch: jax.Array
    rows: jax.Array


def for_batch(key, batch: int) -> Keys:
    """Keys of a batch of `batch` lanes, made from one key; keys are returned as they are."""
    if isinstance(key, Keys):
        return key
    if key.ndim:
        raise ValueError(f"keys of shape {key.shape}: give one key, or Keys(batch, rows)")
    of_batch, of_rows = jax.random.split(key)
    return Keys(of_batch, jax.random.split(of_rows, batch))


def fold_in(keys: Keys, data: int) -> Keys:
    """Keys for another use of the same batch."""
    rows = jax.vmap(lambda key: jax.random.fold_in(key, data))(keys.rows)
    return Keys(jax.random.fold_in(keys.batch, data), rows)
