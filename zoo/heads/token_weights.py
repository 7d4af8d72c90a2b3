"""Tokens with weights, of which those without any, such as padding, may hold anything."""

import jax.numpy as jnp


def weighted_sum(losses, token_weights):
    """sum_n u_n loss_n, a scalar, of losses and token_weights u of one shape.

    A token of weight 0 adds nothing though its loss be infinite, which the product would make NaN.
    """
    return jnp.sum(jnp.where(token_weights == 0, 0, token_weights * losses))


def weighted_rows(slopes, token_weights):
    """Gradients of logits, [N, V], with 0 for tokens of weight 0, whose own may be NaN."""
    return jnp.where(token_weights[:, None] == 0, 0, slopes)
