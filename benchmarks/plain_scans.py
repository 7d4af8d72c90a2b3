"""The recurrences of cores as plain scans, without masks: opponents of speed, and references."""

import jax
import jax.numpy as jnp

from zoo.base.arrays import products


def lstm(projections, recurrent, hidden, cell, keep, projection=None):
    """Computes `zoo.layers.lstm.lstm`."""

    def step(carry, inputs):
        inputs_product, mask = inputs
        hidden, cell = carry[0] * mask, carry[1] * mask
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
        x, mask = inputs
        hidden = hidden * mask
        input_scores = jnp.split(x, 3, axis=-1)
        hidden_scores = jnp.split(products.matmul(hidden, recurrent), 3, axis=-1)
        reset_gate = jax.nn.sigmoid(input_scores[0] + hidden_scores[0])
        update = jax.nn.sigmoid(input_scores[1] + hidden_scores[1])
        candidate = jnp.tanh(input_scores[2] + reset_gate * (hidden_scores[2] + bias[None]))
        hidden = (1 - update) * candidate + update * hidden
        return hidden, hidden

    last, hiddens = jax.lax.scan(step, hidden, (projections, keep))
    return hiddens, last


def elman(activation, projections, recurrent, hidden, keep):
    """Computes `zoo.layers.elman.elman`."""
    function = {"tanh": jnp.tanh, "sigmoid": jax.nn.sigmoid}[activation]

    def step(hidden, inputs):
        x, mask = inputs
        hidden = function(x + products.matmul(hidden * mask, recurrent))
        return hidden, hidden

    last, hiddens = jax.lax.scan(step, hidden, (projections, keep))
    return hiddens, last
