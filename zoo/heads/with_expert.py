"""A head with an expert: one more feature, which is 1 on the words that an expert names.

Dymetman and Xiao, "Log-linear RNNs" (2016), section 6, "expert feature". With the expert's word e
at a position, and a weight g = u . h + c that the network sets,

    p'(x | h, e) proportional to p(x | h) exp(g [x = e]).

Only one word's score changes, so that log Z does by one term:

    log p'(x) = log p(x) + g [x = e] - log(1 - p(e) + p(e) exp(g)).

Of an expert that names a set S of words the feature is [x in S], and p(S), the sum of their p,
takes the place of p(e). It is the log-linear model with a feature phi(k, x) of the context and the
word, and holds for any p that is normalised. Where g is large the expert is believed, where it is 0
it is not listened to; the network learns when. (The paper's own feature is 1 on all words but the
wrong values: it says which value, never that there should be one. Here g does both.)
"""

import dataclasses

import jax
import jax.numpy as jnp

from zoo.arrays.partition import HIDDEN, Axes
from zoo.arrays.types import Context, Params, Prepared, Tables
from zoo.errors import UserError
from zoo.heads.argument_checks import Shapes
from zoo.heads.head import Head, HeadAround
from zoo.heads.log_linear import LogLinear
from zoo.lexicon import Lexicon
from zoo.losses import softmax
from zoo.losses.with_expert import log_expert_mass
from zoo.priors.expert import Expert


