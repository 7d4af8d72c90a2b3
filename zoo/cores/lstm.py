"""The long short-term memory, optimised for training speed.

Hochreiter and Schmidhuber (1997) with forget gates (Gers et al. 2000), dropout on the connections
that are not recurrent (Zaremba et al. 2014), optionally with one mask for each sequence (Gal and
Ghahramani 2016), and on the recurrent weights (Merity et al. 2018). For layer input x_t, previous
hidden h and cell c:

    i, f, o = sigmoid(z), g = tanh(z),   z = x_t W + h U + b     (four blocks of z)
    c_t = f * c + i * g,   h_t = o * tanh(c_t)

With a projection (Sak et al. 2014), h_t = (o * tanh(c_t)) P has fewer numbers than there are cells;
the recurrence, the next layer and the head read this h_t.

The products x_t W of all positions are one matrix product before the scan. The scan's backward pass
is written by hand: see zoo.networks.lstm_scan.
"""

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp

from zoo.arrays.types import Carry
from zoo.cores.recurrent_layers import Stacked
from zoo.errors import check_least
from zoo.networks.lstm_scan import lstm


@dataclasses.dataclass(frozen=True)
class LSTM(Stacked):
    """Stacked layers of long short-term memory.

        i, f, o = sigmoid(z), g = tanh(z),   z = x W + h U + b
        c' = f * c + i * g,   h' = o * tanh(c')

    The parameters are a tuple of {"input": [*, 4 D], "recurrent": [R, 4 D], "bias": [4 D]}, one for
    each layer, with "projection": [D, R] if there is one. The gates' order is input, forget,
    candidate, output. Weights start uniform in +-1/sqrt(D).

    Attributes:
      size: D, the number of cells of each layer.
      layers: the number of layers.
      last_size: D of the last layer, such as the size of the words' vectors for a tied head; 0
        for `size`.
      projection: R, the size of the hidden states; 0 for D, without a projection.
      dropout: the dropout rate of every layer's output.
      last_dropout: the dropout rate of the last layer's output; None for `dropout`.
      input_dropout: the dropout rate of the inputs.
      recurrent_dropout: the dropout rate of the entries of U; all positions and batch rows of a
        call share the mask.
      variational: whether all positions of a call share one mask, instead of one for each position.
      forget_bias: the initial bias of the forget gate.
      skip: whether the inputs go to every layer, and every layer's hidden states to the output,
        side by side: layers * R numbers (Graves 2013, section 2).
      rematerialise: the number of positions in a chunk. The inputs of each chunk and the state
        before it are kept, and the rest is recomputed in the backward pass; 0 keeps everything.

    Example:
      >>> core = cores.LSTM(size=3, layers=2, skip=True)
      >>> params = core.init(key, 4)
      >>> hidden, carry = core.apply(params, inputs, core.initial_carry(2))
      >>> hidden.shape, carry[1][0].shape  # of both layers; the last hidden state of the second
      ((2, 5, 6), (2, 3))
    """

    size: int = 256
    layers: int = 1
    last_size: int = 0
    projection: int = 0
    dropout: float = 0.0
    last_dropout: float | None = None
    input_dropout: float = 0.0
    recurrent_dropout: float = 0.0
    variational: bool = False
    forget_bias: float = 1.0
    skip: bool = False
    rematerialise: int = 0

    blocks: ClassVar[int] = 4

    def __post_init__(self):
        super().__post_init__()
        check_least(self, projection=0)

    def state_size(self, layer: int) -> int:
        """Returns R, the size of a layer's hidden state.

        Args:
          layer: the layer, from 0.
        """
        return self.projection or self.cells(layer)

    def _weight_shapes(self, layer: int, inputs: int) -> dict[str, tuple[int, ...]]:
        shapes = super()._weight_shapes(layer, inputs)
        own = {"projection": (self.cells(layer), self.projection)} if self.projection else {}
        return shapes | own

    def _biases(self, layer: int) -> dict[str, jax.Array]:
        forget = jnp.zeros((4, self.cells(layer))).at[1].set(self.forget_bias)
        return {"bias": forget.reshape(-1)}

    def initial_carry(self, batch: int) -> Carry:
        """Returns zeros: for each layer (hidden [B, R], cell [B, D])."""
        # No array occurs twice: the carry of a training step is donated.
        return tuple(
            (jnp.zeros((batch, self.state_size(layer))), jnp.zeros((batch, self.cells(layer))))
            for layer in range(self.layers)
        )

    def _recurrence(self, weights, projections, state, keep):
        hidden, cell = state
        projection, mask = weights.get("projection"), weights["mask"]
        return lstm(projections, weights["recurrent"], hidden, cell, keep, projection, mask)
