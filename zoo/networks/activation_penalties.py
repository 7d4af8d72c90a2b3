"""Penalties on hidden states: activation regularisation, and its temporal form.

Merity, McCann and Socher, "Revisiting activation regularization for language RNNs" (2017). With h_t
of D numbers, the penalties of a position are

    activation:  mean over D of h_t^2
    temporal:    mean over D of (h_t - h_(t-1))^2

A step's penalty is the mean over its T positions, of which the first has no temporal one; the
authors' code divides by T - 1 there.
"""

import jax
import jax.numpy as jnp


def activation_penalty(hidden: jax.Array) -> jax.Array:
    """Computes the mean square of each hidden state."""
    return jnp.square(hidden).mean(axis=-1)


def temporal_penalty(hidden: jax.Array, reset: jax.Array | None = None) -> jax.Array:
    """Computes the mean square of each hidden state's difference from the one before it."""
    before = jnp.concatenate([hidden[:, :1], hidden[:, :-1]], axis=1)
    steps = activation_penalty(hidden - before)
    return steps if reset is None else jnp.where(reset, 0, steps)
