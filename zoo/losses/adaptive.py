"""The adaptive softmax: rare words in clusters with smaller vectors.

Grave et al., "Efficient softmax approximation for GPUs" (2017). Words sorted by frequency are cut
at c_0 < c_1 < ... into a head of the c_0 most frequent words and tails. The head is a softmax over
its words and one class for each tail; a word of tail i has a vector of D / division^i dimensions:

    p(x | h) = p_head(x | h)                              x in the head
    p(x | h) = p_head(tail i | h) softmax(U_i P_i h)_x    x in tail i

It is a distribution of its own, not an approximation: losses and probabilities are exact. Tokens
are sorted by cluster and taken in blocks, and a block only computes the tails that hold its words.
"""

import functools

import jax
import jax.numpy as jnp

from zoo.arrays import products, row_blocks, sharded_functions
from zoo.arrays.sharded_functions import over_tokens
from zoo.arrays.types import accumulator
from zoo.losses import softmax, softmax_decoding, value_checks
from zoo.losses.shape_checks import check_shapes
from zoo.losses.token_blocks import slopes_of_weights, weighted_sum

# Tokens of a block, sorted by cluster: large enough for efficient products, small enough that few
# blocks have words of two clusters.
TOKENS_AT_A_TIME = 128


@over_tokens("hidden")
def adaptive_loss(hidden, weights, bias, tails, ranks):
    """Computes -log p(x | h) of the adaptive softmax, exactly, in blocks of tokens.

    Args:
      hidden: h, [..., D].
      weights: vectors of the c_0 most frequent words and of the tails' classes, [c_0 + tails, D].
      bias: biases of these words and classes, [c_0 + tails].
      tails: pairs (projection [D, D_i], word vectors [V_i, D_i]), the most frequent tail first.
      ranks: the words x, as ranks by frequency: int [...], in [0, c_0 + sum_i V_i).

    Returns:
      [...], nats.

    Raises:
      ValueError: shapes do not agree. TypeError: ranks are not whole numbers.

    Example:
      >>> h, tails = jnp.ones((1, 4)), [(jnp.zeros((4, 2)), jnp.zeros((5, 2)))]
      >>> loss = losses.adaptive_loss(h, jnp.zeros((4, 4)), jnp.zeros(4), tails, jnp.array([6]))
      >>> print(f"{jnp.exp(-loss[0]):.4f}")  # the tail is one of four classes, the word one of five
      0.0500

    Source: Grave et al. (2017), section 4.
    """
    _check(hidden, weights, bias, tails, ranks)
    value_checks.check_ids(_words(bias, tails), ranks=ranks)
    in_head, cluster, tail_row = _targets(bias, tails, ranks)
    of_head, _ = softmax.softmax_loss(hidden, weights, bias, in_head)
    return of_head + _tail_losses(tails, hidden, cluster, tail_row)


@over_tokens("hidden")
def weighted_adaptive_loss(hidden, weights, bias, tails, ranks, token_weights):
    """Computes sum_n u_n loss_n of `adaptive_loss`, and its gradients in the same pass if faster.

    Args:
      hidden: h, [..., D].
      weights: [c_0 + tails, D], see `adaptive_loss`.
      bias: [c_0 + tails].
      tails: pairs (projection [D, D_i], word vectors [V_i, D_i]).
      ranks: int [...].
      token_weights: u, [...].

    Returns:
      A scalar, nats.

    Raises:
      ValueError: shapes do not agree. TypeError: ranks are not whole numbers.

    Example:
      >>> tails = [(jnp.zeros((4, 2)), jnp.zeros((5, 2)))]
      >>> table = jnp.zeros((4, 4)), jnp.zeros(4), tails
      >>> u = jnp.array([0.5, 0.0])  # the second token is padding
      >>> loss = losses.weighted_adaptive_loss(jnp.ones((2, 4)), *table, jnp.array([6, 0]), u)
      >>> print(f"{jnp.exp(-2 * loss):.4f}")
      0.0500

    Source: Grave et al. (2017), section 4.
    """
    _check(hidden, weights, bias, tails, ranks, token_weights=(token_weights, "..."))
    value_checks.check_ids(_words(bias, tails), token_weights, ranks=ranks)
    in_head, cluster, tail_row = _targets(bias, tails, ranks)
    of_head = softmax.weighted_softmax_loss(hidden, weights, bias, in_head, token_weights)
    return of_head + _weighted_tail_losses(tails, hidden, cluster, tail_row, token_weights)


