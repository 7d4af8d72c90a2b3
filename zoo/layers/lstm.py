"""The recurrence of a long short-term memory, optimised for training speed.

`zoo.cores.LSTM` runs it along words and `zoo.heads.CharLSTM` along letters. The products x W + b of
all positions are given, and the forward pass keeps the gates. The backward scan carries only the
gradients of h and c, and the gradient of U is one matrix product after the scan, where automatic
differentiation would add up T small products.
"""

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp

from zoo.base.arrays import products
from zoo.base.arrays.types import Carry, Params, Shape
from zoo.errors import check_least
from zoo.layers.core import Stacked
from zoo.layers.dropout import drop_weights


def cell_step(scores, cell, peepholes=None):
    """Computes a position's hidden state and cell, [B, D] each, and its four gates from their
    scores x W + b + h U, [B, 4 D]. The gates are a tuple: one array of all would be a copy."""
    scores = jnp.split(scores, 4, axis=-1)
    if peepholes is not None:
        scores[0] += peepholes[0] * cell
        scores[1] += peepholes[1] * cell
    input_gate, forget = jax.nn.sigmoid(scores[0]), jax.nn.sigmoid(scores[1])
    candidate = jnp.tanh(scores[2])
    new_cell = forget * cell + input_gate * candidate
    if peepholes is not None:
        scores[3] += peepholes[2] * new_cell
    output = jax.nn.sigmoid(scores[3])
    return output * jnp.tanh(new_cell), new_cell, (input_gate, forget, candidate, output)


@jax.custom_vjp
def lstm(
    projections, recurrent, hidden, cell_state, keep, projection=None, mask=None, peepholes=None
):
    """Computes a layer's (hidden of all positions [T, B, R], (last hidden, last cell)) from its
    projected inputs; `keep`: [T, B, 1], 0 where the carry is zeroed before the position, else 1,
    without gradient."""
    arguments = projections, recurrent, hidden, cell_state, keep, projection, mask, peepholes
    return _forward(*arguments)[0]


def _forward(projections, recurrent, hidden, cell_state, keep, projection, mask, peepholes):
    if peepholes is not None:
        peepholes = peepholes[:, None]  # of three gates, for all batch rows
    times_recurrent = products.by_matrix(drop_weights(recurrent, mask), projections.shape[0])
    if projection is not None:
        times_projection = products.by_matrix(projection, projections.shape[0])

    def step(carry, inputs):
        inputs_product, keep_position = inputs
        previous_hidden, previous_cell = carry[0] * keep_position, carry[1] * keep_position
        scores = inputs_product + times_recurrent(previous_hidden)
        new_hidden, new_cell, gates = cell_step(scores, previous_cell, peepholes)
        if projection is not None:
            new_hidden = times_projection(new_hidden)
        carry = new_hidden, new_cell
        return carry, (*carry, gates)

    carry, (hiddens, cells, gates) = jax.lax.scan(step, (hidden, cell_state), (projections, keep))
    states = hidden, cell_state, keep, hiddens, cells, gates
    return (hiddens, carry), (recurrent, *states, projection, mask, peepholes)


def _backward(residuals, cotangents):
    """Computes the gradients of `lstm`, position by position from the last; U's after the scan."""
    recurrent, *states, projection, mask, peepholes = residuals
    hidden, cell_state, keep, hiddens, cells, gates = states
    hiddens_gradient, (last_hidden_gradient, last_cell_gradient) = cotangents
    previous_cells = jnp.concatenate([cell_state[None], cells[:-1]]) * keep
    times_transpose = products.by_transpose(drop_weights(recurrent, mask))

    def step(carry, inputs):
        """Carries the gradients of h and c to the position before."""
        hidden_gradient, cell_gradient = carry
        output_gradient, new_cell, previous_cell, gates, keep_position = inputs
        input_gate, forget, candidate, output = gates
        hidden_gradient += output_gradient
        total = hidden_gradient
        if projection is not None:
            hidden_gradient = products.matmul_transposed(hidden_gradient, projection)
        activated = jnp.tanh(new_cell)
        cell_gradient += hidden_gradient * output * (1 - activated * activated)
        to_output = hidden_gradient * activated * output * (1 - output)
        if peepholes is not None:
            cell_gradient += to_output * peepholes[2]
        to_input = cell_gradient * candidate * input_gate * (1 - input_gate)
        to_forget = cell_gradient * previous_cell * forget * (1 - forget)
        to_candidate = cell_gradient * input_gate * (1 - candidate * candidate)
        z_gradient = jnp.concatenate([to_input, to_forget, to_candidate, to_output], axis=-1)
        previous_gradient = times_transpose(z_gradient) * keep_position
        to_previous = cell_gradient * forget
        if peepholes is not None:
            to_previous += to_input * peepholes[0] + to_forget * peepholes[1]
        carry = (previous_gradient, to_previous * keep_position)
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
        projection_gradient = products.gradient(gates[3] * jnp.tanh(cells), totals, projection)
    gradients = (z_gradients, drop_weights(gradient, mask), hidden_gradient, cell_gradient)
    peephole_gradient = None
    if peepholes is not None:
        to_input, to_forget, _, to_output = jnp.split(z_gradients, 4, axis=-1)
        to_peepholes = to_input * previous_cells, to_forget * previous_cells, to_output * cells
        sums = [to_peephole.sum((0, 1)) for to_peephole in to_peepholes]
        peephole_gradient = jnp.stack(sums).astype(peepholes.dtype)
    return *gradients, None, projection_gradient, None, peephole_gradient


