"""The simple recurrent network (Elman 1990), with which Sutskever et al. (2014) begin.

For layer input x_t and previous hidden state h, with f the hyperbolic tangent or the logistic
function,

    h_t = f(x_t W + h U + b)

The products x_t W of all positions are one product before the scan, whose backward pass is written
by hand: see zoo.networks.elman_scan.
"""

import dataclasses
from typing import ClassVar

from zoo.cores.stacked import Stacked
from zoo.errors import check_choices
from zoo.networks.elman_scan import ACTIVATIONS, elman


@dataclasses.dataclass(frozen=True)
class Elman(Stacked):
    """Stacked layers of simple recurrent networks, h' = f(x W + h U + b).

    The parameters are a tuple of {"input": [*, D], "recurrent": [D, D], "bias": [D]}, a layer each.
    Weights start uniform in +-1/sqrt(D).

    Attributes:
      size: D, of each layer.
      layers: how many.
      activation: f, "tanh" or "sigmoid" (the logistic function, as in Sutskever et al.).
      dropout: rate on every layer's output, the last one's too.
      input_dropout: on the inputs.
      recurrent_dropout: on the numbers of U, which all positions and lanes of a call miss.
      variational: one mask for all positions of a call instead of one a position.
      skip: the inputs go to every layer, and every layer's hidden states to the output, side by
        side: layers * D numbers (Graves 2013, section 2).
      rematerialise: positions of a chunk of a window, of which the inputs and the state before it
        are kept and the rest is computed again in the backward pass; 0 keeps everything.

    Example:
      >>> core = cores.Elman(size=3, layers=2, activation="sigmoid")
      >>> hidden, carry = core.apply(core.init(key, 4), inputs, core.initial_carry(2))
      >>> hidden.shape, bool((hidden[:, -1] == carry[1]).all())
      ((2, 5, 3), True)
    """

    size: int = 256
    layers: int = 1
    activation: str = "tanh"
    dropout: float = 0.0
    input_dropout: float = 0.0
    recurrent_dropout: float = 0.0
    variational: bool = False
    skip: bool = False
    rematerialise: int = 0

    blocks: ClassVar[int] = 1

    def __post_init__(self):
        super().__post_init__()
        check_choices(self, activation=tuple(ACTIVATIONS))

    def _recurrence(self, weights, recurrent, projections, state, keep):
        return elman(self.activation, projections, recurrent, state, keep)
