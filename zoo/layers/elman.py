"""The recurrence of a simple recurrent network (Elman 1990), optimised for training speed.

As in `zoo.layers.lstm`, the products x W + b of all positions are given, the backward scan
carries only the gradient of h, and the gradient of U is one matrix product after the scan. The
slopes of both activations follow from their values, so that nothing but the hidden states is kept.
"""

import dataclasses
import functools
from typing import ClassVar

import jax
import jax.numpy as jnp

from zoo.base.arrays import products
from zoo.errors import check_choices
from zoo.layers.core import Stacked
from zoo.layers.dropout import drop_weights

# {name: (the activation, its slope where it has the value y)}.
ACTIVATIONS = {
    "tanh": (jnp.tanh, lambda y: 1 - y * y),
    "sigmoid": (jax.nn.sigmoid, lambda y: y * (1 - y)),
    "relu": (jax.nn.relu, lambda y: (y > 0).astype(y.dtype)),
}


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def elman(activation, projections, recurrent, hidden, keep, mask=None):
    """Computes h_t = f(x_t W + b + h_(t-1) U), (all positions [T, B, D], the last [B, D]); `keep`:
    [T, B, 1], 0 where the carry is zeroed before the position, else 1, without gradient."""
    return _forward(activation, projections, recurrent, hidden, keep, mask)[0]


def _forward(activation, projections, recurrent, hidden, keep, mask):
    times_recurrent = products.by_matrix(drop_weights(recurrent, mask), projections.shape[0])
    function, _ = ACTIVATIONS[activation]

    def step(hidden, inputs):
        projection, keep_position = inputs
        hidden = function(projection + times_recurrent(hidden * keep_position))
        return hidden, hidden

    last, hiddens = jax.lax.scan(step, hidden, (projections, keep))
    return (hiddens, last), (recurrent, hidden, keep, hiddens, mask)


def _backward(activation, residuals, cotangents):
    recurrent, hidden, keep, hiddens, mask = residuals
    hiddens_gradient, last_gradient = cotangents
    _, slope = ACTIVATIONS[activation]
    times_transpose = products.by_transpose(drop_weights(recurrent, mask))

    def step(hidden_gradient, inputs):
        output_gradient, hidden, keep_position = inputs
        z_gradient = (hidden_gradient + output_gradient) * slope(hidden)
        return times_transpose(z_gradient) * keep_position, z_gradient

    hidden_gradient, z_gradients = jax.lax.scan(
        step, last_gradient, (hiddens_gradient, hiddens, keep), reverse=True
    )
    previous = jnp.concatenate([hidden[None], hiddens[:-1]]) * keep
    gradient = products.gradient(previous, z_gradients, recurrent)
    return z_gradients, drop_weights(gradient, mask), hidden_gradient, None, None


elman.defvjp(_forward, _backward)


@dataclasses.dataclass(frozen=True)
class Elman(Stacked):
    """Stacked layers of simple recurrent networks (Elman 1990), h' = f(x W + h U + b).

    The parameters are a tuple of {"input": [*, D], "recurrent": [D, D], "bias": [D]}, one for each
    layer. The further fields are the ones of `Stacked`.

    Attributes:
      activation: f, "tanh", "sigmoid" (the logistic function, as in Sutskever et al.) or "relu".

    Example:
      >>> core = cores.Elman(size=3, layers=2, activation="sigmoid")
      >>> hidden, carry = core.apply(core.init(key, 4), inputs, core.initial_carry(2))
      >>> hidden.shape, bool((hidden[:, -1] == carry[1]).all())
      ((2, 5, 3), True)
    """

    activation: str = "tanh"

    blocks: ClassVar[int] = 1

    def __post_init__(self):
        super().__post_init__()
        check_choices(self, activation=tuple(ACTIVATIONS))

    def _recurrence(self, weights, projections, state, keep):
        recurrent, mask = weights["recurrent"], weights["mask"]
        return elman(self.activation, projections, recurrent, state, keep, mask)