@dataclasses.dataclass(frozen=True)
class WithExpert(HeadAround):
    """p'(x | h, e) proportional to p(x | h) exp((u . h + c) [x = e]), e the expert's word.

    u and c start at 0, so that the head starts as the one within. A step costs two exact losses of
    that head, of the target and of e; it is trained exactly, whatever its own loss is. Of several
    words it costs the scores of these, or, where a head has none, a loss of each.

    Attributes:
      expert: what names e, or a set of words, from the words before.
      head: p, with a background of the lexicon at most.

    Example:
      >>> from zoo.priors import KnowledgeBase
      >>> head = heads.WithExpert(KnowledgeBase("facts.tsv"), heads.Softmax(initial_scale=0.0))
      >>> params = head.init(key, 4, lexicon) | {"bias": jnp.log(4.0)}  # the weight g of the expert
      >>> tables = {"head": {}, "background": {}}  # head.tables(lexicon) reads the facts
      >>> words, named = jnp.array([2, 2]), jnp.array([2, -1])  # at the second, it names nothing
      >>> np.exp(head.log_prob(params, tables, hidden, words, context=named)).round(2)
      array([0.67, 0.33], dtype=float32)
    """

    expert: Expert
    head: Head = LogLinear()

    def __post_init__(self):
        if self.head.background is not None or self.head.tied:
            raise UserError(
                f"heads.WithExpert takes a head of its own, and this {type(self.head).__name__} is "
                "tied or has a background that runs along the text: leave that out."
            )

    @property
    def background(self) -> Expert:
        """The expert: the model feeds it as it feeds backgrounds."""
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
        """{"head": the head's parameters, "weights": u, [D], "bias": c, []}."""
        return {
            "head": self.head.init(key, hidden_size, lexicon),
            "weights": jnp.zeros(hidden_size),
            "bias": jnp.zeros(()),
        }

    def _tables(self, lexicon: Lexicon) -> Tables:
        """{"head": the head's tables, "background": the expert's tables}."""
        return {"head": self.head.tables(lexicon), "background": self.expert.tables(lexicon)}

    def _evaluation_tables(self, lexicon: Lexicon) -> Tables:
        background = self.expert.tables(lexicon)
        return {"head": self.head.evaluation_tables(lexicon), "background": background}

    def for_lexicon(self, params: Params, lexicon: Lexicon, other: Lexicon) -> Params:
        """Raises UserError: the expert knows the words of training alone."""
        raise UserError(
            "heads.WithExpert has an expert that knows the words of training alone: it cannot "
            "score with another lexicon."
        )

    def _prepared(self, params: Params, tables: Tables) -> Prepared:
        return self.head.prepared(params["head"], tables["head"])

    def prepared_shapes(self, tables: Tables, hidden_size: int):
        return self.head.prepared_shapes(tables["head"], hidden_size)

    def warnings(self, lexicon: Lexicon) -> dict[str, int]:
        return self.head.warnings(lexicon)

    def normalised_over(self, lexicon: Lexicon) -> str:
        return self.head.normalised_over(lexicon)

    def expert_weight(self, params: Params, hidden: jax.Array, context: Context):
        """g, [...]; 0 where the expert names nothing."""
        self._check_context(hidden, context)
        weight = softmax.accumulated(hidden, params["weights"]) + params["bias"]
        return jnp.where((_several(context, weight) >= 0).any(axis=-1), weight, 0)

    def _check_context(self, hidden, context):
        """TypeError or ValueError for what is no word, nor several, of each position."""
        wanted = "give what the expert names at each position, word ids, -1 for no word"
        dtype, shape = getattr(context, "dtype", None), hidden.shape[:-1]
        if dtype is None or not jnp.issubdtype(dtype, jnp.integer):
            found = type(context).__name__ if dtype is None else dtype
            raise TypeError(f"WithExpert: context is {found}: {wanted}")
        if shape not in (context.shape, context.shape[:-1]):
            shapes = f"the shape {context.shape} and the tokens {shape}"
            raise ValueError(f"WithExpert: context has {shapes}: {wanted}")

    def _log_mass(
        self,
        params: Params,
        tables: Tables,
        hidden: jax.Array,
        context: Context,
        weight,
        log_z: jax.Array,
        prepared: Prepared,
    ):
        """The part of log Z that the expert adds to that of the head within, `log_z`, [...]."""
        named = _several(context, weight)
        inner, words = (params["head"], tables["head"]), jnp.maximum(named, 0)
        if named.shape[-1] == 1:
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
        return log_expert_mass(_log_sum(log_probs, _distinct(named)), weight)

    def _penalties(self, params: Params, hidden: jax.Array) -> jax.Array | None:
        return self.head._penalties(params["head"], hidden)

    def _log_prob_and_log_z(self, params, tables, hidden, targets, context, prepared):
        inner = params["head"], tables["head"]
        log_prob, log_z = self.head.log_prob_and_log_z(*inner, hidden, targets, prepared=prepared)
        weight = self.expert_weight(params, hidden, context)
        added = self._log_mass(params, tables, hidden, context, weight, log_z, prepared)
        is_named = (_several(context, weight) == targets[..., None]).any(axis=-1)
        return log_prob + jnp.where(is_named, weight, 0) - added, log_z + added

    def _log_probs(self, params, tables, hidden, context, prepared):
        log_probs = self.head.log_probs(params["head"], tables["head"], hidden, prepared=prepared)
        weight = self.expert_weight(params, hidden, context)
        named = _several(context, weight)
        is_named = jax.nn.one_hot(named, log_probs.shape[-1], dtype=bool).any(axis=-2)
        # Not a softmax of the sums: the head within may say words outside the lexicon, too.
        added = log_expert_mass(_log_sum(log_probs, is_named), weight)
        return log_probs + jnp.where(is_named, weight[..., None], 0) - added[..., None]


def _several(context: jax.Array, like: jax.Array):
    """The words that an expert names, [..., M], of contexts [...] or [..., M]; like: [...]."""
    return context if context.ndim > like.ndim else context[..., None]


def _distinct(named):
    """bool [..., M], the first places of the words that are named."""
    same = named[..., :, None] == named[..., None, :]
    return (named >= 0) & ~jnp.tril(same, -1).any(axis=-1)


def _log_sum(log_probs, chosen):
    """log of the sum of the probabilities that are chosen, [...]; the least number of none."""
    least = jnp.finfo(log_probs.dtype).min
    # Not -inf, of words without mass: no gradient comes through it.
    return jax.nn.logsumexp(jnp.where(chosen, jnp.maximum(log_probs, least), least), axis=-1)
