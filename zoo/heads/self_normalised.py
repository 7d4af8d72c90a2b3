"""A softmax that learns to need no normalisation.

Devlin et al., "Fast and robust neural network joint models for statistical machine translation"
(2014), section 2.2. The penalty holds log Z near 0 in training,

    loss = -log p(x | h) + z_loss log^2 Z(h),

so that the score o_x may replace log p(x | h) where a sum over V words is too expensive, as in
re-scoring. Evaluation reports log Z, which tells how far the score can be trusted. As in the paper,
the bias starts at -log V, so that log Z starts near 0: with a bias of 0, the penalty would start at
z_loss log^2 V nats, as large as the loss itself.
"""

import dataclasses

import jax
import jax.numpy as jnp

from zoo.base.arrays.types import Params
from zoo.errors import UserError
from zoo.heads.softmax import Softmax, WordVectors
from zoo.lexicon import Lexicon


@dataclasses.dataclass(frozen=True)
class SelfNormalisedSoftmax(Softmax):
    """The softmax with a penalty on log Z.

    Attributes:
      z_loss: the weight of log^2 Z, nats per squared nat; the paper's alpha, 0.1.

    Example:
      >>> head = heads.SelfNormalisedSoftmax(z_loss=0.1, initial_scale=0.0)
      >>> params, tables = head.init(key, 4, lexicon), head.tables(lexicon)
      >>> log_prob, log_z = head.log_prob_and_log_z(params, tables, hidden, targets)
      >>> log_z.round(4).tolist()  # the scores may be used as they are
      [0.0, 0.0]
    """

    z_loss: float = 0.1

    array_shapes = WordVectors.array_shapes

    def __post_init__(self):
        super().__post_init__()
        if not self.bias:
            raise UserError(
                "bias of SelfNormalisedSoftmax is False, and it needs the bias, which "
                "starts at -log V; give bias=True, or use heads.Softmax."
            )

    def _init(self, key: jax.Array, hidden_size: int, lexicon: Lexicon) -> Params:
        """Draws the softmax's parameters, with the bias at -log V."""
        params = super()._init(key, hidden_size, lexicon)
        params["bias"] -= jnp.log(len(lexicon))
        return params
