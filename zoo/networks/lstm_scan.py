"""The recurrence of a long short-term memory, optimised for training speed.

`zoo.cores.LSTM` runs it along words and `zoo.heads.CharLSTM` along letters. The products x W + b of
all positions are given, and the forward pass keeps the gates. The backward scan carries only the
gradients of h and c, and the gradient of U is one matrix product after the scan, where automatic
differentiation would add up T small products.
"""

import jax
import jax.numpy as jnp

from zoo.arrays import products, sharded_functions
from zoo.networks.dropout import drop_weights


def cell(gates, previous_cell):
    """Computes (hidden, cell), [B, D] each."""
    input_gate, forget, candidate, output = gates
    new_cell = forget * previous_cell + input_gate * candidate
    return output * jnp.tanh(new_cell), new_cell


def activated(projection, hidden, recurrent):
    """Computes the four activated gates, [B, D] each; one array of all would be a copy."""
    scores = projection + products.matmul(hidden, recurrent)
    input_gate, forget, candidate, output = jnp.split(scores, 4, axis=-1)
    sigmoid = jax.nn.sigmoid
    return sigmoid(input_gate), sigmoid(forget), jnp.tanh(candidate), sigmoid(output)


def _project(hidden, projection):
    return hidden if projection is None else products.matmul(hidden, projection)


def lstm_reference(projections, recurrent, hidden, cell_state, keep, projection=None):
    """Computes `lstm` by a plain scan, without a mask, as a reference for tests."""

    def step(carry, inputs):
        inputs_product, kept = inputs
        hidden, cell_state = carry[0] * kept, carry[1] * kept
        new_hidden, new_cell = cell(activated(inputs_product, hidden, recurrent), cell_state)
        carry = _project(new_hidden, projection), new_cell
        return carry, carry[0]

    carry, outputs = jax.lax.scan(step, (hidden, cell_state), (projections, keep))
    return outputs, carry


def lstm(projections, recurrent, hidden, cell_state, keep, projection=None, mask=None):
    """Computes a layer's hidden states from its projected inputs.

    Gives (hidden of all positions [T, B, R], (last hidden, last cell)). `keep`: [T, B, 1], 0 where
    the carry is zeroed before the position and 1 elsewhere; gets no gradient.
    """
    arguments = projections, recurrent, hidden, cell_state, keep, projection, mask
    return _lstm(*sharded_functions.alike(arguments))


@jax.custom_vjp
def _lstm(*arguments):
    return _forward(*arguments)[0]


def _forward(projections, recurrent, hidden, cell_state, keep, projection, mask):
    masked = drop_weights(recurrent, mask)

    def step(carry, inputs):
        inputs_product, kept = inputs
        previous_hidden, previous_cell = carry[0] * kept, carry[1] * kept
        gates = activated(inputs_product, previous_hidden, masked)
        new_hidden, new_cell = cell(gates, previous_cell)
        carry = _project(new_hidden, projection), new_cell
        return carry, (*carry, gates)

    carry, (hiddens, cells, gates) = jax.lax.scan(step, (hidden, cell_state), (projections, keep))
    residuals = (recurrent, hidden, cell_state, keep, hiddens, cells, gates, projection, mask)
    return (hiddens, carry), residuals


def _backward(residuals, cotangents):
    recurrent, hidden, cell_state, keep, hiddens, cells, gates, projection, mask = residuals
    hiddens_gradient, (last_hidden_gradient, last_cell_gradient) = cotangents
    previous_cells = jnp.concatenate([cell_state[None], cells[:-1]]) * keep
    times_transpose = products.by_transpose(drop_weights(recurrent, mask))

    def step(carry, inputs):
        hidden_gradient, cell_gradient = carry
        output_gradient, new_cell, previous_cell, gates, kept = inputs
        input_gate, forget, candidate, output = gates
        hidden_gradient += output_gradient
        total = hidden_gradient
        if projection is not None:
            hidden_gradient = products.matmul_transposed(hidden_gradient, projection)
        activated = jnp.tanh(new_cell)
        cell_gradient += hidden_gradient * output * (1 - activated * activated)
        z_gradient = jnp.concatenate(
            [
                cell_gradient * candidate * input_gate * (1 - input_gate),
                cell_gradient * previous_cell * forget * (1 - forget),
                cell_gradient * input_gate * (1 - candidate * candidate),
                hidden_gradient * activated * output * (1 - output),
            ],
            axis=-1,
        )
        previous_gradient = times_transpose(z_gradient) * kept
        carry = (previous_gradient, cell_gradient * forget * kept)
        return carry, (z_gradient, None if projection is None else total)

    (hidden_gradient, cell_gradient), (z_gradients, totals) = jax.lax.scan(
        step,
        (last_hidden_gradient, last_cell_gradient),
        (hiddens_gradient, cells, previous_cells, gates, keep),
        reverse=True,
    )
    previous_hiddens = jnp.concatenate([hidden[None], hiddens[:-1]]) * keep
    gradient = products.gradient(previous_hiddens, z_gradients, recurrent)
    projection_gradient = None
    if projection is not None:
        outputs = gates[3] * jnp.tanh(cells)
        projection_gradient = products.gradient(outputs, totals, projection)
    gradients = (z_gradients, drop_weights(gradient, mask), hidden_gradient, cell_gradient)
    return *gradients, None, projection_gradient, None


_lstm.defvjp(_forward, _backward)
