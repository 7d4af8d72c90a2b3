"""The softmax trained by noise-contrastive estimation: see zoo.losses.nce."""

import dataclasses

import jax
import jax.numpy as jnp

from zoo.base.arrays.types import Params
from zoo.errors import UserError
from zoo.heads.checks import Shapes
from zoo.heads.sampled import SampledHead, SampledScores
from zoo.lexicon import Lexicon
from zoo.losses.nce import nce_loss


@dataclasses.dataclass(frozen=True)
class NCE(SampledHead):
    """The softmax trained by noise-contrastive estimation.

    The bias starts at log Z - log V, so that the scores start near a distribution's logarithms.

    Attributes:
      log_partition: log Z, nats.
      learned_partition: whether log Z is a parameter that starts at `log_partition`.

    Example:
      >>> head = heads.NCE(noise=heads.UnigramNoise(), samples=2)
      >>> params, tables = head.init(key, 4, lexicon), head.tables(lexicon)
      >>> head.loss(params, tables, hidden, targets, key=key).shape  # sampled, for training
      (2,)
      >>> head.log_prob(params, tables, hidden, targets).shape  # exact
      (2,)
    """

    log_partition: float = 0.0
    learned_partition: bool = False

    loss_name = "NCE loss"

    @property
    def array_shapes(self) -> Shapes:
        shapes = super().array_shapes
        learned = {"log_partition": ""} if self.learned_partition else {}
        return shapes._replace(params={**shapes.params, **learned})

    def __post_init__(self):
        super().__post_init__()
        if not self.bias:
            raise UserError(
                "bias of NCE is False, and noise-contrastive estimation needs the bias, which "
                "starts at log Z - log V: give bias=True."
            )

    def _init(self, key: jax.Array, hidden_size: int, lexicon: Lexicon) -> Params:
        params = super()._init(key, hidden_size, lexicon)
        params["bias"] += self.log_partition - jnp.log(len(lexicon))
        if self.learned_partition:
            params["log_partition"] = jnp.asarray(self.log_partition, jnp.float32)
        return params

    def _log_partition(self, params: Params):
        return params["log_partition"] if self.learned_partition else self.log_partition

    def sampled_loss(self, params: Params, scores: SampledScores) -> jax.Array:
        log_partition = self._log_partition(params)
        return nce_loss(
            scores.true - log_partition,
            scores.noise - log_partition,
            scores.log_expected_true,
            scores.log_expected_noise,
            scores.is_kept,
        )

    def _log_prob_and_log_z(self, params, tables, hidden, targets, context, prepared):
        # The log-normaliser of o_v - log Z, the scores that NCE trains to be normalised.
        log_prob, log_z = super()._log_prob_and_log_z(
            params, tables, hidden, targets, context=context, prepared=prepared
        )
        return log_prob, log_z - self._log_partition(params)

    def target_scores(self, params, tables, hidden, targets, context, prepared):
        options = {"context": context, "prepared": prepared}
        scores = super().target_scores(params, tables, hidden, targets, **options)
        return scores - self._log_partition(params)
