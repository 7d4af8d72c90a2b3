"""Random keys of batches and of their rows, and draws of start values."""

from typing import NamedTuple

import jax


class SeedKeys(NamedTuple):
    """The random keys of a training."""

    start: jax.Array  # draws the start values
    steps: jax.Array  # into which each step folds its number


def seed_keys(seed: int) -> SeedKeys:
    """Makes the keys of a training from its seed."""
    return SeedKeys(jax.random.key(seed), jax.random.key(seed + 1))


class Keys(NamedTuple):
    """Random keys of a batch, with results that do not depend on how devices share its batch rows.

    Draws that all batch rows share (noise words of the batch, masks of weights) use `batch`; draws
    for each position (masks of activations) use `rows`.
    """

    batch: jax.Array
    rows: jax.Array  # [B], one key for each batch row, whatever its device

    @classmethod
    def from_key(cls, key: "jax.Array | Keys", batch: int) -> "Keys":
        """Splits one key into the keys of a batch; keys of a batch stay as they are."""
        if isinstance(key, Keys):
            return key
        if key.ndim:
            raise ValueError(f"keys of shape {key.shape}: give one key, or Keys(batch, rows)")
        batch_key, rows_key = jax.random.split(key)
        return cls(batch_key, jax.random.split(rows_key, batch))

    def fold_in(self, data: int) -> "Keys":
        """Returns keys for another use of the same batch."""
        return Keys(jax.random.fold_in(self.batch, data), fold_in_rows(self.rows, data))


def fold_in_rows(rows: jax.Array, data: int) -> jax.Array:
    """Returns keys of batch rows for another use."""
    return jax.vmap(lambda key: jax.random.fold_in(key, data))(rows)


def uniform(key: jax.Array, shape: tuple[int, ...], scale: float) -> jax.Array:
    """Draws start values, uniform in +-scale."""
    return jax.random.uniform(key, shape, minval=-scale, maxval=scale)
