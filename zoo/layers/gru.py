"""The recurrence of a gated recurrent unit (Cho et al. 2014), optimised for training speed.

As in `zoo.layers.lstm`, the products x W + b of all positions are given, the forward pass
keeps the gates, the backward scan carries only the gradient of h, and the gradient of U is one
matrix product after the scan.
"""

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp

from zoo.base.arrays import products
from zoo.layers.core import Stacked
from zoo.layers.dropout import drop_weights


@jax.custom_vjp
def gru(projections, recurrent, bias, hidden, keep, mask=None):
    """Computes a layer's hidden states from its projected inputs.

    r, z = sigmoid(x W + b + h U),   n = tanh(x W_n + b_n + r * (h U_n + c))
    h' = (1 - z) * n + z * h

    Gives (hidden of all positions [T, B, D], last hidden [B, D]). `keep`: [T, B, 1], 0 where the
    carry is zeroed before the position and 1 elsewhere; gets no gradient.
    """
    return _forward(projections, recurrent, bias, hidden, keep, mask)[0]


def _forward(projections, recurrent, bias, hidden, keep, mask):
    times_recurrent = products.by_matrix(drop_weights(recurrent, mask), projections.shape[0])

    def step(hidden, inputs):
        projection, keep_position = inputs
        hidden = hidden * keep_position
        input_products = jnp.split(projection, 3, axis=-1)
        hidden_products = jnp.split(times_recurrent(hidden), 3, axis=-1)
        gates = zip(input_products[:2], hidden_products[:2], strict=True)
        reset_gate, update = (jax.nn.sigmoid(x + h) for x, h in gates)
        product = hidden_products[2] + bias[None]
        candidate = jnp.tanh(input_products[2] + reset_gate * product)
        hidden = candidate + update * (hidden - candidate)
        return hidden, (hidden, (reset_gate, update, candidate, product))

    last, (hiddens, gates) = jax.lax.scan(step, hidden, (projections, keep))
    return (hiddens, last), (recurrent, hidden, keep, hiddens, gates, mask)


def _backward(residuals, cotangents):
    """Computes the gradients of `gru`, position by position from the last; U's after the scan."""
    recurrent, hidden, keep, hiddens, gates, mask = residuals
    hiddens_gradient, last_gradient = cotangents
    previous_hiddens = jnp.concatenate([hidden[None], hiddens[:-1]]) * keep
    times_transpose = products.by_transpose(drop_weights(recurrent, mask))

    def step(hidden_gradient, inputs):
        output_gradient, previous, (reset_gate, update, candidate, product), keep_position = inputs
        hidden_gradient += output_gradient
        through = hidden_gradient * (1 - update) * (1 - candidate * candidate)
        gate_gradients = (
            through * product * reset_gate * (1 - reset_gate),
            hidden_gradient * (previous - candidate) * update * (1 - update),
        )
        z_gradient = jnp.concatenate([*gate_gradients, through * reset_gate], axis=-1)
        through_gates = times_transpose(z_gradient)
        hidden_gradient = (through_gates + hidden_gradient * update) * keep_position
        return hidden_gradient, (z_gradient, through)

    hidden_gradient, (z_gradients, through) = jax.lax.scan(
        step, last_gradient, (hiddens_gradient, previous_hiddens, gates, keep), reverse=True
    )
    # The gradient of h U_n + c has the reset gate as a factor, the gradient of x W_n does not.
    size = recurrent.shape[0]
    projections_gradient = jnp.concatenate([z_gradients[..., : 2 * size], through], axis=-1)
    gradient = products.gradient(previous_hiddens, z_gradients, recurrent)
    recurrent_gradient = drop_weights(gradient, mask)
    bias_gradient = z_gradients[..., 2 * size :].sum((0, 1))
    return projections_gradient, recurrent_gradient, bias_gradient, hidden_gradient, None, None


gru.defvjp(_forward, _backward)


@dataclasses.dataclass(frozen=True)
class GRU(Stacked):
    """Stacked layers of gated recurrent units, with the reset gate after the product with U.

        r, z = sigmoid(x W + h U + b),   n = tanh(x W_n + b_n + r * (h U_n + c))
        h' = (1 - z) * n + z * h

    The reset gate r acts after the product h U_n, as in the first version of Cho et al. (2014),
    cuDNN and PyTorch, so that one product with h serves all three blocks. In the paper's third
    version the gate acts before the product: tanh(x W_n + (r * h) U_n + b_n).

    The parameters are a tuple of {"input": [*, 3 D], "recurrent": [D, 3 D], "bias": [3 D],
    "recurrent_bias": c, [D]}, one for each layer; the columns belong to r, z and n. The fields are
    the ones of `Stacked`.

    Example:
      >>> core = cores.GRU(size=3, layers=2, dropout=0.5)
      >>> params = core.init(key, 4)
      >>> hidden, carry = core.apply(params, inputs, core.initial_carry(2), key=key)
      >>> hidden.shape, carry[0].shape
      ((2, 5, 3), (2, 3))
    """

    blocks: ClassVar[int] = 3

    def _shapes_and_biases(self, layer, inputs):
        shapes, biases = super()._shapes_and_biases(layer, inputs)
        return shapes, {**biases, "recurrent_bias": jnp.zeros(self.cells(layer))}

    def _recurrence(self, weights, projections, state, keep):
        recurrent, bias, mask = weights["recurrent"], weights["recurrent_bias"], weights["mask"]
        return gru(projections, recurrent, bias, state, keep, mask)
