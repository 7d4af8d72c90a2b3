"""The softmax trained by importance sampling: see zoo.losses.importance."""

import dataclasses

import jax

from zoo.base.arrays.types import Params
from zoo.heads.sampled import SampledHead, SampledScores
from zoo.losses.importance import importance_loss


@dataclasses.dataclass(frozen=True)
class ImportanceSampling(SampledHead):
    """The softmax trained by importance sampling ("sampled softmax", "ranking NCE").

    Example:
      >>> head = heads.ImportanceSampling(samples=2)
      >>> params, tables = head.init(key, 4, lexicon), head.tables(lexicon)
      >>> head.loss(params, tables, hidden, targets, key=key).shape  # sampled, for training
      (2,)
      >>> head.log_prob(params, tables, hidden, targets).shape  # exact
      (2,)
    """

    loss_name = "sampled softmax loss"

    def sampled_loss(self, params: Params, scores: SampledScores) -> jax.Array:
        return importance_loss(*scores[:4], scores.is_excluded)
