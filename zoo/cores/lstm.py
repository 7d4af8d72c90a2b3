"""The long short-term memory, made for training speed.

Hochreiter and Schmidhuber (1997) with forget gates (Gers et al. 2000), dropout on the connections
that are not recurrent (Zaremba et al. 2014), optionally with one mask a sequence (Gal and
Ghahramani 2016), and on the recurrent weights (Merity et al. 2018). For layer input x_t, previous
hidden h and cell c:

    i, f, o = sigmoid(z), g = tanh(z),   z = x_t W + h U + b     (four blocks of z)
    c_t = f * c + i * g,   h_t = o * tanh(c_t)

or, with a projection (Sak et al. 2014), h_t = (o * tanh(c_t)) P of fewer numbers than there are
cells: what the recurrence, the next layer and the head see.

The products x_t W of all positions are one product before the scan. The backward pass is written by
hand: the forward pass keeps the gates, the backward scan carries only the gradients of h and c, and
the gradient of U is one product after it, where autodiff of a scan would add up T small ones.
"""

import dataclasses

import jax
import jax.numpy as jnp

from zoo import keys
from zoo.cores import dropout
from zoo.cores.core import Core
from zoo.errors import check_least


def cell(gates, previous_cell):
    """(hidden, cell), [B, D] each, of the activated gates (input, forget, candidate, output)."""
    input_gate, forget, candidate, output = gates
    new_cell = forget * previous_cell + input_gate * candidate
    return output * jnp.tanh(new_cell), new_cell


def _activate(projection, hidden, recurrent):
    """The four activated gates, [B, D] each: apart, because putting them together is a copy."""
    input_gate, forget, candidate, output = jnp.split(projection + hidden @ recurrent, 4, axis=-1)
    sigmoid = jax.nn.sigmoid
    return sigmoid(input_gate), sigmoid(forget), jnp.tanh(candidate), sigmoid(output)


def _project(hidden, projection):
    return hidden if projection is None else hidden @ projection


def recurrence_reference(projections, recurrent, hidden, cell_state, keep, projection=None):
    """The plain scan that `recurrence` is tested against: same arguments, same results."""

    def step(carry, inputs):
        inputs_product, kept = inputs
        hidden, cell_state = carry[0] * kept, carry[1] * kept
        new_hidden, new_cell = cell(_activate(inputs_product, hidden, recurrent), cell_state)
        carry = _project(new_hidden, projection), new_cell
        return carry, carry[0]

    carry, outputs = jax.lax.scan(step, (hidden, cell_state), (projections, keep))
    return outputs, carry


@jax.custom_vjp
def recurrence(projections, recurrent, hidden, cell_state, keep, projection=None):
    """The recurrent part of a layer.

    Args:
      projections: x W + b, [T, B, 4 D]; recurrent: U, [R, 4 D], R = D without a projection.
      hidden, cell_state: the carry, [B, R] and [B, D].
      keep: [T, B, 1], 0 where the carry is zeroed before the position and 1 elsewhere; gets no
        gradient.
      projection: P, [D, R], or None.

    Returns:
      (hidden of all positions [T, B, R], (last hidden, last cell)).
    """
    return _forward(projections, recurrent, hidden, cell_state, keep, projection)[0]


def _forward(projections, recurrent, hidden, cell_state, keep, projection):
    def step(carry, inputs):
        inputs_product, kept = inputs
        previous_hidden, previous_cell = carry[0] * kept, carry[1] * kept
        gates = _activate(inputs_product, previous_hidden, recurrent)
        new_hidden, new_cell = cell(gates, previous_cell)
        carry = _project(new_hidden, projection), new_cell
        return carry, (*carry, gates)

    carry, (hiddens, cells, gates) = jax.lax.scan(step, (hidden, cell_state), (projections, keep))
    residuals = (recurrent, hidden, cell_state, keep, hiddens, cells, gates, projection)
    return (hiddens, carry), residuals


def _backward(residuals, cotangents):
    recurrent, hidden, cell_state, keep, hiddens, cells, gates, projection = residuals
    hiddens_gradient, (last_hidden_gradient, last_cell_gradient) = cotangents
    previous_cells = jnp.concatenate([cell_state[None], cells[:-1]]) * keep
    transposed = recurrent.T

    def step(carry, inputs):
        hidden_gradient, cell_gradient = carry
        output_gradient, new_cell, previous_cell, gates, kept = inputs
        input_gate, forget, candidate, output = gates
        hidden_gradient += output_gradient
        total = hidden_gradient
        if projection is not None:
            hidden_gradient = hidden_gradient @ projection.T
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
        carry = (z_gradient @ transposed * kept, cell_gradient * forget * kept)
        return carry, (z_gradient, None if projection is None else total)

    (hidden_gradient, cell_gradient), (z_gradients, totals) = jax.lax.scan(
        step,
        (last_hidden_gradient, last_cell_gradient),
        (hiddens_gradient, cells, previous_cells, gates, keep),
        reverse=True,
    )
    previous_hiddens = jnp.concatenate([hidden[None], hiddens[:-1]]) * keep
    recurrent_gradient = _flat(previous_hiddens).T @ _flat(z_gradients)
    projection_gradient = None
    if projection is not None:
        projection_gradient = _flat(gates[3] * jnp.tanh(cells)).T @ _flat(totals)
    gradients = (z_gradients, recurrent_gradient, hidden_gradient, cell_gradient)
    return *gradients, None, projection_gradient


