"""Mixtures: of softmaxes, and of contexts.

Yang et al., "Breaking the softmax bottleneck: a high-rank RNN language model" (2018). The logits of
a softmax over V words are a product of rank D + 1 at most, whatever the contexts. M softmaxes with
contexts of their own and one table of words,

    g_m = tanh(P_m h + q_m),   pi = softmax(R h),
    p(x | h) = sum_m pi_m exp(w_x . g_m + c_x) / sum_v exp(w_v . g_m + c_v),

do not have this limit: the logarithm of a sum is not linear in the words' vectors. A mixture of
contexts,

    p(x | h) = softmax(W sum_m pi_m g_m + c),

has the same parameters and the rank of a single softmax: it serves as the control.
"""

import dataclasses

import jax
import jax.numpy as jnp

from zoo.base.arrays import products
from zoo.base.arrays.parameter_sharding import HIDDEN, VECTOR, WORDS, axes
from zoo.base.arrays.random_keys import Keys, fold_in_rows, uniform
from zoo.base.arrays.types import Params
from zoo.errors import check_least
from zoo.heads.checks import Shapes
from zoo.heads.softmax import Softmax, WordVectors, check_soft_cap
from zoo.layers import dropout
from zoo.lexicon import Lexicon
from zoo.losses import mixture, top_k

# The use of a row's key for masks of the g_m, besides the core's.
_LATENT = 0x6C6174