lstm.defvjp(_forward, _backward)


@dataclasses.dataclass(frozen=True)
class LSTM(Stacked):
    """Stacked layers of long short-term memory (Hochreiter and Schmidhuber 1997).

        i, f, o = sigmoid(z), g = tanh(z),   z = x W + h U + b
        c' = f * c + i * g,   h' = o * tanh(c')

    With forget gates (Gers et al. 2000), dropout on the connections that are not recurrent
    (Zaremba et al. 2014), optionally with one mask for each sequence (Gal and Ghahramani 2016), and
    on the recurrent weights (Merity et al. 2018). With a projection P (Sak et al. 2014),
    h' = (o * tanh(c')) P has fewer numbers than there are cells; the recurrence, the next layer and
    the head read it. With peepholes p (Gers and Schmidhuber 2000), the gates see the
    cell:

        i = sigmoid(z + p_i * c),   f = sigmoid(z + p_f * c),   o = sigmoid(z + p_o * c')

    The parameters are a tuple of {"input": [*, 4 D], "recurrent": [R, 4 D], "bias": [4 D]}, one for
    each layer, with "projection": [D, R] and "peepholes": [3, D] (of input, forget, output), if
    there are any. The gates' order is input, forget, candidate, output. The further fields are the
    ones of `Stacked`.

    Attributes:
      projection: R, the size of the hidden states; 0 for D, without a projection.
      forget_bias: the initial bias of the forget gate.
      peepholes: whether the gates see the cell, each through a weight.

    Example:
      >>> core = cores.LSTM(size=3, layers=2, skip=True)
      >>> params = core.init(key, 4)
      >>> hidden, carry = core.apply(params, inputs, core.initial_carry(2))
      >>> hidden.shape, carry[1][0].shape  # of both layers; the last hidden state of the second
      ((2, 5, 6), (2, 3))
    """

    projection: int = 0
    forget_bias: float = 1.0
    peepholes: bool = False

    blocks: ClassVar[int] = 4

    def __post_init__(self):
        super().__post_init__()
        check_least(self, projection=0)

    def state_size(self, layer: int) -> int:
        return self.projection or self.cells(layer)

    def _shapes_and_biases(self, layer: int, inputs: int) -> tuple[dict[str, Shape], Params]:
        shapes, _ = super()._shapes_and_biases(layer, inputs)
        if self.projection:
            shapes["projection"] = self.cells(layer), self.projection
        if self.peepholes:
            shapes["peepholes"] = 3, self.cells(layer)
        bias = jnp.zeros((4, self.cells(layer))).at[1].set(self.forget_bias)
        return shapes, {"bias": bias.reshape(-1)}

    def initial_carry(self, batch: int) -> Carry:
        """Returns zeros: for each layer (hidden [B, R], cell [B, D])."""
        # No array occurs twice: the carry of a training step is donated.
        return tuple(
            (jnp.zeros((batch, self.state_size(layer))), jnp.zeros((batch, self.cells(layer))))
            for layer in range(self.layers)
        )

    def _recurrence(self, weights, projections, state, keep):
        hidden, cell = state
        options = (weights.get("projection"), weights["mask"], weights.get("peepholes"))
        return lstm(projections, weights["recurrent"], hidden, cell, keep, *options)
