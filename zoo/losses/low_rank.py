"""Low-rank changes of a softmax's table, as LoRA trains them."""

from typing import Any

import jax.numpy as jnp

from zoo.base.arrays import products, row_lookup
from zoo.base.arrays.types import Array
from zoo.losses import value_checks


def add_low_rank(hidden: Array, weights: Array, down: Array, up: Array) -> tuple[Array, Any]:
    """Makes states and weights of the scores (W + B A) h + c, for the functions of a softmax.

    The states are [h, A h], and the weights are W beside B, which no array holds: so the changed
    table is not formed, and W not copied.

    Args:
      hidden: h, [..., D].
      weights: W, [V, D]; `jax.lax.stop_gradient` of it if it is not trained.
      down: A, [R, D], of a low rank R; with the factor that scales B A.
      up: B, [V, R].

    Returns:
      (states [..., D + R], weights [V, D + R]), in place of the first two arguments of
      `softmax_loss`, `weighted_softmax_loss` and the other functions of a softmax.

    Raises:
      ValueError: shapes do not agree.

    Example:
      >>> table, down, up = jnp.zeros((3, 4)), jnp.ones((1, 4)), jnp.array([[0.0], [0.0], [0.25]])
      >>> states, weights = losses.add_low_rank(jnp.ones((1, 4)), table, down, up)
      >>> loss, log_z = losses.softmax_loss(states, weights, jnp.zeros(3), jnp.array([2]))
      >>> print((log_z - loss).round(3))  # the score of word 2
      [1.]

    Source: Hu et al., "LoRA: low-rank adaptation of large language models" (2022), section 4.1.
    """
    value_checks.check_shapes(
        hidden=(hidden, "... D"), weights=(weights, "V D"), down=(down, "R D"), up=(up, "V R")
    )
    states = products.matmul_transposed(hidden, down)
    joined = jnp.concatenate([hidden.astype(states.dtype), states], axis=-1)
    return joined, row_lookup.JoinedColumns((weights, up))
