"""The recurrence of a simple recurrent network (Elman 1990), optimised for training speed.

As in `zoo.networks.lstm_scan`, the products x W + b of all positions are given, the backward scan
carries only the gradient of h, and the gradient of U is one matrix product after the scan. The
slopes of both activations follow from their values, so that nothing but the hidden states is kept.
"""

import functools

import jax
import jax.numpy as jnp

from zoo.arrays import products

# {name: (the activation, its slope where it has the value y)}.
ACTIVATIONS = {
    "tanh": (jnp.tanh, lambda y: 1 - y * y),
    "sigmoid": (jax.nn.sigmoid, lambda y: y * (1 - y)),
}


def elman_reference(activation, projections, recurrent, hidden, keep):
    """Computes `elman` by a plain scan, as a reference for tests, with the same arguments."""
    function, _ = ACTIVATIONS[activation]

    def step(hidden, inputs):
        projection, kept = inputs
        hidden = function(projection + products.matmul(hidden * kept, recurrent))
        return hidden, hidden

    last, hiddens = jax.lax.scan(step, hidden, (projections, keep))
    return hiddens, last


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def elman(activation, projections, recurrent, hidden, keep):
    """Computes h_t = f(x_t W + b + h_(t-1) U) at all positions.

    Args:
      activation: f, one of ACTIVATIONS.
      projections: x W + b, [T, B, D].
      recurrent: U, [D, D].
      hidden: the carry, [B, D].
      keep: [T, B, 1], 0 where the carry is zeroed before the position and 1 elsewhere; gets no
        gradient.

    Returns:
      (hidden of all positions [T, B, D], last hidden [B, D]).
    """
    return _forward(activation, projections, recurrent, hidden, keep)[0]


def _forward(activation, projections, recurrent, hidden, keep):
    hiddens, last = elman_reference(activation, projections, recurrent, hidden, keep)
    return (hiddens, last), (recurrent, hidden, keep, hiddens)


def _backward(activation, residuals, cotangents):
    recurrent, hidden, keep, hiddens = residuals
    hiddens_gradient, last_gradient = cotangents
    transposed, (_, slope) = recurrent.T, ACTIVATIONS[activation]

    def step(hidden_gradient, inputs):
        output_gradient, hidden, kept = inputs
        z_gradient = (hidden_gradient + output_gradient) * slope(hidden)
        return products.matmul(z_gradient, transposed) * kept, z_gradient

    hidden_gradient, z_gradients = jax.lax.scan(
        step, last_gradient, (hiddens_gradient, hiddens, keep), reverse=True
    )
    previous = jnp.concatenate([hidden[None], hiddens[:-1]]) * keep
    recurrent_gradient = products.gradient(previous, z_gradients, recurrent)
    return z_gradients, recurrent_gradient, hidden_gradient, None


elman.defvjp(_forward, _backward)
