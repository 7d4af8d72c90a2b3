"""The hierarchical softmax in two levels: a class, then a word of the class.

Goodman, "Classes for fast maximum entropy training" (2001); Morin and Bengio (2005). Words sorted
by frequency are cut into C classes of M words each (the last may be smaller):

    p(x | h) = softmax(R h + r)_c(x)  softmax(W_c(x) h + b_c(x))_x

A token costs C + M scores instead of V; with C near the root of V that is 2 sqrt(V). It reads
the M rows of W of its class, so rows are gathered for some tokens at a time.
"""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp

from zoo.arrays import blocks, rows
from zoo.arrays.types import Context, Key, Params, Tables
from zoo.errors import check_least
from zoo.heads.head import Head
from zoo.lexicon import Lexicon
from zoo.lexicon.frequency import frequency_tables
from zoo.losses import softmax

# Numbers of W gathered at a time: 64 MiB in float32. Of 800,000 words with vectors of 512, that is
# 36 tokens, enough to keep a core at work between the steps of a loop.
GATHERED_AT_A_TIME = 16 * 1024 * 1024


def token_block(tokens, size, width):
    """Tokens to take at a time, of which each reads `size` rows of `width` numbers."""
    return blocks.even(tokens, GATHERED_AT_A_TIME // (size * width))


def within_log_probs(weights, bias, hidden, classes, vocabulary):
    """log softmax(W_c h + b_c), [..., M], over those places of class c that hold a word.

    Args:
      weights: W [C, M, D]; bias: b [C, M], either of which may stand for a table: see
      zoo.arrays.rows. hidden: [..., D]; classes: c, int [...]. vocabulary: V; words fill the
      classes in order.
    """
    gathered = rows.take(weights, classes), rows.take(bias, classes)
    return _log_probs(*gathered, hidden, classes, vocabulary)


def _log_probs(weights, bias, hidden, classes, vocabulary):
    """The same of the rows of each token, weights [..., M, D] and bias [..., M]."""
    scores = jnp.einsum(
        "...md,...d->...m", weights, hidden, preferred_element_type=softmax.accumulator(hidden)
    )
    size = scores.shape[-1]
    places = jax.lax.broadcasted_iota(classes.dtype, scores.shape, scores.ndim - 1)
    there = classes[..., None] * size + places < vocabulary
    return jax.nn.log_softmax(jnp.where(there, scores + bias, -jnp.inf), axis=-1)


@functools.partial(jax.custom_vjp, nondiff_argnums=(5, 6))
def blocked_within_loss(weights, bias, hidden, classes, places, vocabulary, block):
    """-log softmax(W_c h + b_c)_place, nats, [N], `block` tokens at a time.

    Beyond arguments and results the memory is O(block * M * D) forward and backward, where rows are
    gathered once more.

    Args:
      hidden: [N, D]; classes, places: int [N]; the others as within_log_probs has them.
      block: need not divide N.
    """

    def of_block(columns):
        h, c, p = columns
        within = within_log_probs(weights, bias, h, c, vocabulary)
        return -jnp.take_along_axis(within, p[:, None], axis=-1)[:, 0]

    return blocks.map_rows(of_block, (hidden, classes, places), block)


def _forward(weights, bias, hidden, classes, places, vocabulary, block):
    arguments = weights, bias, hidden, classes, places
    return blocked_within_loss(*arguments, vocabulary, block), arguments


def _backward(vocabulary, block, arguments, cotangents):
    # Written out because autodiff of a loop adds a gradient of all of W, mostly zeros, a block.
    weights, bias, hidden, classes, places = arguments

    def step(gradients, columns):
        of_weights, of_bias = gradients
        h, c, p, u = columns
        w = weights[c]
        within = _log_probs(w, bias[c], h, c, vocabulary)
        slopes = softmax.difference(jnp.exp(within) * u[:, None], p, u)
        of_hidden = jnp.einsum(
            "nm,nmd->nd", slopes.astype(h.dtype), w, preferred_element_type=slopes.dtype
        )
        of_rows = slopes[..., None] * h[:, None].astype(slopes.dtype)
        of_weights = of_weights.at[c].add(of_rows.astype(of_weights.dtype))
        of_bias = of_bias.at[c].add(slopes.astype(of_bias.dtype))
        return (of_weights, of_bias), of_hidden.astype(h.dtype)

    # Tokens that fill the last block are zeros, cotangents too: they add nothing.
    columns = blocks.of_rows((hidden, classes, places, cotangents), min(block, len(hidden)))
    initial = tuple(jnp.zeros(x.shape, softmax.accumulator(x)) for x in (weights, bias))
    (of_weights, of_bias), of_hidden = jax.lax.scan(step, initial, columns)
    of_hidden = of_hidden.reshape(-1, hidden.shape[1])[: len(hidden)]
    return of_weights.astype(weights.dtype), of_bias.astype(bias.dtype), of_hidden, None, None


blocked_within_loss.defvjp(_forward, _backward)


@dataclasses.dataclass(frozen=True)
class HierarchicalSoftmax(Head):
    """A softmax over classes of words and one over the words of a class.

    Rows of W are gathered for so many tokens at a time that they hold GATHERED_AT_A_TIME numbers at
    most, forward and backward. With row-sparse training, whose gradients are a row a lookup, the M
    rows of every token are held at once.

    Attributes:
      classes: C; 0 for the root of V. initial_scale: vectors start uniform in +-initial_scale.

    Example:
      >>> head = heads.HierarchicalSoftmax(classes=2)
      >>> params, tables = head.init(key, 4, lexicon), head.tables(lexicon)
      >>> head.log_probs(params, tables, hidden).shape
      (2, 3)
    """

    classes: int = 0
    initial_scale: float = 0.05

    row_tables = ("weights", "bias")
    laid_out_by_counts = True

    def __post_init__(self):
        check_least(self, "model.head", classes=0)

    def _shape(self, vocabulary: int):
        """(C, M): as few classes as are needed for words in classes of M."""
        wanted = min(self.classes or math.isqrt(vocabulary), vocabulary)
        size = -(-vocabulary // wanted)
        return -(-vocabulary // size), size

    def tables(self, lexicon: Lexicon) -> Tables:
        """Ranks by frequency: see clusters.frequency_tables."""
        return frequency_tables(lexicon.counts)

    def init(self, key: jax.Array, hidden_size: int, lexicon: Lexicon) -> Params:
        """{"classes" R [C, D], "class_bias" r [C], "weights" W [C, M, D], "bias" b [C, M]}.

        Places beyond the V-th word hold no word and are masked wherever they are read.
        """
        count, size = self._shape(len(lexicon))
        of_classes, of_words = jax.random.split(key)
        scale = self.initial_scale

        def uniform(k, *shape):
            return jax.random.uniform(k, shape, minval=-scale, maxval=scale)

        return {
            "classes": uniform(of_classes, count, hidden_size),
            "class_bias": jnp.zeros(count),
            "weights": uniform(of_words, count, size, hidden_size),
            "bias": jnp.zeros((count, size)),
        }

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
        """-log p(targets | hidden), nats, [...]; exact."""
        rank = tables["rank"][targets]
        classes, places = jnp.divmod(rank, params["bias"].shape[1])
        of_class, _ = softmax.softmax_loss(hidden, params["classes"], params["class_bias"], classes)
        weights, bias, vocabulary = params["weights"], params["bias"], tables["rank"].shape[0]
        block = token_block(targets.size, *weights.shape[1:])
        # Lookups that are watched are noted as they are traced: they cannot be in a loop.
        if block == targets.size or isinstance(weights, rows.Watched):
            within = within_log_probs(weights, bias, hidden, classes, vocabulary)
            return of_class - jnp.take_along_axis(within, places[..., None], axis=-1)[..., 0]
        flat = hidden.reshape(-1, hidden.shape[-1]), classes.reshape(-1), places.reshape(-1)
        of_place = blocked_within_loss(weights, bias, *flat, vocabulary, block)
        return of_class + of_place.reshape(targets.shape)

    def log_prob_and_log_z(
        self,
        params: Params,
        tables: Tables,
        hidden: jax.Array,
        targets: jax.Array,
        *,
        context: Context = None,
    ) -> tuple[jax.Array, jax.Array]:
        """(log p(targets | hidden), 0), nats, [...]: every softmax is normalised as it stands."""
        log_prob = -self.loss(params, tables, hidden, targets)
        return log_prob, jnp.zeros_like(log_prob)

    def _log_class_probs(self, params: Params, hidden: jax.Array):
        return jax.nn.log_softmax(
            softmax.logits(hidden, params["classes"], params["class_bias"]), axis=-1
        )

    def log_probs(
        self, params: Params, tables: Tables, hidden: jax.Array, *, context: Context = None
    ) -> jax.Array:
        """log p of every word, nats, [..., V]."""
        count, size, width = params["weights"].shape
        flat = params["weights"].reshape(count * size, width)
        scores = softmax.logits(hidden, flat, params["bias"].reshape(-1))
        there = jnp.arange(count * size) < tables["rank"].shape[0]
        scores = jnp.where(jnp.broadcast_to(there, scores.shape), scores, -jnp.inf)
        within = jax.nn.log_softmax(scores.reshape(*hidden.shape[:-1], count, size), axis=-1)
        joint = self._log_class_probs(params, hidden)[..., None] + within
        return joint.reshape(*hidden.shape[:-1], -1)[..., tables["rank"]]

    def sample(
        self,
        params: Params,
        tables: Tables,
        hidden: jax.Array,
        key: jax.Array,
        *,
        context: Context = None,
    ) -> jax.Array:
        """Words drawn from p(. | hidden), int32 [...]: a class, then one of its words."""
        of_class, of_word = jax.random.split(key)
        classes = jax.random.categorical(of_class, self._log_class_probs(params, hidden))
        weights, bias, vocabulary = params["weights"], params["bias"], tables["rank"].shape[0]

        def of_block(columns):
            h, c = columns
            return within_log_probs(weights, bias, h, c, vocabulary)

        flat = hidden.reshape(-1, hidden.shape[-1]), classes.reshape(-1)
        within = blocks.map_rows(of_block, flat, token_block(classes.size, *weights.shape[1:]))
        places = jax.random.categorical(of_word, within).reshape(classes.shape)
        return tables["word"][classes * bias.shape[1] + places]
