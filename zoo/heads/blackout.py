"""The softmax trained by BlackOut: see zoo.losses.importance."""

import dataclasses

import jax

from zoo.base.arrays.types import Params
from zoo.heads import noise as noises
from zoo.heads.sampled import SampledHead, SampledScores
from zoo.losses.importance import blackout_loss


@dataclasses.dataclass(frozen=True)
class BlackOut(SampledHead):
    """The softmax trained by BlackOut; the paper draws from the unigrams to a power of 0.4.

    Attributes:
      noise: the distribution.

    Example:
      >>> head = heads.BlackOut(samples=2)
      >>> params, tables = head.init(key, 4, lexicon), head.tables(lexicon)
      >>> head.loss(params, tables, hidden, targets, key=key).shape  # sampled, for training
      (2,)
      >>> head.log_prob(params, tables, hidden, targets).shape  # exact
      (2,)
    """

    noise: noises.Noise = noises.UnigramNoise(power=0.4)

    loss_name = "BlackOut loss"

    def sampled_loss(self, params: Params, scores: SampledScores) -> jax.Array:
        return blackout_loss(*scores[:4], scores.is_excluded)
