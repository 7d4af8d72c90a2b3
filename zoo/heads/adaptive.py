"""The adaptive softmax: rare words behind clusters with smaller vectors.

Grave et al., "Efficient softmax approximation for GPUs" (2017). Words sorted by frequency are cut
at c_0 < c_1 < ... into a head of the c_0 most frequent words and tails. The head is a softmax over
its words and one class a tail; a word of tail i has a vector of D / division^i numbers:

    p(x | h) = p_head(x | h)                              x in the head
    p(x | h) = p_head(tail i | h) softmax(U_i P_i h)_x    x in tail i

It is a distribution of its own, not an approximation: losses and probabilities are exact. Tokens
are sorted by cluster and taken in blocks, and a block computes the tails only that it has words of.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp

from zoo.arrays.types import Context, Key, Params, Tables
from zoo.errors import UserError, check_least
from zoo.heads.head import Head
from zoo.lexicon import Lexicon
from zoo.lexicon.frequency import frequency_tables
from zoo.losses import softmax, softmax_sum
from zoo.losses.token_weights import slopes_of_weights, weighted_sum

# Tokens that are sorted by cluster and then taken together: few enough that the blocks with words
# of two clusters are few, enough for efficient products.
TOKENS_AT_A_TIME = 128


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _weighted_sum_with_idle(idle_losses, losses, token_weights, arguments):
    """weighted_sum(losses, token_weights), where losses [N] are 0 for tokens of weight 0.

    Args:
      idle_losses: arguments -> the losses of those tokens, [N], 0 for all others. It is called for
        the gradient of the weights alone.
    """
    return weighted_sum(losses, token_weights)


def _forward(idle_losses, losses, token_weights, arguments):
    return weighted_sum(losses, token_weights), (losses, token_weights, arguments)


def _backward(idle_losses, residuals, cotangent):
    losses, token_weights, arguments = residuals
    _, of_sum = jax.vjp(weighted_sum, losses, token_weights)
    of_losses, of_weights = of_sum(cotangent)
    idle = slopes_of_weights(idle_losses(*arguments), token_weights)
    return of_losses, of_weights + cotangent.astype(idle.dtype) * idle, None


_weighted_sum_with_idle.defvjp(_forward, _backward)


@dataclasses.dataclass(frozen=True)
class AdaptiveSoftmax(Head):
    """A softmax over frequent words and clusters, and one within each cluster.

    Attributes:
      cutoffs: c_0 < c_1 < ..., ranks at which the vocabulary is cut. division: each tail's vectors
        are so many times smaller than those of the tail before.
      initial_scale: vectors start uniform in +-initial_scale, projections in +-1/sqrt(D).

    Example:
      >>> head = heads.AdaptiveSoftmax(cutoffs=(2,))
      >>> params, tables = head.init(key, 4, lexicon), head.tables(lexicon)
      >>> head.log_probs(params, tables, hidden).shape
      (2, 3)
    """

    cutoffs: tuple[int, ...] = (2000, 10000)
    division: float = 4.0
    initial_scale: float = 0.05

    laid_out_by_counts = True

    def __post_init__(self):
        check_least(self, "model.head", division=1)
        if not self.cutoffs or list(self.cutoffs) != sorted({*self.cutoffs}) or self.cutoffs[0] < 1:
            raise UserError(
                f"model.head.cutoffs={self.cutoffs}: give one or more whole numbers that rise."
            )

    def tables(self, lexicon: Lexicon) -> Tables:
        """Ranks by frequency: see clusters.frequency_tables."""
        return frequency_tables(lexicon.counts)

    def init(self, key: jax.Array, hidden_size: int, lexicon: Lexicon) -> Params:
        """{"head" [c_0 + tails, D], "head_bias", "projection_i" [D, D_i], "tail_i" [V_i, D_i]}."""
        if self.cutoffs[-1] >= len(lexicon):
            raise UserError(
                f"model.head.cutoffs={self.cutoffs} leave no words for the last cluster: the "
                f"lexicon has {len(lexicon):,}."
            )
        scale, frequent = self.initial_scale, self.cutoffs[0]
        of_head, *of_tails = jax.random.split(key, 1 + 2 * len(self.cutoffs))
        classes = frequent + len(self.cutoffs)
        params = {
            "head": jax.random.uniform(
                of_head, (classes, hidden_size), minval=-scale, maxval=scale
            ),
            "head_bias": jnp.zeros(classes),
        }
        ends = (*self.cutoffs[1:], len(lexicon))
        for place, (start, end) in enumerate(zip(self.cutoffs, ends, strict=True)):
            size = max(1, int(hidden_size / self.division ** (place + 1)))
            for name, k, shape, width in (
                ("projection", of_tails[2 * place], (hidden_size, size), hidden_size**-0.5),
                ("tail", of_tails[2 * place + 1], (end - start, size), scale),
            ):
                params[f"{name}_{place}"] = jax.random.uniform(
                    k, shape, minval=-width, maxval=width
                )
        return params

    def _targets(
        self, tables: Tables, targets: jax.Array
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        """(class in the head, cluster (0: the head), place within the tail) of each target."""
        rank = tables["rank"][targets]
        cutoffs = jnp.asarray(self.cutoffs, rank.dtype)
        cluster = jnp.searchsorted(cutoffs, rank, side="right").astype(rank.dtype)
        in_head = jnp.where(cluster == 0, rank, self.cutoffs[0] + cluster - 1)
        return in_head, cluster, rank - cutoffs[jnp.maximum(cluster - 1, 0)]

    def _tail_losses(self, params: Params, hidden: jax.Array, cluster, place):
        """-log p(x | tail of x, h) of hidden [N, D], [N]; 0 for words of the head."""
        tokens = cluster.size
        block = min(TOKENS_AT_A_TIME, tokens)
        padding = -tokens % block
        cluster = jnp.pad(cluster, (0, padding))
        order = jnp.argsort(cluster)
        hidden = jnp.pad(hidden, ((0, padding), (0, 0)))[order].reshape(-1, block, hidden.shape[-1])
        cluster = cluster[order].reshape(-1, block)
        place = jnp.pad(place, (0, padding))[order].reshape(-1, block)

        def of_tail(h, mine, places, projection, weights):
            bias = jnp.zeros(weights.shape[0], weights.dtype)
            within = softmax.softmax_loss(h @ projection, weights, bias, jnp.where(mine, places, 0))
            return jnp.where(mine, within[0], 0)

        def no_words(h, mine, places, projection, weights):
            return jnp.zeros(mine.shape, softmax.accumulator(h))

        # Computed again in the backward pass rather than kept for all blocks. Around the conditions
        # and with the tails as arguments: within them, every block would keep the tails too.
        @jax.checkpoint
        def of_block(tails, h, clusters, places):
            losses = jnp.zeros(clusters.shape, softmax.accumulator(h))
            for number, tail in enumerate(tails, 1):
                mine = clusters == number
                losses += jax.lax.cond(mine.any(), of_tail, no_words, h, mine, places, *tail)
            return losses

        tails = [(params[f"projection_{i}"], params[f"tail_{i}"]) for i in range(len(self.cutoffs))]

        def step(_, columns):
            return None, of_block(tails, *columns)

        _, losses = jax.lax.scan(step, None, (hidden, cluster, place))
        return jnp.zeros(tokens + padding, losses.dtype).at[order].set(losses.ravel())[:tokens]

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
        in_head, cluster, place = self._targets(tables, targets)
        of_head, _ = softmax.softmax_loss(hidden, params["head"], params["head_bias"], in_head)
        flat = hidden.reshape(-1, hidden.shape[-1])
        of_tails = self._tail_losses(params, flat, cluster.ravel(), place.ravel())
        return of_head + of_tails.reshape(targets.shape)

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
        """sum of token_weights * loss, a scalar in nats."""
        in_head, cluster, place = self._targets(tables, targets)
        of_head = softmax_sum.summed_softmax_loss(
            hidden, params["head"], params["head_bias"], in_head, token_weights
        )
        columns = hidden.reshape(-1, hidden.shape[-1]), cluster.ravel(), place.ravel()
        of_tails = self._summed_tail_losses(params, *columns, token_weights.ravel())
        return of_head + of_tails

    def _summed_tail_losses(
        self, params: Params, hidden: jax.Array, cluster, place, token_weights: jax.Array
    ):
        """sum of token_weights * _tail_losses, a scalar, of token_weights [N]."""
        # A token without weight is none of a tail's work, unless somebody asks for the gradient
        # of its weight, which is the tail's loss: then it is computed, in the backward pass.
        mine, idle = (jnp.where(token_weights == 0, *c) for c in ((0, cluster), (cluster, 0)))
        losses = self._tail_losses(params, hidden, mine, place)
        arguments = jax.lax.stop_gradient((params, hidden)), idle, place
        return _weighted_sum_with_idle(self._idle_losses, losses, token_weights, arguments)

    def _idle_losses(self, params_and_hidden, cluster, place):
        """_tail_losses, as a function of what `_summed_tail_losses` keeps for the weights."""
        params, hidden = params_and_hidden
        return self._tail_losses(params, hidden, cluster, place)

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

    def log_probs(
        self, params: Params, tables: Tables, hidden: jax.Array, *, context: Context = None
    ) -> jax.Array:
        """log p of every word, nats, [..., V]."""
        frequent = self.cutoffs[0]
        head = jax.nn.log_softmax(
            softmax.logits(hidden, params["head"], params["head_bias"]), axis=-1
        )
        parts = [head[..., :frequent]]
        for tail in range(len(self.cutoffs)):
            weights = params[f"tail_{tail}"]
            bias = jnp.zeros(weights.shape[0], weights.dtype)
            scores = softmax.logits(hidden @ params[f"projection_{tail}"], weights, bias)
            within = jax.nn.log_softmax(scores, axis=-1)
            parts.append(head[..., frequent + tail, None] + within)
        return jnp.concatenate(parts, axis=-1)[..., tables["rank"]]

    def sample(
        self,
        params: Params,
        tables: Tables,
        hidden: jax.Array,
        key: jax.Array,
        *,
        context: Context = None,
    ) -> jax.Array:
        """Words drawn from p(. | hidden), int32 [...]: a class of the head, then a word of it."""
        frequent = self.cutoffs[0]
        of_head, *of_tails = jax.random.split(key, 1 + len(self.cutoffs))
        drawn = softmax.softmax_sample(hidden, params["head"], params["head_bias"], of_head)
        rank = drawn
        for tail, k in enumerate(of_tails):
            weights = params[f"tail_{tail}"]
            bias = jnp.zeros(weights.shape[0], weights.dtype)
            projected = hidden @ params[f"projection_{tail}"]
            within = softmax.softmax_sample(projected, weights, bias, k)
            rank = jnp.where(drawn == frequent + tail, self.cutoffs[tail] + within, rank)
        return tables["word"][rank]
