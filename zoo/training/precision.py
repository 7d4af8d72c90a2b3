"""The type of the numbers that a training step computes with.

Parameters, their gradients and the optimiser's state are float32 always. With "bfloat16" a step
computes with parameters that are rounded to 8 bits of mantissa: factors of products and hidden
states are bfloat16. Heads add up and keep logits, log Z and losses in float32 whatever the type of
the hidden states is; their biases stay float32. Validation and evaluation know nothing of it.
"""

from typing import Any

import jax
import jax.numpy as jnp

TYPES = ("float32", "bfloat16")
# The part whose vectors, such as biases, are added to what is float32.
_HEAD = "head"


def rounded(params: dict[str, Any], compute: str) -> dict[str, Any]:
    """The parameters as a loss computes with them; gradients go through to float32.

    Args:
      params: {part: parameters}; a table may be an `arrays.rows.Watched`.
      compute: of TYPES.
    """
    if compute == "float32":
        return params

    def of_part(part):
        least = 2 if part == _HEAD else 0

        def of_leaf(leaf):
            return leaf.astype(compute) if len(leaf.shape) >= least and _is_float(leaf) else leaf

        return jax.tree.map(of_leaf, params[part])

    return {part: of_part(part) for part in params}


def _is_float(leaf) -> bool:
    return jnp.issubdtype(leaf.dtype, jnp.floating)
