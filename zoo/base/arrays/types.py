"""Types of the contracts of components: trees of arrays, random keys and start values.

The arrays of a tree depend on the component: the docstring of the method that makes a tree lists
them.
"""

from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp

# Trained arrays of a component, {name: array or tree of arrays}; a core may have another tree.
Params: TypeAlias = dict[str, Any]
# Arrays that `tables(lexicon)` gives, handed to every method, never trained.
Tables: TypeAlias = dict[str, Any]
# Arrays that a head computes once for many calls, passed to them as `prepared`; None for none.
Prepared: TypeAlias = Any
# State that is passed from one call along a sequence to the next, every leaf [batch, ...].
Carry: TypeAlias = Any
# Prior knowledge at each position of a sequence, leaves [..., *]; None without such a prior.
Context: TypeAlias = Any


def accumulator(array):
    """Returns the dtype of long sums of an array: bfloat16 stagnates after some 100 additions."""
    return jnp.promote_types(array.dtype, jnp.float32)


def as_wide(hidden, *arrays):
    """Returns states in float64 if a parameter has it, as the sums over blocks of words do."""
    wide = any(jnp.result_type(array) == jnp.float64 for array in arrays)
    return hidden.astype(jnp.float64) if wide else hidden


class Keys(NamedTuple):
    """Random keys of a batch, with results that do not depend on how devices share its batch rows.

    Draws that all batch rows share (noise words of the batch, masks of weights) use `batch`; draws
    for each position (masks of activations) use `rows`.
    """

    batch: jax.Array
    rows: jax.Array  # [B], one key for each batch row, whatever its device

    @classmethod
    def of(cls, key, batch: int) -> "Keys":
        """Splits one key into the keys of a batch; keys of a batch stay as they are."""
        if isinstance(key, Keys):
            return key
        if key.ndim:
            raise ValueError(f"keys of shape {key.shape}: give one key, or Keys(batch, rows)")
        of_batch, of_rows = jax.random.split(key)
        return cls(of_batch, jax.random.split(of_rows, batch))

    def fold_in(self, data: int) -> "Keys":
        """Returns keys for another use of the same batch."""
        return Keys(jax.random.fold_in(self.batch, data), fold_in_rows(self.rows, data))


def fold_in_rows(rows: jax.Array, data: int) -> jax.Array:
    """Returns keys of batch rows for another use."""
    return jax.vmap(lambda key: jax.random.fold_in(key, data))(rows)


def uniform(key: jax.Array, shape: tuple[int, ...], scale) -> jax.Array:
    """Draws start values, uniform in +-scale."""
    return jax.random.uniform(key, shape, minval=-scale, maxval=scale)


# One random key, or the keys of a batch and its rows.
Key: TypeAlias = jax.Array | Keys
