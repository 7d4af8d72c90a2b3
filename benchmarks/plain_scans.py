"""The recurrences of cores as plain scans, without masks: opponents of speed, and references."""

import jax
import jax.numpy as jnp

from zoo.base.arrays import products


def lstm(projections, recurrent, hidden, cell, keep, projection=None):
    """Computes `zoo.layers.lstm.lstm`."""

    def step(carry, inputs):
        inputs_product, kept = inputs
        hidden, cell = carry[0] * kept, carry[1] * kept
        scores = inputs_product + products.matmul(hidden, recurrent)
        input_gate, forget, candidate, output = jnp.split(scores, 4, axis=-1)
        cell = jax.nn.sigmoid(forget) * cell + jax.nn.sigmoid(input_gate) * jnp.tanh(candidate)
        hidden = jax.nn.sigmoid(output) * jnp.tanh(cell)
        if projection is not None:
            hidden = products.matmul(hidden, projection)
        return (hidden, cell), hidden

    carry, outputs = jax.lax.scan(step, (hidden, cell), (projections, keep))
    return outputs, carry


def gru(projections, recurrent, bias, hidden, keep):
    """Computes `zoo.layers.gru.gru`."""

    def step(hidden, inputs):
        x, kept = inputs
        hidden = hidden * kept
        of_inputs = jnp.split(x, 3, axis=-1)
        of_hidden = jnp.split(products.matmul(hidden, recurrent), 3, axis=-1)
        reset_gate = jax.nn.sigmoid(of_inputs[0] + of_hidden[0])
        update = jax.nn.sigmoid(of_inputs[1] + of_hidden[1])
        candidate = jnp.tanh(of_inputs[2] + reset_gate * (of_hidden[2] + bias[None]))
        hidden = (1 - update) * candidate + update * hidden
        return hidden, hidden

    last, hiddens = jax.lax.scan(step, hidden, (projections, keep))
    return hiddens, last


def elman(activation, projections, recurrent, hidden, keep):
    """Computes `zoo.layers.elman.elman`."""
    function = {"tanh": jnp.tanh, "sigmoid": jax.nn.sigmoid}[activation]

    def step(hidden, inputs):
        x, kept = inputs
        hidden = function(x + products.matmul(hidden * kept, recurrent))
        return hidden, hidden

    last, hiddens = jax.lax.scan(step, hidden, (projections, keep))
    return hiddens, last
