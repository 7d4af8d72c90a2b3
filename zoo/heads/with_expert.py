"""A head with an expert: a further feature, which is 1 on the words that the expert names.

Dymetman and Xiao, "Log-linear RNNs" (2016), section 6, "expert feature". With the expert's word e
at a position, and a weight g = u . h + c that the network sets,

    p'(x | h, e) proportional to p(x | h) exp(g [x = e]).

Only one word's score changes, and log Z changes by one term:

    log p'(x) = log p(x) + g [x = e] - log(1 - p(e) + p(e) exp(g)).

If the expert names a set S of words, the feature is [x in S], and p(S), the sum of their p,
replaces p(e). This is the log-linear model with a feature phi(k, x) of the context and the word; it
holds for any normalised p. The network learns when to follow the expert, where g is large, and when
to ignore it, where g is 0. (The paper's own feature is 1 on all words except wrong values: it tells
which value should follow, but not that a value should follow. Here g tells both.)
"""

import dataclasses

import jax
import jax.numpy as jnp

from zoo.base.arrays import products
from zoo.base.arrays.parameter_sharding import HIDDEN, Axes
from zoo.base.arrays.types import Context, Params
from zoo.errors import UserError
from zoo.heads.checks import Shapes
from zoo.heads.head import Head
from zoo.heads.head_around import HeadAround
from zoo.heads.log_linear import LogLinear
from zoo.lexicon import Lexicon
from zoo.losses.log_linear import log_expert_mass
from zoo.priors.experts import Expert