@over_tokens("hidden")
def adaptive_log_probs(hidden, weights, bias, tails):
    """Computes log p of every word, in the order of ranks.

    Args:
      hidden: h, [..., D].
      weights: [c_0 + tails, D], see `adaptive_loss`.
      bias: [c_0 + tails].
      tails: pairs (projection [D, D_i], word vectors [V_i, D_i]).

    Returns:
      [..., V], nats.

    Raises:
      ValueError: shapes do not agree.

    Example:
      >>> tails = [(jnp.zeros((4, 2)), jnp.zeros((2, 2)))]
      >>> log_probs = losses.adaptive_log_probs(jnp.ones(4), jnp.zeros((2, 4)), jnp.zeros(2), tails)
      >>> print(jnp.exp(log_probs))
      [0.5  0.25 0.25]

    Source: Grave et al. (2017), section 4.
    """
    _check(hidden, weights, bias, tails)
    frequent = len(bias) - len(tails)
    head = jax.nn.log_softmax(softmax.logits(hidden, weights, bias), axis=-1)
    parts = [head[..., :frequent]]
    for tail, (projection, words) in enumerate(tails):
        scores = softmax.logits(products.matmul(hidden, projection), words, _no_bias(words))
        within = jax.nn.log_softmax(scores, axis=-1)
        parts.append(head[..., frequent + tail, None] + within)
    return jnp.concatenate(parts, axis=-1)


@over_tokens("hidden")
def adaptive_sample(hidden, weights, bias, tails, key):
    """Draws words from the adaptive softmax: a word or a tail of the head, then a word of the tail.

    Args:
      hidden: h, [..., D].
      weights: [c_0 + tails, D], see `adaptive_loss`.
      bias: [c_0 + tails].
      tails: pairs (projection [D, D_i], word vectors [V_i, D_i]).
      key: a key of `jax.random`.

    Returns:
      Ranks of words, int32 [...].

    Raises:
      ValueError: shapes do not agree.

    Example:
      >>> tails = [(jnp.zeros((4, 2)), jnp.zeros((5, 2)))]
      >>> table = jnp.zeros((2, 4)), jnp.array([9.0, -90.0]), tails  # the tail has no mass
      >>> print(losses.adaptive_sample(jnp.ones((3, 4)), *table, jax.random.key(0)))
      [0 0 0]

    Source: Grave et al. (2017), section 4.
    """
    _check(hidden, weights, bias, tails)
    of_head, *of_tails = jax.random.split(key, 1 + len(tails))
    drawn = softmax_decoding.softmax_sample(hidden, weights, bias, of_head)
    rank, cutoffs = drawn, _cutoffs(bias, tails)
    for tail, (k, (projection, words)) in enumerate(zip(of_tails, tails, strict=True)):
        states = products.matmul(hidden, projection)
        within = softmax_decoding.softmax_sample(states, words, _no_bias(words), k)
        rank = jnp.where(drawn == cutoffs[0] + tail, cutoffs[tail] + within, rank)
    return rank


@over_tokens("hidden")
def adaptive_top_k(hidden, weights, bias, tails, k):
    """Finds the k most probable words of the adaptive softmax, by blocks of each cluster's words.

    Args:
      hidden: h, [..., D].
      weights: [c_0 + tails, D], see `adaptive_loss`.
      bias: [c_0 + tails].
      tails: pairs (projection [D, D_i], word vectors [V_i, D_i]).
      k: the number of words, at most V.

    Returns:
      (log-probabilities [..., k], nats; ranks of words, int32 [..., k]), best first.

    Raises:
      ValueError: shapes do not agree, or k is above V.

    Example:
      >>> tails = [(jnp.zeros((4, 2)), jnp.zeros((2, 2)))]
      >>> table = jnp.zeros((2, 4)), jnp.log(jnp.array([0.3, 0.7])), tails
      >>> log_probs, ranks = losses.adaptive_top_k(jnp.ones(4), *table, 2)
      >>> print(ranks, jnp.exp(log_probs).round(2))
      [1 2] [0.35 0.35]

    Source: Grave et al. (2017), section 4.
    """
    _check(hidden, weights, bias, tails)
    cutoffs = _cutoffs(bias, tails)
    softmax_decoding.check_k(k, _words(bias, tails))
    flat = hidden.reshape(-1, hidden.shape[-1])

    def walk(states, weights, bias, most):
        block = softmax.vocabulary_block(states.shape[0], weights.shape[0])
        return softmax_decoding.blocked_pass(
            states, weights, bias, block, k=min(most, len(weights))
        )

    # The best of the head may include the classes of the tails, which are not words.
    head = walk(flat, weights, bias, k + len(tails))
    is_word = head.words < cutoffs[0]
    found = [(jnp.where(is_word, head.values - head.log_z[:, None], -jnp.inf), head.words)]
    classes = cutoffs[0] + jnp.arange(len(tails))
    of_classes = softmax.logits(flat, weights[classes], bias[classes]) - head.log_z[:, None]
    for tail, (projection, words) in enumerate(tails):
        within = walk(products.matmul(flat, projection), words, _no_bias(words), k)
        log_probs = of_classes[:, tail, None] + within.values - within.log_z[:, None]
        found.append((log_probs, cutoffs[tail] + within.words))
    log_probs, ranks = softmax_decoding.best(k, *found)
    shape = (*hidden.shape[:-1], k)
    return log_probs.reshape(shape), ranks.reshape(shape)


