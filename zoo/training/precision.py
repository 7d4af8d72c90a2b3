"""The precision of a training step.

Parameters, their gradients and the optimiser's state are always float32. With "bfloat16" a step
rounds the parameters to bfloat16 before the loss, so that matrix products have bfloat16 factors and
hidden states are bfloat16. Heads accumulate and keep logits, log Z and losses in float32 for any
precision of the hidden states; their biases stay float32. Validation and evaluation are float32.
"""

from typing import Any

import jax
import jax.numpy as jnp

TYPES = ("float32", "bfloat16")
# The part whose vectors, such as biases, are added to float32 logits and stay float32.
_HEAD = "head"


def rounded(params: dict[str, Any], compute: str) -> dict[str, Any]:
    """Rounds parameters to the precision of the loss; gradients pass through to float32.

    Args:
      params: {part: parameters}; a table may be an `arrays.row_lookup.Watched`.
      compute: the precision, one of TYPES.
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