def _flat(array):
    """[T, B, D] -> [T B, D]: a product that sums over two axes costs far more than over one."""
    return array.reshape(-1, array.shape[-1])


recurrence.defvjp(_forward, _backward)


@dataclasses.dataclass(frozen=True)
class LSTM(Core):
    """Stacked LSTM layers.

    Attributes:
      size: D, cells of each layer. layers: how many.
      projection: R, the size of the hidden states; 0 for one number a cell.
      dropout: rate on every layer's output, the last one's too. input_dropout: on the inputs.
      recurrent_dropout: on the numbers of U, which all positions and lanes of a call miss.
      variational: one mask for all positions of a call instead of one a position.
      forget_bias: where the bias of the forget gate starts.
    """

    size: int = 256
    layers: int = 1
    projection: int = 0
    dropout: float = 0.0
    input_dropout: float = 0.0
    recurrent_dropout: float = 0.0
    variational: bool = False
    forget_bias: float = 1.0

    def __post_init__(self):
        check_least(self, "model.core", size=1, layers=1, projection=0)
        for name in ("dropout", "input_dropout", "recurrent_dropout"):
            dropout.check_rate(getattr(self, name), f"model.core.{name}")

    @property
    def output_size(self):
        """R, the size of a hidden state."""
        return self.projection or self.size

    def init(self, key, input_size):
        """A tuple of {"input": [E or R, 4 D], "recurrent": [R, 4 D], "bias": [4 D]}, a layer each,
        with "projection": [D, R] if there is one.

        Weights start uniform in +-1/sqrt(D); the gates' order is input, forget, candidate, output.
        """
        scale = self.size**-0.5
        params = []
        for layer in range(self.layers):
            rows, columns = self.output_size if layer else input_size, 4 * self.size
            shapes = {"input": (rows, columns), "recurrent": (self.output_size, columns)}
            if self.projection:
                shapes["projection"] = (self.size, self.projection)
            of_weights = jax.random.split(jax.random.fold_in(key, layer), len(shapes))
            weights = {
                name: jax.random.uniform(k, shape, minval=-scale, maxval=scale)
                for k, (name, shape) in zip(of_weights, shapes.items(), strict=True)
            }
            bias = jnp.zeros((4, self.size)).at[1].set(self.forget_bias).reshape(-1)
            params.append({**weights, "bias": bias})
        return tuple(params)

    def initial_carry(self, batch):
        """Zeros: for each layer (hidden [B, R], cell [B, D])."""
        # An array each, never one array twice: the carry of a training step is donated.
        return tuple(
            (jnp.zeros((batch, self.output_size)), jnp.zeros((batch, self.size)))
            for _ in range(self.layers)
        )

    def apply(self, params, inputs, carry, *, reset=None, key=None):
        """inputs [B, T, E] -> (hidden [B, T, R], carry); see Core."""
        batch, time, _ = inputs.shape
        dtype = inputs.dtype
        keep = jnp.ones((time, batch, 1), dtype)
        if reset is not None:
            keep = 1 - reset.T[:, :, None].astype(dtype)
        key = None if key is None else keys.of(key, batch)
        x = self._drop(jnp.swapaxes(inputs, 0, 1), self.input_dropout, key, 0)
        new_carry = []
        for layer, (weights, (hidden, cell_state)) in enumerate(zip(params, carry, strict=True)):
            projections = _flat(x) @ weights["input"] + weights["bias"][None]
            projections = projections.reshape(time, batch, -1)
            x, last = recurrence(
                projections,
                self._drop_weights(weights["recurrent"], key, layer),
                hidden,
                cell_state,
                keep,
                weights.get("projection"),
            )
            x = self._drop(x, self.dropout, key, 1 + layer)
            new_carry.append(last)
        return jnp.swapaxes(x, 0, 1), tuple(new_carry)

    def _drop(self, x, rate, key, place):
        """x [T, B, ...] with dropout, unless there is no key or nothing to drop."""
        if key is None or not rate:
            return x
        time = 1 if self.variational else x.shape[0]
        masks = dropout.masks(dropout.fold_in(key.rows, place), (time, x.shape[-1]), rate, x.dtype)
        return x * masks.swapaxes(0, 1)

    def _drop_weights(self, recurrent, key, layer):
        """U with some of its numbers at 0, unless there is no key or nothing to drop."""
        rate = self.recurrent_dropout
        if key is None or not rate:
            return recurrent
        # Another stream than that of noise words, which the batch's key gives too.
        of_layer = dropout.fold_in(key.batch[None], 0x75736561 + layer)
        return recurrent * dropout.masks(of_layer, recurrent.shape, rate, recurrent.dtype)[0]
