"""The precision of a training step.

Parameters and the optimiser's state are always float32. With "bfloat16" a step rounds matrices to
bfloat16 before the loss, and with them the other operand of every product: see
`zoo.arrays.products`. Everything between products is float32, so are biases and other vectors. The
gradient of a matrix is summed in float32, rounded to bfloat16, since JAX gives a gradient the type
of what it belongs to, and handed to the optimiser as float32.
Validation and evaluation are float32.
"""

from typing import Any

import jax
import jax.numpy as jnp


def rounded(params: dict[str, Any], compute: str) -> dict[str, Any]:
    """Rounds the matrices among parameters; gradients, rounded as well, come back in float32."""
    if compute == "float32":
        return params

    def of_leaf(leaf):
        matrix = len(leaf.shape) >= 2 and jnp.issubdtype(leaf.dtype, jnp.floating)
        return leaf.astype(compute) if matrix else leaf

    return jax.tree.map(of_leaf, params)
