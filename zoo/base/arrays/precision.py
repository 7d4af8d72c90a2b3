"""Precision of arrays: types narrower than float32, and types of sums."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array


def is_narrow(array: Array) -> bool:
    """Whether an array has a floating-point type of fewer bits than float32."""
    return jnp.issubdtype(array.dtype, jnp.floating) and array.dtype.itemsize < 4


def rounded_as(array: Array, weights: Array) -> Array:
    """Rounds an array to the type of the weights, if that is narrower than float32."""
    return array.astype(weights.dtype) if is_narrow(weights) else array


def accumulator(array: Array) -> np.dtype:
    """Returns the dtype of long sums of an array: bfloat16 stagnates after some 100 additions."""
    return jnp.promote_types(array.dtype, jnp.float32)


def cast_like(tree: Any, like: Any) -> Any:
    """Casts arrays to the types of the arrays in a tree of the same structure."""
    return jax.tree.map(lambda x, y: x.astype(y.dtype), tree, like)


def as_wide(hidden: Array, *arrays: Array) -> Array:
    """Returns states in float64 if a parameter has it, as the sums over blocks of words do."""
    wide = any(jnp.result_type(array) == jnp.float64 for array in arrays)
    return hidden.astype(jnp.float64) if wide else hidden
