"""The gated recurrent unit (Cho et al. 2014).

For layer input x_t and previous hidden state h:

    r, z = sigmoid(x_t W + h U + b)                    (two blocks of W, U and b)
    n = tanh(x_t W_n + b_n + r * (h U_n + c))          (the third)
    h_t = (1 - z) * n + z * h

The reset gate r acts after the product h U_n, as in the first version of the paper, cuDNN and
PyTorch, so that one product with h serves all three blocks. In the paper's third version, the gate
acts before the product: tanh(x_t W_n + (r * h) U_n + b_n).

The products x_t W of all positions are one matrix product before the scan. The scan's backward pass
is written by hand: see zoo.networks.gru_scan.
"""

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp

from zoo.cores.recurrent_layers import Stacked
from zoo.networks.gru_scan import gru


@dataclasses.dataclass(frozen=True)
class GRU(Stacked):
    """Stacked layers of gated recurrent units, with the reset gate after the product with U.

        r, z = sigmoid(x W + h U + b),   n = tanh(x W_n + b_n + r * (h U_n + c))
        h' = (1 - z) * n + z * h

    The parameters are a tuple of {"input": [*, 3 D], "recurrent": [D, 3 D], "bias": [3 D],
    "recurrent_bias": c, [D]}, one for each layer; the columns belong to r, z and n. Weights start
    uniform in +-1/sqrt(D).

    Attributes:
      size: D, the size of each layer.
      layers: the number of layers.
      last_size: D of the last layer, such as the size of the words' vectors for a tied head; 0
        for `size`.
      dropout: the dropout rate of every layer's output.
      last_dropout: the dropout rate of the last layer's output; None for `dropout`.
      input_dropout: the dropout rate of the inputs.
      recurrent_dropout: the dropout rate of the entries of U; all positions and batch rows of a
        call share the mask.
      variational: whether all positions of a call share one mask, instead of one for each position.
      skip: whether the inputs go to every layer, and every layer's hidden states to the output,
        side by side: layers * D numbers (Graves 2013, section 2).
      rematerialise: the number of positions in a chunk. The inputs of each chunk and the state
        before it are kept, and the rest is recomputed in the backward pass; 0 keeps everything.

    Example:
      >>> core = cores.GRU(size=3, layers=2, dropout=0.5)
      >>> params = core.init(key, 4)
      >>> hidden, carry = core.apply(params, inputs, core.initial_carry(2), key=key)
      >>> hidden.shape, carry[0].shape
      ((2, 5, 3), (2, 3))
    """

    size: int = 256
    layers: int = 1
    last_size: int = 0
    dropout: float = 0.0
    last_dropout: float | None = None
    input_dropout: float = 0.0
    recurrent_dropout: float = 0.0
    variational: bool = False
    skip: bool = False
    rematerialise: int = 0

    blocks: ClassVar[int] = 3

    def _biases(self, layer: int) -> dict[str, jax.Array]:
        return super()._biases(layer) | {"recurrent_bias": jnp.zeros(self.cells(layer))}

    def _recurrence(self, weights, projections, state, keep):
        recurrent, bias, mask = weights["recurrent"], weights["recurrent_bias"], weights["mask"]
        return gru(projections, recurrent, bias, state, keep, mask)
