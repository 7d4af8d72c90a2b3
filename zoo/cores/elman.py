"""The simple recurrent network (Elman 1990), the starting point of Sutskever et al. (2014).

For layer input x_t and previous hidden state h, with f the hyperbolic tangent or the logistic
function,

    h_t = f(x_t W + h U + b)

The products x_t W of all positions are one matrix product before the scan. The scan's backward pass
is written by hand: see zoo.networks.elman_scan.
"""

import dataclasses
from typing import ClassVar

from zoo.cores.recurrent_layers import Stacked
from zoo.errors import check_choices
from zoo.networks.elman_scan import ACTIVATIONS, elman


@dataclasses.dataclass(frozen=True)
class Elman(Stacked):
    """Stacked layers of simple recurrent networks, h' = f(x W + h U + b).

    The parameters are a tuple of {"input": [*, D], "recurrent": [D, D], "bias": [D]}, one for each
    layer. Weights start uniform in +-1/sqrt(D).

    Attributes:
      size: D, the size of each layer.
      layers: the number of layers.
      last_size: D of the last layer, such as the size of the words' vectors for a tied head; 0
        for `size`.
      activation: f, "tanh" or "sigmoid" (the logistic function, as in Sutskever et al.).
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
      >>> core = cores.Elman(size=3, layers=2, activation="sigmoid")
      >>> hidden, carry = core.apply(core.init(key, 4), inputs, core.initial_carry(2))
      >>> hidden.shape, bool((hidden[:, -1] == carry[1]).all())
      ((2, 5, 3), True)
    """

    size: int = 256
    layers: int = 1
    last_size: int = 0
    activation: str = "tanh"
    dropout: float = 0.0
    last_dropout: float | None = None
    input_dropout: float = 0.0
    recurrent_dropout: float = 0.0
    variational: bool = False
    skip: bool = False
    rematerialise: int = 0

    blocks: ClassVar[int] = 1

    def __post_init__(self):
        super().__post_init__()
        check_choices(self, activation=tuple(ACTIVATIONS))

    def _recurrence(self, weights, projections, state, keep):
        recurrent, mask = weights["recurrent"], weights["mask"]
        return elman(self.activation, projections, recurrent, state, keep, mask)
