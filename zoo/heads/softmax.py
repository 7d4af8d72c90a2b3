"""The softmax: a weight vector and a bias for each word."""

import dataclasses

import jax
import jax.numpy as jnp

from zoo.base.arrays.parameter_sharding import HIDDEN, WORDS, axes
from zoo.base.arrays.random_keys import uniform
from zoo.base.arrays.types import Params
from zoo.errors import UserError, check_least, check_rates
from zoo.heads.checks import Shapes
from zoo.heads.head import Head, SoftmaxArrays
from zoo.lexicon import Lexicon
from zoo.losses import softmax, top_k
from zoo.losses.shaping import Shaping
from zoo.losses.weighted_softmax import weighted_softmax_loss


@dataclasses.dataclass(frozen=True)
class WordVectors(Head):
    """A head with a weight vector and, optionally, a bias for each word.

    Attributes:
      tied: whether the weights are the embedding's table, which the model passes as
        params["weights"].
      bias: whether each word has a bias.
      initial_scale: weights start uniform in +-initial_scale; the bias starts at 0.
    """

    tied: bool = False
    bias: bool = True
    initial_scale: float = 0.05

    parameter_axes = axes(weights=(WORDS, HIDDEN), bias=(WORDS,))

    @property
    def array_shapes(self) -> Shapes | None:
        return Shapes({"weights": "V D"} | ({"bias": "V"} if self.bias else {}), {})

    def _init(self, key: jax.Array, hidden_size: int, lexicon: Lexicon) -> Params:
        """Draws {"weights": [V, D] unless tied, "bias": [V] if there is one}."""
        params = {}
        if not self.tied:
            params["weights"] = uniform(key, (len(lexicon), hidden_size), self.initial_scale)
        if self.bias:
            params["bias"] = jnp.zeros(len(lexicon))
        return params

    def _weights(self, params: Params) -> tuple[jax.Array, jax.Array]:
        weights = params["weights"]
        bias = params["bias"] if self.bias else jnp.zeros(weights.shape[0], weights.dtype)
        return weights, bias


class SoftmaxScores(WordVectors):
    """A head whose probabilities are the softmax's, whatever its training loss is."""

    soft_cap: float | None = None

    def _softmax_inputs(
        self, params: Params, hidden: jax.Array
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Returns (states, weights, bias), from which all scores w_x . h + c_x are computed.

        A head whose states h are not the hidden states themselves overrides only this method.
        """
        return hidden, *self._weights(params)

    def _as_softmax(self, params, tables, hidden, prepared):
        return SoftmaxArrays(*self._softmax_inputs(params, hidden), self.soft_cap)

    @property
    def _shaping(self):
        return Shaping.from_options(self.soft_cap)

    def _log_prob_and_log_z(self, params, tables, hidden, targets, context, prepared):
        scores = self._softmax_inputs(params, hidden)
        loss, log_z = softmax.softmax_loss(*scores, targets, soft_cap=self.soft_cap)
        return -loss, log_z

    def target_scores(self, params, tables, hidden, targets, context, prepared):
        """Computes w_x . h + c_x, capped; see `Head.target_scores`."""
        return softmax.target_logits(*self._softmax_inputs(params, hidden), targets, self._shaping)

    def _log_probs(self, params, tables, hidden, context, prepared):
        logits = softmax.logits(*self._softmax_inputs(params, hidden), self._shaping)
        return jax.nn.log_softmax(logits, axis=-1)

    def _sample(self, params, tables, hidden, key, context, prepared):
        scores = self._softmax_inputs(params, hidden)
        return top_k.softmax_sample(*scores, key, soft_cap=self.soft_cap)

    def _top_k(self, params, tables, hidden, k, context, prepared):
        return top_k.softmax_top_k(*self._softmax_inputs(params, hidden), k, soft_cap=self.soft_cap)


@dataclasses.dataclass(frozen=True)
class Softmax(SoftmaxScores):
    """p(x | h) = exp(w_x . h + c_x) / sum_v exp(w_v . h + c_v).

    Attributes:
      tied: whether the weights are the embedding's table, which the model passes as
        params["weights"].
      bias: whether each word has a bias.
      initial_scale: weights start uniform in +-initial_scale; the bias starts at 0.
      label_smoothing: epsilon, the share of the target distribution that is uniform over all words;
        at least 0, and less than 1.
      z_loss: the weight of log^2 Z, nats per squared nat.
      soft_cap: the number beyond which no score goes; None for no cap.

    With the scores o_v = w_v . h + c_v, or cap tanh((w_v . h + c_v) / cap) with a soft cap (Gemma
    Team 2024, section 2), the training loss is (Szegedy et al. 2016, section 7)

        (1 - epsilon) (log Z - o_x) + epsilon / V sum_v (log Z - o_v) + z_loss log^2 Z,

    which is -log p(x | h) if epsilon and z_loss are 0, their defaults.

    Example:
      >>> head = heads.Softmax(initial_scale=0.0)  # all words alike, to begin with
      >>> params, tables = head.init(key, 4, lexicon), head.tables(lexicon)
      >>> np.exp(head.log_prob(params, tables, hidden, targets)).round(2)
      array([0.33, 0.33], dtype=float32)
    """

    label_smoothing: float = 0.0
    z_loss: float = 0.0
    soft_cap: float | None = None

    def __post_init__(self):
        check_least(self, z_loss=0)
        check_rates(self, "", "label_smoothing")
        check_soft_cap(self)

    @property
    def loss_name(self) -> str:
        """Name of the loss, which lists its terms beside -log p."""
        parts = {"label smoothing": self.label_smoothing, "log Z penalty": self.z_loss}
        terms = " and ".join(name for name, value in parts.items() if value)
        return f"cross-entropy with {terms}" if terms else "loss"

    def _loss(self, params, tables, hidden, targets, key, context):
        scores = self._softmax_inputs(params, hidden)
        loss, log_z = softmax.softmax_loss(*scores, targets, **self._loss_options)
        return loss + self.z_loss * log_z * log_z if self.z_loss else loss

    def _weighted_loss(self, params, tables, hidden, targets, token_weights, key, context):
        scores, penalty = self._softmax_inputs(params, hidden), self.z_loss
        return weighted_softmax_loss(
            *scores, targets, token_weights, penalty=penalty, **self._loss_options
        )

    def _weighted_loss_and_report(
        self, params, tables, hidden, targets, token_weights, key, context
    ):
        scores, options = self._softmax_inputs(params, hidden), self._loss_options
        return weighted_softmax_loss(
            *scores, targets, token_weights, penalty=self.z_loss, report=True, **options
        )

    @property
    def _loss_options(self):
        return {"soft_cap": self.soft_cap, "label_smoothing": self.label_smoothing}


def check_soft_cap(head):
    """Raises UserError unless the soft cap of a head is None or above 0."""
    cap = head.soft_cap
    if cap is not None and not (isinstance(cap, int | float) and 0 < cap < float("inf")):
        raise UserError(
            f"soft_cap of {type(head).__name__} is {cap!r}: give a number above 0, or none."
        )
