"""The long short-term memory, made for training speed.

Hochreiter and Schmidhuber (1997) with forget gates (Gers et al. 2000), dropout on the connections
that are not recurrent (Zaremba et al. 2014), optionally with one mask a sequence (Gal and
Ghahramani 2016), and on the recurrent weights (Merity et al. 2018). For layer input x_t, previous
hidden h and cell c:

    i, f, o = sigmoid(z), g = tanh(z),   z = x_t W + h U + b     (four blocks of z)
    c_t = f * c + i * g,   h_t = o * tanh(c_t)

or, with a projection (Sak et al. 2014), h_t = (o * tanh(c_t)) P of fewer numbers than there are
cells: what the recurrence, the next layer and the head see.

The products x_t W of all positions are one product before the scan, whose backward pass is written
by hand: see zoo.networks.recurrence.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from zoo.arrays import keys
from zoo.arrays.types import Carry, Key
from zoo.cores.core import Core
from zoo.errors import check_least
from zoo.networks import dropout
from zoo.networks.recurrence import flat, recurrence


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
    def output_size(self) -> int:
        """R, the size of a hidden state."""
        return self.projection or self.size

    def init(self, key: jax.Array, input_size: int) -> Any:
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

    def initial_carry(self, batch: int) -> Carry:
        """Zeros: for each layer (hidden [B, R], cell [B, D])."""
        # An array each, never one array twice: the carry of a training step is donated.
        return tuple(
            (jnp.zeros((batch, self.output_size)), jnp.zeros((batch, self.size)))
            for _ in range(self.layers)
        )

    def apply(
        self,
        params: Any,
        inputs: jax.Array,
        carry: Carry,
        *,
        reset: jax.Array | None = None,
        key: Key | None = None,
    ) -> tuple[jax.Array, Carry]:
        """inputs [B, T, E] -> (hidden [B, T, R], carry); see Core."""
        batch, time, _ = inputs.shape
        if not batch * time:
            return self._of_nothing(inputs, carry)
        dtype = inputs.dtype
        keep = jnp.ones((time, batch, 1), dtype)
        if reset is not None:
            keep = 1 - reset.T[:, :, None].astype(dtype)
        key = None if key is None else keys.of(key, batch)
        x = self._drop(jnp.swapaxes(inputs, 0, 1), self.input_dropout, key, 0)
        new_carry = []
        for layer, (weights, (hidden, cell_state)) in enumerate(zip(params, carry, strict=True)):
            projections = flat(x) @ weights["input"] + weights["bias"][None]
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
