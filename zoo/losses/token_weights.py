"""Tokens with weights, of which those without any, such as padding, may hold anything.

The derivative of sum_n u_n loss_n with respect to u_n is loss_n, also where u_n is 0. Only where a
token of weight 0 has a loss that is no finite number, the derivative is 0: the token is not there.

Derivatives are written out, so that what is computed where nobody asks for those of the weights is
the sum and nothing else.
"""

import jax
import jax.numpy as jnp

from zoo.losses.shapes import check_shapes


@jax.custom_jvp
def without_gradient(token_weights, absent):
    """The weights, from which no gradient comes where tokens are absent, bool [...]."""
    return token_weights


@without_gradient.defjvp
def _without_gradient(primals, tangents):
    token_weights, absent = primals
    return token_weights, jnp.where(absent, 0, tangents[0])


def usable_states(states):
    """Whether each state [..., D] holds numbers that can be computed with, bool [...]."""
    # Beyond the root of the greatest number, the products of a state may be infinite.
    most = jnp.finfo(jnp.promote_types(states.dtype, jnp.float32)).max ** 0.5
    return (jnp.abs(states) <= most).all(axis=-1)


def present_states(states, token_weights):
    """(states [..., D], weights [...]), of which tokens without weight and state have no part.

    A token of weight 0 whose state is not usable has zeros for it, for 0 times NaN is NaN in sums
    over tokens, and no gradient comes from its weight.
    """
    without_state = (token_weights == 0) & ~usable_states(states)
    states = jnp.where(without_state[..., None], 0, states)
    return states, without_gradient(token_weights, without_state)


def absent(losses, token_weights):
    """Tokens of weight 0 whose losses are infinite or NaN, bool [...]."""
    return (token_weights == 0) & ~jnp.isfinite(losses)


def slopes_of_weights(losses, token_weights):
    """The derivatives of weighted_sum with respect to the weights, of their type, [...]."""
    return jnp.where(absent(losses, token_weights), 0, losses).astype(token_weights.dtype)


@jax.custom_jvp
def weighted_sum(losses, token_weights):
    """Computes sum_n u_n loss_n.

    A token of weight 0 adds nothing though its loss be infinite, which the product would make NaN.

    Args:
      losses: [...], nats.
      token_weights: u, [...]; 0 for padding.

    Returns:
      A scalar, nats.

    Raises:
      ValueError: shapes do not agree.

    Example:
      >>> print(losses.weighted_sum(jnp.array([2.0, jnp.inf]), jnp.array([0.5, 0.0])))
      1.0
    """
    check_shapes(losses=(losses, "..."), token_weights=(token_weights, "..."))
    return jnp.sum(jnp.where(token_weights == 0, 0, token_weights * losses))


def _weighted_sum(primals, tangents):
    losses, token_weights = primals
    of_losses, of_weights = tangents
    total = weighted_sum(losses, token_weights)
    tangent = jnp.zeros_like(total)
    if not isinstance(of_losses, jax.custom_derivatives.SymbolicZero):
        tangent = jnp.sum(jnp.where(token_weights == 0, 0, token_weights * of_losses))
    if not isinstance(of_weights, jax.custom_derivatives.SymbolicZero):
        slopes = slopes_of_weights(losses, token_weights)
        tangent += jnp.sum(of_weights * slopes).astype(tangent.dtype)
    return total, tangent


weighted_sum.defjvp(_weighted_sum, symbolic_zeros=True)


def weighted_rows(slopes, token_weights):
    """Gradients of logits, [N, V], with 0 for tokens of weight 0, whose own may be NaN."""
    return jnp.where(token_weights[:, None] == 0, 0, slopes)
