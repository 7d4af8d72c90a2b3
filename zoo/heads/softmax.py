"""The softmax: a weight vector and a bias a word."""

import dataclasses

import jax
import jax.numpy as jnp

from zoo.arrays.partition import HIDDEN, WORDS, axes
from zoo.arrays.types import Context, Key, Params, Tables
from zoo.heads.head import Head
from zoo.lexicon import Lexicon
from zoo.losses import softmax, softmax_sum, softmax_words


@dataclasses.dataclass(frozen=True)
class WordVectors(Head):
    """A head with a weight vector and perhaps a bias for each word.

    Attributes:
      tied: the weights are the embedding's table, which the model hands in as params["weights"].
      bias: whether there is a bias a word.
      initial_scale: weights start uniform in +-initial_scale; the bias starts at 0.
    """

    tied: bool = False
    bias: bool = True
    initial_scale: float = 0.05

    parameter_axes = axes(weights=(WORDS, HIDDEN), bias=(WORDS,))

    def init(self, key: jax.Array, hidden_size: int, lexicon: Lexicon) -> Params:
        """{"weights": [V, D] unless tied, "bias": [V] if there is one}."""
        params = {}
        if not self.tied:
            shape = (len(lexicon), hidden_size)
            scale = self.initial_scale
            params["weights"] = jax.random.uniform(key, shape, minval=-scale, maxval=scale)
        if self.bias:
            params["bias"] = jnp.zeros(len(lexicon))
        return params

    def _weights(self, params: Params) -> tuple[jax.Array, jax.Array]:
        weights = params["weights"]
        bias = params["bias"] if self.bias else jnp.zeros(weights.shape[0], weights.dtype)
        return weights, bias


@dataclasses.dataclass(frozen=True)
class Softmax(WordVectors):
    """p(x | h) = exp(w_x . h + c_x) / sum_v exp(w_v . h + c_v).

    Attributes:
      tied: the weights are the embedding's table, which the model hands in as params["weights"].
      bias: whether there is a bias a word.
      initial_scale: weights start uniform in +-initial_scale; the bias starts at 0.

    Example:
      >>> head = heads.Softmax(initial_scale=0.0)  # all words alike, to begin with
      >>> params, tables = head.init(key, 4, lexicon), head.tables(lexicon)
      >>> np.exp(head.log_prob(params, tables, hidden, targets)).round(2)
      array([0.33, 0.33], dtype=float32)
    """

    def _scores_of(
        self, params: Params, hidden: jax.Array
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        """(states, weights, bias) of scores w_x . h + c_x: what everything here is computed from.

        A head whose scores are of other states than the hidden ones overrides this alone.
        """
        return hidden, *self._weights(params)

    def loss(
        self,
        params: Params,
        tables: Tables,
        hidden: jax.Array,
        targets: jax.Array,
        *,
        key: Key | None = None,
        context: Context = None,
    ) -> jax.Array:
        """-log p(targets | hidden), nats, [...]; exact, in blocks of the vocabulary."""
        return softmax.softmax_loss(*self._scores_of(params, hidden), targets)[0]

    def weighted_loss(
        self,
        params: Params,
        tables: Tables,
        hidden: jax.Array,
        targets: jax.Array,
        token_weights: jax.Array,
        *,
        key: Key | None = None,
        context: Context = None,
    ) -> jax.Array:
        """sum of token_weights * loss, a scalar in nats; see losses.softmax_sum."""
        return softmax_sum.weighted_softmax_loss(
            *self._scores_of(params, hidden), targets, token_weights
        )

    def log_prob_and_log_z(
        self,
        params: Params,
        tables: Tables,
        hidden: jax.Array,
        targets: jax.Array,
        *,
        context: Context = None,
    ) -> tuple[jax.Array, jax.Array]:
        """(log p(targets | hidden), log Z = log sum_v exp(w_v . h + c_v)), nats, [...] each."""
        loss, log_z = softmax.softmax_loss(*self._scores_of(params, hidden), targets)
        return -loss, log_z

    def log_probs(
        self, params: Params, tables: Tables, hidden: jax.Array, *, context: Context = None
    ) -> jax.Array:
        """log p of every word, nats, [..., V]."""
        return jax.nn.log_softmax(softmax.logits(*self._scores_of(params, hidden)), axis=-1)

    def sample(
        self,
        params: Params,
        tables: Tables,
        hidden: jax.Array,
        key: jax.Array,
        *,
        context: Context = None,
    ) -> jax.Array:
        """Words drawn from p(. | hidden), int32 [...]."""
        return softmax_words.softmax_sample(*self._scores_of(params, hidden), key)

    def top_k(
        self, params: Params, tables: Tables, hidden: jax.Array, k: int, *, context: Context = None
    ) -> tuple[jax.Array, jax.Array]:
        """The k most probable words: (log-probabilities [..., k], words [..., k])."""
        return softmax_words.softmax_top_k(*self._scores_of(params, hidden), k)
