"""The recurrence of a simple recurrent network (Elman 1990), optimised for training speed.

As in `zoo.networks.lstm_scan`, the products x W + b of all positions are given, the backward scan
carries only the gradient of h, and the gradient of U is one matrix product after the scan. The
slopes of both activations follow from their values, so that nothing but the hidden states is kept.
"""

import functools

import jax
import jax.numpy as jnp

from zoo.arrays import products
from zoo.networks.dropout import drop_weights

# {name: (the activation, its slope where it has the value y)}.
ACTIVATIONS = {
    "tanh": (jnp.tanh, lambda y: 1 - y * y),
    "sigmoid": (jax.nn.sigmoid, lambda y: y * (1 - y)),
}


def elman_reference(activation, projections, recurrent, hidden, keep):
    """Computes `elman` by a plain scan, without a mask, as a reference for tests."""
    function, _ = ACTIVATIONS[activation]

    def step(hidden, inputs):
        projection, kept = inputs
        hidden = function(projection + products.matmul(hidden * kept, recurrent))
        return hidden, hidden

    last, hiddens = jax.lax.scan(step, hidden, (projections, keep))
    return hiddens, last


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def elman(activation, projections, recurrent, hidden, keep, mask=None):
    """Computes h_t = f(x_t W + b + h_(t-1) U) at all positions.

    Gives (hidden of all positions [T, B, D], last hidden [B, D]). `keep`: [T, B, 1], 0 where the
    carry is zeroed before the position and 1 elsewhere; gets no gradient.
    """
    return _forward(activation, projections, recurrent, hidden, keep, mask)[0]


def _forward(activation, projections, recurrent, hidden, keep, mask):
    masked = drop_weights(recurrent, mask)
    hiddens, last = elman_reference(activation, projections, masked, hidden, keep)
    return (hiddens, last), (recurrent, hidden, keep, hiddens, mask)


def _backward(activation, residuals, cotangents):
    recurrent, hidden, keep, hiddens, mask = residuals
    hiddens_gradient, last_gradient = cotangents
    _, slope = ACTIVATIONS[activation]
    times_transpose = products.by_transpose(drop_weights(recurrent, mask))

    def step(hidden_gradient, inputs):
        output_gradient, hidden, kept = inputs
        z_gradient = (hidden_gradient + output_gradient) * slope(hidden)
        return times_transpose(z_gradient) * kept, z_gradient

    hidden_gradient, z_gradients = jax.lax.scan(
        step, last_gradient, (hiddens_gradient, hiddens, keep), reverse=True
    )
    previous = jnp.concatenate([hidden[None], hiddens[:-1]]) * keep
    gradient = products.gradient(previous, z_gradients, recurrent)
    return z_gradients, drop_weights(gradient, mask), hidden_gradient, None, None


elman.defvjp(_forward, _backward)
