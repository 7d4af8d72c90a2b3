"""The hierarchical softmax in two levels: a class, then a word of the class.

Goodman, "Classes for fast maximum entropy training" (2001); Morin and Bengio (2005). Words sorted
by frequency are cut into C classes of M words each (the last may be smaller):

    p(x | h) = softmax(R h + r)_c(x)  softmax(W_c(x) h + b_c(x))_x

A token costs C + M scores instead of V; with C near the root of V that is 2 sqrt(V).
"""

import dataclasses
import math

import jax
import jax.numpy as jnp

from zoo import rows
from zoo.errors import check_least
from zoo.heads import exact
from zoo.heads.clusters import frequency_tables
from zoo.heads.head import Head


@dataclasses.dataclass(frozen=True)
class HierarchicalSoftmax(Head):
    """A softmax over classes of words and one over the words of a class.

    Attributes:
      classes: C; 0 for the root of V. initial_scale: vectors start uniform in +-initial_scale.
    """

    classes: int = 0
    initial_scale: float = 0.05

    row_tables = ("weights", "bias")
    laid_out_by_counts = True

    def __post_init__(self):
        check_least(self, "model.head", classes=0)

    def _shape(self, vocabulary):
        """(C, M): as few classes as are needed for words in classes of M."""
        wanted = min(self.classes or math.isqrt(vocabulary), vocabulary)
        size = -(-vocabulary // wanted)
        return -(-vocabulary // size), size

    def tables(self, lexicon):
        """Ranks by frequency: see clusters.frequency_tables."""
        return frequency_tables(lexicon.counts)

    def init(self, key, hidden_size, lexicon):
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

    def _scores_within(self, tables, weights, bias, classes, hidden):
        """log p(place | class, h), [..., M], from the rows of the classes of the tokens."""
        accumulator = jnp.promote_types(hidden.dtype, jnp.float32)
        scores = jnp.einsum("...md,...d->...m", weights, hidden, preferred_element_type=accumulator)
        size = scores.shape[-1]
        places = jax.lax.broadcasted_iota(classes.dtype, scores.shape, scores.ndim - 1)
        there = classes[..., None] * size + places < tables["rank"].shape[0]
        return jax.nn.log_softmax(jnp.where(there, scores + bias, -jnp.inf), axis=-1)

    def loss(self, params, tables, hidden, targets, *, key=None, context=None):
        """-log p(targets | hidden), nats, [...]; exact."""
        rank = tables["rank"][targets]
        classes, places = jnp.divmod(rank, params["bias"].shape[1])
        of_class, _ = exact.softmax_loss(hidden, params["classes"], params["class_bias"], classes)
        weights = rows.take(params["weights"], classes)
        bias = rows.take(params["bias"], classes)
        within = self._scores_within(tables, weights, bias, classes, hidden)
        return of_class - jnp.take_along_axis(within, places[..., None], axis=-1)[..., 0]

    def log_prob_and_log_z(self, params, tables, hidden, targets, *, context=None):
        """(log p(targets | hidden), 0), nats, [...]: every softmax is normalised as it stands."""
        log_prob = -self.loss(params, tables, hidden, targets)
        return log_prob, jnp.zeros_like(log_prob)

    def _log_class_probs(self, params, hidden):
        return jax.nn.log_softmax(
            exact.logits(hidden, params["classes"], params["class_bias"]), axis=-1
        )

    def log_probs(self, params, tables, hidden, *, context=None):
        """log p of every word, nats, [..., V]."""
        count, size, width = params["weights"].shape
        flat = params["weights"].reshape(count * size, width)
        scores = exact.logits(hidden, flat, params["bias"].reshape(-1))
        there = jnp.arange(count * size) < tables["rank"].shape[0]
        scores = jnp.where(jnp.broadcast_to(there, scores.shape), scores, -jnp.inf)
        within = jax.nn.log_softmax(scores.reshape(*hidden.shape[:-1], count, size), axis=-1)
        joint = self._log_class_probs(params, hidden)[..., None] + within
        return joint.reshape(*hidden.shape[:-1], -1)[..., tables["rank"]]

    def sample(self, params, tables, hidden, key, *, context=None):
        """Words drawn from p(. | hidden), int32 [...]: a class, then one of its words."""
        of_class, of_word = jax.random.split(key)
        classes = jax.random.categorical(of_class, self._log_class_probs(params, hidden))
        weights, bias = params["weights"][classes], params["bias"][classes]
        within = self._scores_within(tables, weights, bias, classes, hidden)
        rank = classes * within.shape[-1] + jax.random.categorical(of_word, within)
        return tables["word"][rank]

    def top_k(self, params, tables, hidden, k, *, context=None):
        """The k most probable words: (log-probabilities [..., k], words [..., k])."""
        return jax.lax.top_k(self.log_probs(params, tables, hidden), k)