@dataclasses.dataclass(frozen=True)
class WithExpert(HeadAround):
    """p'(x | h, e) proportional to p(x | h) exp((u . h + c) [x = e]), e the expert's word.

    u and c start at 0, so that p' starts at p. The inner head is trained on exact
    log-probabilities, whatever its own loss is. A step costs two of them, of the target and of e.
    If the expert names several words, a step costs the score of each, or its log-probability if the
    inner head has no `target_scores`.

    Attributes:
      expert: the model that names e, or a set of words, from the words before.
      head: the inner head, p; it may not be tied or have a background of its own.

    Example:
      >>> from zoo.priors import KnowledgeBase
      >>> head = heads.WithExpert(KnowledgeBase("facts.tsv"), heads.Softmax(initial_scale=0.0))
      >>> params = head.init(key, 4, lexicon) | {"bias": jnp.log(4.0)}  # the weight g of the expert
      >>> tables = {"head": {}, "background": {}}  # head.tables(lexicon) reads the facts
      >>> words, expert_words = jnp.array([2, 2]), jnp.array([2, -1])  # -1: it names nothing
      >>> np.exp(head.log_prob(params, tables, hidden, words, context=expert_words)).round(2)
      array([0.67, 0.33], dtype=float32)
    """

    expert: Expert
    head: Head = LogLinear()

    def __post_init__(self):
        if self.head.background is not None or self.head.tied:
            raise UserError(
                f"head of WithExpert is a {type(self.head).__name__}, which is tied or has a "
                "background: give a head without either."
            )

    @property
    def background(self) -> Expert:  # type: ignore[override]
        """The expert, which the model runs along the text as it runs backgrounds."""
        return self.expert

    @property
    def parameter_axes(self) -> Axes:
        inner = {f"head/{name}": axes for name, axes in self.head.parameter_axes.items()}
        return {**inner, "weights": (HIDDEN,)}

    @property
    def array_shapes(self) -> Shapes | None:
        params = {"head": None, "weights": "D", "bias": ""}
        return Shapes(params, {"head": None, "background": None})

    def _init(self, key: jax.Array, hidden_size: int, lexicon: Lexicon) -> Params:
        """Draws {"head": the inner head's parameters, "weights": u, [D], "bias": c, []}."""
        return {
            "head": self.head.init(key, hidden_size, lexicon),
            "weights": jnp.zeros(hidden_size),
            "bias": jnp.zeros(()),
        }

    def for_lexicon(self, params: Params, lexicon: Lexicon, new_lexicon: Lexicon) -> Params:
        raise UserError(
            "the expert of heads.WithExpert was made for the words of training: the head cannot "
            "score with another lexicon."
        )

    def expert_weight(self, params: Params, hidden: jax.Array, context: Context):
        """Computes g, [...]; 0 where the expert names nothing."""
        self._check_context(hidden, context)
        weight = products.matmul(hidden, params["weights"]) + params["bias"]
        return jnp.where((_as_word_sets(context, weight) >= 0).any(axis=-1), weight, 0)

    def _check_context(self, hidden, context):
        remedy = "give the ids of the words that the expert names at each position, -1 for no word"
        dtype, shape = getattr(context, "dtype", None), hidden.shape[:-1]
        if dtype is None or not jnp.issubdtype(dtype, jnp.integer):
            description = type(context).__name__ if dtype is None else dtype
            raise TypeError(f"WithExpert: context is {description}: {remedy}")
        if shape not in (context.shape, context.shape[:-1]):
            shapes = f"the shape {context.shape} and the tokens {shape}"
            raise ValueError(f"WithExpert: context has {shapes}: {remedy}")

    def inner_params(self, params: Params) -> Params:
        return params["head"]

    def _log_mass(self, params, tables, hidden, context, weight, log_z, prepared):
        """Computes the term that the expert adds to the inner head's log Z, `log_z`, [...]."""
        expert_words = _as_word_sets(context, weight)
        inner, words = (params["head"], tables["head"]), jnp.maximum(expert_words, 0)
        if expert_words.shape[-1] == 1:
            log_prob = self.head.log_prob(*inner, hidden, words[..., 0], prepared=prepared)
            return log_expert_mass(log_prob, weight)
        size = hidden.shape[-1]
        rows = jnp.broadcast_to(hidden[..., None, :], (*words.shape, size)).reshape(-1, size)
        scores = self.head.target_scores(*inner, rows, words.reshape(-1), None, prepared)
        if scores is None:
            flat = self.head.log_prob(*inner, rows, words.reshape(-1), prepared=prepared)
            log_probs = flat.reshape(words.shape)
        else:
            log_probs = scores.reshape(words.shape) - log_z[..., None]
        is_same_word = expert_words[..., :, None] == expert_words[..., None, :]
        # Each word counts once, where it is named first.
        distinct = (expert_words >= 0) & ~jnp.tril(is_same_word, -1).any(axis=-1)
        return log_expert_mass(_log_sum(log_probs, distinct), weight)

    def _log_prob_and_log_z(self, params, tables, hidden, targets, context, prepared):
        inner = params["head"], tables["head"]
        log_prob, log_z = self.head.log_prob_and_log_z(*inner, hidden, targets, prepared=prepared)
        weight = self.expert_weight(params, hidden, context)
        log_mass = self._log_mass(
            params, tables, hidden, context, weight=weight, log_z=log_z, prepared=prepared
        )
        is_named = (_as_word_sets(context, weight) == targets[..., None]).any(axis=-1)
        return log_prob + jnp.where(is_named, weight, 0) - log_mass, log_z + log_mass

    def _log_probs(self, params, tables, hidden, context, prepared):
        log_probs = self.head.log_probs(params["head"], tables["head"], hidden, prepared=prepared)
        weight = self.expert_weight(params, hidden, context)
        expert_words = _as_word_sets(context, weight)
        is_named = jax.nn.one_hot(expert_words, log_probs.shape[-1], dtype=bool).any(axis=-2)
        # Not a softmax of the sums: the inner head may give mass to words outside the lexicon.
        log_mass = log_expert_mass(_log_sum(log_probs, is_named), weight)
        return log_probs + jnp.where(is_named, weight[..., None], 0) - log_mass[..., None]


def _as_word_sets(context: jax.Array, like: jax.Array):
    """Reshapes the words that an expert names, [...] or [..., M], to [..., M]."""
    return context if context.ndim > like.ndim else context[..., None]


def _log_sum(log_probs, is_named):
    """Computes the log of the named words' mass; the lowest finite number without any."""
    lowest = jnp.finfo(log_probs.dtype).min
    # The lowest finite number replaces -inf, whose gradient is undefined.
    return jax.nn.logsumexp(jnp.where(is_named, jnp.maximum(log_probs, lowest), lowest), axis=-1)