@dataclasses.dataclass(frozen=True)
class _Mixture(WordVectors):
    components: int = 5
    size: int = 0

    parameter_axes = axes(
        weights=(WORDS, VECTOR),  # columns are dimensions of g_m, not of hidden states
        bias=(WORDS,),
        prior=(HIDDEN, None),
        projection=(HIDDEN, None),
    )

    @property
    def array_shapes(self) -> Shapes | None:
        params = {"prior": "D M", "projection": "D P", "projection_bias": "P", "weights": "V K"}
        return Shapes(params | ({"bias": "V"} if self.bias else {}), {})

    def __post_init__(self):
        check_least(self, components=1, size=0)

    def _init(self, key: jax.Array, hidden_size: int, lexicon: Lexicon) -> Params:
        """Draws the softmax's parameters and those that make contexts.

        {"weights", "bias": the softmax's, for vectors of `size` dimensions (D if 0), "prior": R
        [D, M], "projection": P [D, M size], "projection_bias": q [M size]}.
        """
        softmax_key, prior_key, projection_key = jax.random.split(key, 3)
        size, scale = self.size or hidden_size, hidden_size**-0.5
        params = super()._init(softmax_key, size, lexicon)
        columns = self.components * size
        params["prior"] = uniform(prior_key, (hidden_size, self.components), scale)
        params["projection"] = uniform(projection_key, (hidden_size, columns), scale)
        params["projection_bias"] = jnp.zeros(columns)
        return params

    def contexts(self, params: Params, hidden: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Computes (log pi [..., M], nats, g [..., M, size]), both in at least float32."""
        log_prior = jax.nn.log_softmax(products.matmul(hidden, params["prior"]), axis=-1)
        projected = products.affine(hidden, params["projection"], params["projection_bias"])
        shape = (*hidden.shape[:-1], self.components, -1)
        return log_prior, jnp.tanh(projected).reshape(shape)


@dataclasses.dataclass(frozen=True)
class MixtureOfSoftmaxes(_Mixture):
    """p(x | h) = sum_m pi_m softmax(W g_m + c)_x, in log space throughout.

    Attributes:
      components: M.
      size: the dimension of the g_m and the words' vectors; 0 for D, the hidden state's.
      latent_dropout: the dropout rate of the g_m in training (Yang et al. 2018, appendix B). The
        first axis of the hidden states is then of batch rows, and all positions of a row share a
        mask; states [N, D] have a mask each.
      soft_cap: the number beyond which no score of a component goes; None for no cap.

    Example:
      >>> head = heads.MixtureOfSoftmaxes(components=2, size=3)
      >>> params, tables = head.init(key, 4, lexicon), head.tables(lexicon)
      >>> head.log_probs(params, tables, hidden).shape
      (2, 3)
    """

    latent_dropout: float = 0.0
    soft_cap: float | None = None

    def __post_init__(self):
        super().__post_init__()
        dropout.check_rates(self, "latent_dropout")
        check_soft_cap(self)

    @property
    def loss_draws(self) -> bool:
        """Whether training drops numbers of the g_m at random."""
        return bool(self.latent_dropout)

    def _drop_latent(self, contexts, key):
        """Drops numbers of the g_m [..., M, size] if a key is given and the rate is not 0."""
        if key is None or not self.latent_dropout:
            return contexts
        *rows, components, size = contexts.shape
        batch = rows[0] if rows else 1
        keys = fold_in_rows(Keys.from_key(key, batch).rows, _LATENT)
        masks = dropout.masks(keys, (components, size), self.latent_dropout, contexts.dtype)
        return contexts * masks.reshape(*rows[:1], *[1] * len(rows[1:]), components, size)

    def _loss(self, params, tables, hidden, targets, key, context):
        log_prior, contexts = self.contexts(params, hidden)
        contexts = self._drop_latent(contexts, key)
        arguments = contexts, log_prior, *self._weights(params), targets
        return mixture.mixture_loss(*arguments, soft_cap=self.soft_cap)

    def _log_prob_and_log_z(self, params, tables, hidden, targets, context, prepared):
        loss = self._loss(params, tables, hidden, targets, key=None, context=context)
        return -loss, jnp.zeros_like(loss)

    def _weighted_loss(self, params, tables, hidden, targets, token_weights, key, context):
        log_prior, contexts = self.contexts(params, hidden)
        contexts = self._drop_latent(contexts, key)
        arguments = contexts, log_prior, *self._weights(params), targets, token_weights
        return mixture.weighted_mixture_loss(*arguments, soft_cap=self.soft_cap)

    def scores_per_token(self, vocabulary: int) -> int:
        return self.components * vocabulary

    def _log_probs(self, params, tables, hidden, context, prepared):
        log_prior, contexts = self.contexts(params, hidden)
        arguments = contexts, log_prior, *self._weights(params)
        return mixture.mixture_log_probs(*arguments, soft_cap=self.soft_cap)

    def _sample(self, params, tables, hidden, key, context, prepared):
        component_key, word_key = jax.random.split(key)
        log_prior, contexts = self.contexts(params, hidden)
        component = jax.random.categorical(component_key, log_prior)[..., None, None]
        context = jnp.take_along_axis(contexts, component, axis=-2)[..., 0, :]
        table = self._weights(params)
        return top_k.softmax_sample(context, *table, word_key, soft_cap=self.soft_cap)


@dataclasses.dataclass(frozen=True)
class MixtureOfContexts(_Mixture, Softmax):
    """p(x | h) = softmax(W sum_m pi_m g_m + c)_x.

    Attributes:
      components: M.
      size: the dimension of the g_m and the words' vectors; 0 for D, the hidden state's.

    Example:
      >>> head = heads.MixtureOfContexts(components=2, size=3)
      >>> params, tables = head.init(key, 4, lexicon), head.tables(lexicon)
      >>> head.log_probs(params, tables, hidden).shape
      (2, 3)
    """

    def __post_init__(self):
        _Mixture.__post_init__(self)
        Softmax.__post_init__(self)

    def _softmax_inputs(self, params, hidden):
        """Returns (mixed contexts, weights, bias), the arguments of a softmax."""
        log_prior, contexts = self.contexts(params, hidden)
        context = jnp.einsum("...m,...md->...d", jnp.exp(log_prior), contexts)
        return context, *self._weights(params)
