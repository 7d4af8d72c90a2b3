"""Stacked recurrent layers, the base class of `LSTM`, `GRU` and `Elman`.

With x_t the inputs and h^n_t the state of layer n of N,

    without skip:  layer n reads h^(n-1)_t (layer 1: x_t);   the output is h^N_t
    with skip:     layer n reads (x_t : h^(n-1)_t);          the output is (h^1_t : ... : h^N_t)

With skip, as in Graves (2013), section 2, the input goes to every layer, and every layer's states
to the output, which has N times as many numbers.
"""

import abc
from typing import TYPE_CHECKING, Any, ClassVar

import jax
import jax.numpy as jnp

from zoo.arrays import products, random_keys
from zoo.arrays.types import Carry
from zoo.cores.core import Core
from zoo.errors import check_least
from zoo.networks import dropout
from zoo.networks.rematerialise import in_chunks


class Stacked(Core, abc.ABC):
    """Base class of cores of stacked layers; subclasses define the recurrence of a layer.

    The products x_t W + b of all positions are one matrix product before the recurrence.
    """

    # The number of columns of W and U, in units of D.
    blocks: ClassVar[int]

    if TYPE_CHECKING:  # fields of all
        layers: int
        last_size: int
        skip: bool
        dropout: float
        last_dropout: float | None
        input_dropout: float
        recurrent_dropout: float
        variational: bool
    rematerialise: int

    def __post_init__(self):
        check_least(self, size=1, layers=1, last_size=0, rematerialise=0)
        rates = ["dropout", "input_dropout", "recurrent_dropout"]
        dropout.check_rates(self, *rates, *["last_dropout"] * (self.last_dropout is not None))

    def cells(self, layer: int) -> int:
        """Returns D of a layer: `size`, or `last_size` for the last layer if it is given."""
        return self.last_size or self.size if layer == self.layers - 1 else self.size

    def state_size(self, layer: int) -> int:
        """Returns R, the size of a layer's hidden state."""
        return self.cells(layer)

    @property
    def output_size(self) -> int:
        """R of the last layer, or the sum of all layers' R with `skip`."""
        shown = range(self.layers) if self.skip else [self.layers - 1]
        return sum(map(self.state_size, shown))

    def _weight_shapes(self, layer: int, inputs: int) -> dict[str, tuple[int, ...]]:
        """Returns {name: shape} of a layer's matrices, which start uniform in +-1/sqrt(D)."""
        columns = self.blocks * self.cells(layer)
        return {"input": (inputs, columns), "recurrent": (self.state_size(layer), columns)}

    def _biases(self, layer: int) -> dict[str, jax.Array]:
        """Returns {name: value} of a layer's biases at the start of training."""
        return {"bias": jnp.zeros(self.blocks * self.cells(layer))}

    @abc.abstractmethod
    def _recurrence(self, weights, projections, state, keep):
        """Computes a layer's hidden states and its carry."""

    def init(self, key: jax.Array, input_size: int) -> Any:
        """Draws a tuple of {"input", "recurrent", "bias", ...}, one for each layer.

        See the class of the core.
        """
        params = []
        for layer in range(self.layers):
            scale, inputs = self.cells(layer) ** -0.5, input_size
            if layer:
                inputs = self.state_size(layer - 1) + (input_size if self.skip else 0)
            shapes = self._weight_shapes(layer, inputs)
            of_weights = jax.random.split(jax.random.fold_in(key, layer), len(shapes))
            weights = {
                name: jax.random.uniform(k, shape, minval=-scale, maxval=scale)
                for k, (name, shape) in zip(of_weights, shapes.items(), strict=True)
            }
            params.append({**weights, **self._biases(layer)})
        return tuple(params)

    def initial_carry(self, batch: int) -> Carry:
        """Returns zeros: a hidden state [B, D] for each layer."""
        # No array occurs twice: the carry of a training step is donated.
        return tuple(jnp.zeros((batch, self.cells(layer))) for layer in range(self.layers))

    def _apply(self, params, inputs, carry, reset, key):
        batch, time, _ = inputs.shape
        dtype = inputs.dtype
        keep = jnp.ones((time, batch, 1), dtype)
        if reset is not None:
            keep = 1 - reset.T[:, :, None].astype(dtype)
        inputs = self._drop(jnp.swapaxes(inputs, 0, 1), self.input_dropout, key, 0)
        outputs: list[jax.Array] = []
        new_carry = []
        for layer, (weights, state) in enumerate(zip(params, carry, strict=True)):
            x = outputs[-1] if outputs else inputs
            if outputs and self.skip:
                x = jnp.concatenate([inputs, x], axis=-1)
            given = {**weights, "mask": self._weight_mask(weights["recurrent"], key, layer)}
            hidden, last = in_chunks(self._layer, self.rematerialise, given, (x, keep), state)
            last_layer = layer == self.layers - 1 and self.last_dropout is not None
            rate = self.last_dropout if last_layer else self.dropout
            outputs.append(self._drop(hidden, rate, key, 1 + layer))
            new_carry.append(last)
        hidden = jnp.concatenate(outputs, axis=-1) if self.skip else outputs[-1]
        return jnp.swapaxes(hidden, 0, 1), tuple(new_carry)

    def _layer(self, weights, inputs, state):
        """Computes (hidden [n, B, R], the layer's carry) from inputs (x [n, B, *], keep)."""
        x, keep = inputs
        projections = products.affine(x, weights["input"], weights["bias"])
        return self._recurrence(weights, projections, state, keep)

    def _drop(self, x, rate, key, use):
        """Applies dropout to x [T, B, ...] if a key is given and the rate is not 0."""
        if key is None or not rate:
            return x
        return dropout.drop(x, rate, random_keys.fold_in_rows(key.rows, use), self.variational)

    def _weight_mask(self, recurrent, key, layer):
        """Draws the mask of U if a key is given and the rate is not 0."""
        rate = self.recurrent_dropout
        if key is None or not rate:
            return None
        # Noise words use the batch's key, too: the constant gives another stream.
        of_layer = jax.random.fold_in(key.batch, 0x75736561 + layer)
        return dropout.weight_mask(recurrent, rate, of_layer)
