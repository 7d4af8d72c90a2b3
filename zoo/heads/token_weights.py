"""Tokens with weights, of which those without any, such as padding, may hold anything.

The derivative of sum_n u_n loss_n with respect to u_n is loss_n, also where u_n is 0. Only where a
token of weight 0 has a loss that is no finite number, the derivative is 0: the token is not there.
"""

import jax.numpy as jnp


def without_gradient(token_weights, absent):
    """The weights, which are 0 where tokens are absent, with no gradient from there."""
    return jnp.where(absent, 0, token_weights)


def absent(losses, token_weights):
    """Tokens of weight 0 whose losses are infinite or NaN, bool [...]."""
    return (token_weights == 0) & ~jnp.isfinite(losses)


def weighted_sum(losses, token_weights):
    """sum_n u_n loss_n, a scalar, of losses and token_weights u of one shape.

    A token of weight 0 adds nothing though its loss be infinite, which the product would make NaN.
    """
    out = absent(losses, token_weights)
    return jnp.sum(without_gradient(token_weights, out) * jnp.where(out, 0, losses))


def slopes_of_weights(losses, token_weights):
    """The derivatives of weighted_sum with respect to the weights, of their type, [...]."""
    out = absent(losses, token_weights)
    return jnp.where(out, 0, losses).astype(token_weights.dtype)


def weighted_rows(slopes, token_weights):
    """Gradients of logits, [N, V], with 0 for tokens of weight 0, whose own may be NaN."""
    return jnp.where(token_weights[:, None] == 0, 0, slopes)