def _check(hidden, weights, bias, tails, ranks=None, **of_tokens):
    if ranks is not None:
        of_tokens["ranks"] = (ranks, "...")
    check_shapes(
        hidden=(hidden, "... D"),
        weights=(weights, "C D"),
        bias=(bias, "C"),
        **of_tokens,
        integers=of_tokens.keys() & {"ranks"},
    )
    if not 0 < len(tails) < len(bias):
        raise ValueError(
            f"tails are {len(tails):,}, and rows of weights {len(bias):,}: give a tail at least, "
            "and a row for each tail and for each word of the head"
        )
    for number, (projection, words) in enumerate(tails):
        check_shapes(
            hidden=(hidden, "... D"),
            **{f"tails[{number}][0]": (projection, "D K"), f"tails[{number}][1]": (words, "V K")},
        )


def _cutoffs(bias, tails):
    """Returns (c_0, c_1, ...), the rank of the first word of each tail."""
    cutoffs = [len(bias) - len(tails)]
    for _, words in tails[:-1]:
        cutoffs.append(cutoffs[-1] + len(words))
    return tuple(cutoffs)


def _words(bias, tails):
    """Counts the words of the head and of all tails, V."""
    return len(bias) - len(tails) + sum(len(words) for _, words in tails)


def _no_bias(words):
    return jnp.zeros(words.shape[0], words.dtype)


def _targets(bias, tails, rank):
    """Returns (class in the head, cluster with 0 for the head, row in the tail) of each target."""
    first = len(bias) - len(tails)
    cutoffs = jnp.asarray(_cutoffs(bias, tails), rank.dtype)
    cluster = sum((rank >= cutoff).astype(rank.dtype) for cutoff in _cutoffs(bias, tails))
    in_head = jnp.where(cluster == 0, rank, first + cluster - 1)
    return in_head, cluster, rank - cutoffs[jnp.maximum(cluster - 1, 0)]


def _tail_losses(tails, hidden, cluster, tail_row):
    """Computes -log p(x | tail of x, h), [...]; 0 for words of the head."""
    rows = cluster.shape[0] if cluster.ndim else 1
    runs, block = sharded_functions.shares(rows, TOKENS_AT_A_TIME, (tails, hidden))
    order = row_blocks.Sorted.by(cluster.ravel(), runs, block)
    flat = hidden.reshape(-1, hidden.shape[-1]), cluster.ravel(), tail_row.ravel()

    def of_tail(h, mine, tail_rows, projection, weights):
        bias = jnp.zeros(weights.shape[0], weights.dtype)
        states, rows = products.matmul(h, projection), jnp.where(mine, tail_rows, 0)
        within = softmax.softmax_loss(states, weights, bias, rows)
        return jnp.where(mine, within[0], 0)

    def no_words(h, mine, tail_rows, projection, weights):
        return sharded_functions.zeros(mine.shape, accumulator(h), h)

    # Recomputed in the backward pass instead of kept for all blocks. The checkpoint is around the
    # conditions, with the tails as arguments: within them, every block would keep the tails, too.
    @jax.checkpoint
    def of_block(tails, h, clusters, tail_rows):
        losses = sharded_functions.zeros(clusters.shape, accumulator(h), h)
        for number, tail in enumerate(tails, 1):
            mine = clusters == number
            losses += jax.lax.cond(mine.any(), of_tail, no_words, h, mine, tail_rows, *tail)
        return losses

    def step(_, columns):
        return None, of_block(tails, *columns)

    _, losses = jax.lax.scan(step, None, order.cut(flat))
    return order.joined(losses).reshape(cluster.shape)


def _weighted_tail_losses(tails, hidden, cluster, tail_row, token_weights):
    """Computes the sum of token_weights * _tail_losses, a scalar; token_weights are [...]."""
    # The tail's loss of a token of weight 0 is only needed for the gradient of its weight: it is
    # computed in the backward pass, if at all.
    mine, idle = (jnp.where(token_weights == 0, *c) for c in ((0, cluster), (cluster, 0)))
    losses = _tail_losses(tails, hidden, mine, tail_row)
    arguments = *jax.lax.stop_gradient((tails, hidden)), idle, tail_row
    return _weighted_sum_with_idle(_tail_losses, losses, token_weights, arguments)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _weighted_sum_with_idle(idle_losses, losses, token_weights, arguments):
    """Computes weighted_sum(losses, token_weights) without the losses of tokens of weight 0.

    Args:
      idle_losses: function of *arguments -> the losses of tokens of weight 0, [...], 0 for all
        others; it is only called for the gradient of the weights.
      losses: the losses, [...], 0 for tokens of weight 0.
      token_weights: [...].
      arguments: arguments of `idle_losses`.
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
