"""The adaptive softmax: rare words in clusters with smaller vectors.

Grave et al., "Efficient softmax approximation for GPUs" (2017). Words sorted by frequency are cut
at c_0 < c_1 < ... into a head of the c_0 most frequent words and tails. The head is a softmax over
its words and one class for each tail; a word of tail i has a vector of D / division^i dimensions:

    p(x | h) = p_head(x | h)                              x in the head
    p(x | h) = p_head(tail i | h) softmax(U_i P_i h)_x    x in tail i

It is a distribution of its own, not an approximation: losses and probabilities are exact. Tokens
are sorted by cluster and taken in blocks, and a block only computes the tails that hold its words.
The weighted sum, which training uses, computes its gradients in the same pass.
"""

import functools
import math
from collections.abc import Sequence
from typing import TypeAlias

import jax
import jax.numpy as jnp

from zoo.base.arrays import products, row_blocks, sharded_functions
from zoo.base.arrays.precision import accumulator, as_wide, cast_like
from zoo.base.arrays.sharded_functions import over_tokens, vary_together
from zoo.base.arrays.types import Array
from zoo.losses import softmax, token_blocks, top_k, value_checks
from zoo.losses.shaping import UNSHAPED
from zoo.losses.softmax import TermOptions
from zoo.losses.weighted_softmax import weighted_softmax_loss

# Tokens of a block, sorted by cluster: large enough for efficient products, small enough that few
# blocks have words of two clusters, which each of the clusters computes. On CPU, products of few
# tokens are efficient: with 32 of 1,120 tokens a step takes 0.7 of the time of 128.
TOKENS_AT_A_TIME = 128
MOST_TOKENS_ON_CPU = 32
# Logits of a tail that losses of each token hold for their gradients on a device, 128 MiB; of more,
# they are computed again.
LOGITS_HELD = 1 << 25
# The projection [D, D_i] and word vectors [V_i, D_i] of each tail.
Tails: TypeAlias = Sequence[tuple[Array, Array]]


@over_tokens("hidden")
def adaptive_loss(hidden: Array, weights: Array, bias: Array, tails: Tails, ranks: Array) -> Array:
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
    value_checks.check_ids(_vocabulary_size(bias, tails), ranks=ranks)
    in_head, cluster, tail_row = _head_and_tail_targets(bias, tails, ranks)
    head_losses, _ = softmax.softmax_loss(hidden, weights, bias, in_head)
    tail_losses = _tail_losses(*_flatten(tails, hidden, cluster, tail_row))
    losses = head_losses + tail_losses.reshape(ranks.shape)
    return value_checks.nan_where_invalid(losses, _vocabulary_size(bias, tails), ranks)


@over_tokens("hidden")
def weighted_adaptive_loss(
    hidden: Array, weights: Array, bias: Array, tails: Tails, ranks: Array, token_weights: Array
) -> Array:
    """Computes sum_n u_n loss_n of `adaptive_loss`, and its gradients in the same pass if faster.

    Args:
      hidden, weights, bias, tails, ranks: see `adaptive_loss`.
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
    value_checks.check_ids(_vocabulary_size(bias, tails), token_weights, ranks=ranks)
    in_head, cluster, tail_row = _head_and_tail_targets(bias, tails, ranks)
    loss = weighted_softmax_loss(hidden, weights, bias, in_head, token_weights)
    tails, h, cluster, tail_row, u = _flatten(tails, hidden, cluster, tail_row, token_weights)
    h, u = token_blocks.zero_padding_states(h, u)
    if sharded_functions.grid((h, tails))[1] > 1:  # log Z is not known within the loop over blocks
        loss += token_blocks.weighted_sum(_tail_losses(tails, h, cluster, tail_row), u)
    else:
        loss += _weighted_tail_loss(tails, h, cluster, tail_row, u)
    return value_checks.nan_where_invalid(loss, _vocabulary_size(bias, tails), ranks, token_weights)


@over_tokens("hidden")
def adaptive_log_probs(hidden: Array, weights: Array, bias: Array, tails: Tails) -> Array:
    """Computes log p of every word, in the order of ranks.

    Args:
      hidden, weights, bias, tails: see `adaptive_loss`.

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
        scores = softmax.logits(products.matmul(hidden, projection), words, _zero_bias(words))
        parts.append(head[..., frequent + tail, None] + jax.nn.log_softmax(scores, axis=-1))
    return jnp.concatenate(parts, axis=-1)


@over_tokens("hidden")
def adaptive_sample(hidden: Array, weights: Array, bias: Array, tails: Tails, key: Array) -> Array:
    """Draws words from the adaptive softmax: a word or a tail of the head, then a word of the tail.

    Args:
      hidden, weights, bias, tails: see `adaptive_loss`.
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
    value_checks.check_key("key", key)
    _check(hidden, weights, bias, tails)
    head_key, *tail_keys = jax.random.split(key, 1 + len(tails))
    head_ranks = top_k.softmax_sample(hidden, weights, bias, head_key)
    rank, cutoffs = head_ranks, _cutoffs(bias, tails)
    for tail, (k, (projection, words)) in enumerate(zip(tail_keys, tails, strict=True)):
        states = products.matmul(hidden, projection)
        within = top_k.softmax_sample(states, words, _zero_bias(words), k)
        rank = jnp.where(head_ranks == cutoffs[0] + tail, cutoffs[tail] + within, rank)
    return rank


@over_tokens("hidden")
def adaptive_top_k(
    hidden: Array, weights: Array, bias: Array, tails: Tails, k: int
) -> tuple[Array, Array]:
    """Finds the k most probable words of the adaptive softmax, by blocks of each cluster's words.

    Args:
      hidden, weights, bias, tails: see `adaptive_loss`.
      k: the number of words, at most V.

    Returns:
      (log-probabilities [..., k], nats; ranks of words, int32 [..., k]), best first.

    Raises:
      ValueError: shapes do not agree, or k is not from 1 to V. TypeError: k is an array.

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
    top_k.check_k(k, _vocabulary_size(bias, tails))
    flat = hidden.reshape(-1, hidden.shape[-1])

    def best_words(states, weights, bias, count):
        return top_k.vocabulary_pass((states, weights, bias), UNSHAPED, k=min(count, len(weights)))

    # The best of the head may include the classes of the tails, which are not words.
    head = best_words(flat, weights, bias, k + len(tails))
    is_word = head.words < cutoffs[0]
    candidates = [(jnp.where(is_word, head.values - head.log_z[:, None], -jnp.inf), head.words)]
    classes = cutoffs[0] + jnp.arange(len(tails))
    class_log_probs = softmax.logits(flat, weights[classes], bias[classes]) - head.log_z[:, None]
    for tail, (projection, words) in enumerate(tails):
        within = best_words(products.matmul(flat, projection), words, _zero_bias(words), k)
        log_probs = class_log_probs[:, tail, None] + within.values - within.log_z[:, None]
        candidates.append((log_probs, cutoffs[tail] + within.words))
    log_probs, ranks = top_k.select_best(k, *candidates)
    shape = (*hidden.shape[:-1], k)
    return log_probs.reshape(shape), ranks.reshape(shape)


def _check(hidden, weights, bias, tails, ranks=None, **token_arrays):
    """Raises ValueError unless shapes agree and there is a tail and a word of the head, and
    TypeError unless ranks are integers; further `token_arrays` are name=(array, axes)."""
    if ranks is not None:
        token_arrays["ranks"] = (ranks, "...")
    value_checks.check_shapes(
        hidden=(hidden, "... D"),
        weights=(weights, "C D"),
        bias=(bias, "C"),
        **token_arrays,
        integers=token_arrays.keys() & {"ranks"},
    )
    if not 0 < len(tails) < len(bias):
        raise ValueError(
            f"tails are {len(tails):,}, and rows of weights {len(bias):,}: give a tail at least, "
            "and a row for each tail and for each word of the head"
        )
    for number, (projection, words) in enumerate(tails):
        value_checks.check_shapes(
            hidden=(hidden, "... D"),
            **{f"tails[{number}][0]": (projection, "D K"), f"tails[{number}][1]": (words, "V K")},
        )


def _cutoffs(bias, tails):
    """Returns (c_0, c_1, ...), the rank of the first word of each tail."""
    cutoffs = [len(bias) - len(tails)]
    for _, words in tails[:-1]:
        cutoffs.append(cutoffs[-1] + len(words))
    return tuple(cutoffs)


def _vocabulary_size(bias, tails):
    """Counts the words of the head and of all tails, V."""
    return len(bias) - len(tails) + sum(len(words) for _, words in tails)


def _zero_bias(words):
    """Returns zeros [V_i], the bias of a tail's word vectors [V_i, D_i]."""
    return jnp.zeros(words.shape[0], words.dtype)


def _head_and_tail_targets(bias, tails, ranks):
    """Returns (class in the head, cluster with 0 for the head, row in the tail) of each rank; the
    row of a word of the head is below 0."""
    first, ranks = len(bias) - len(tails), jnp.asarray(ranks, jnp.int32)  # cutoffs may not fit int8
    cutoffs = jnp.asarray(_cutoffs(bias, tails), ranks.dtype)
    cluster = sum((ranks >= cutoff).astype(ranks.dtype) for cutoff in _cutoffs(bias, tails))
    in_head = jnp.where(cluster == 0, ranks, first + cluster - 1)
    return in_head, cluster, ranks - cutoffs[jnp.maximum(cluster - 1, 0)]


def _sort(tails, hidden, cluster):
    """Sorts tokens [N] by cluster, within runs that each lie on one device."""
    block, arrays = TOKENS_AT_A_TIME, (tails, hidden)
    if sharded_functions.platform(arrays) == "cpu":
        block = min(block, MOST_TOKENS_ON_CPU)
    runs, block = sharded_functions.split_rows(cluster.shape[0], block, arrays)
    token_runs, word_runs = sharded_functions.grid(arrays)
    runs = math.gcd(runs, token_runs) if word_runs > 1 else runs
    return row_blocks.SortedRows.from_keys(cluster, runs, block)


def _filled_range(filled):
    """Returns (number of the first block with words, number after the last), or (0, 0)."""
    numbers = jnp.arange(filled.shape[0])
    end = jnp.where(filled, numbers + 1, 0).max()
    return jnp.where(filled, numbers, end).min(), end


def _flatten(tails, hidden, *token_arrays):
    """Returns (tails, hidden [N, D], *token arrays [N]) of tokens [...], ready for a loop."""
    arrays = hidden.reshape(-1, hidden.shape[-1]), *(array.ravel() for array in token_arrays)
    return vary_together(([*map(tuple, tails)], *arrays))


def _tail_losses(tails, hidden, cluster, tail_row):
    """Computes -log p(x | tail of x, h) of tokens [N]; 0 for words of the head."""
    if sharded_functions.grid((hidden, tails))[1] > 1:
        return _tail_losses_by_runs(tails, hidden, cluster, tail_row)
    return _tail_losses_by_blocks(tails, hidden, cluster, tail_row)


@jax.custom_vjp
def _tail_losses_by_blocks(tails, hidden, cluster, tail_row):
    """Computes the losses by blocks of tokens, with gradients in a second pass over them."""
    order = _sort(tails, hidden, cluster)
    h, clusters, rows = order.cut((hidden, cluster, tail_row))
    dtype = jnp.result_type(accumulator(hidden), *jax.tree.leaves(tails))
    losses = sharded_functions.zeros(clusters.shape, dtype, hidden)
    for tail, (projection, words) in enumerate(tails, 1):
        in_tail = clusters == tail
        targets = jnp.where(in_tail, rows, 0)

        def step(number, losses, arrays=(projection, words), in_tail=in_tail, targets=targets):
            projection, words = arrays
            table = products.matmul(h[number], projection), words, _zero_bias(words)
            terms = softmax.softmax_terms(table, targets[number], None, UNSHAPED, TermOptions())
            return losses.at[number].add(jnp.where(in_tail[number], terms.loss, 0))

        first, end = _filled_range(in_tail.any(axis=1))
        losses = jax.lax.fori_loop(first, end, step, losses)
    return order.join(losses)


def _tail_losses_backward(arguments, cotangents):
    """Computes the gradients of tails and hidden; the losses' cotangents weigh the tokens."""
    _, tails, hidden, _ = _tail_loss_and_gradients(*(*arguments, cotangents))
    return tails, hidden, None, None


_tail_losses_by_blocks.defvjp(
    lambda *arrays: (_tail_losses_by_blocks(*arrays), arrays), _tail_losses_backward
)


def _tail_losses_by_runs(tails, hidden, cluster, tail_row):
    """Computes the losses where words lie on several devices. A device has the scores of its tokens
    and of a run of each tail's words: nothing is sent in a loop."""
    order = _sort(tails, hidden, cluster)
    grid = order.order.shape[0], sharded_functions.grid((hidden, tails))[1]
    losses: Array | float = 0.0
    sorted_clusters = order.cut(cluster)
    for tail, (projection, words) in enumerate(tails, 1):
        table = as_wide(products.matmul(hidden, projection), words), words, _zero_bias(words)
        is_filled = (sorted_clusters == tail).any(axis=1)
        function = functools.partial(_terms_of_blocks, order.size, is_filled)
        terms = softmax.terms_by_runs(grid, function, table, tail_row, cluster)
        losses = jnp.where(cluster == tail, terms.loss, losses)
    return losses


def _terms_of_blocks(size, is_filled, operands, targets, cluster):
    """Computes the terms of tokens [n] by blocks, sorted by cluster; 0 in blocks that have no words
    of the tail."""
    states, *table = operands
    is_held = targets.size * len(table[0]) <= LOGITS_HELD
    block = softmax.vocabulary_block(size, *table[0].shape)

    def compute(states, rows):
        arguments = (states, *table), rows, UNSHAPED
        if is_held:
            return softmax.plain_terms(TermOptions(), *arguments)
        return softmax.blocked_terms(TermOptions(), block, *arguments)

    def step(_, arrays):
        is_filled, *tokens = arrays
        shapes = jax.eval_shape(compute, *tokens)
        zeros = jax.tree.map(lambda x: sharded_functions.zeros(x.shape, x.dtype, states), shapes)
        return None, jax.lax.cond(is_filled, compute, lambda *_: zeros, *tokens)

    order = row_blocks.SortedRows.from_keys(cluster, 1, size)
    _, terms = jax.lax.scan(step, None, (is_filled, *order.cut((states, targets))))
    return jax.tree.map(order.join, terms)


@jax.custom_vjp
def _weighted_tail_loss(tails, hidden, cluster, tail_row, token_weights):
    """Computes sum_n u_n loss_n of the tails of tokens [N], with gradients in the forward pass."""
    cluster = jnp.where(token_weights == 0, 0, cluster)
    return token_blocks.weighted_sum(_tail_losses(tails, hidden, cluster, tail_row), token_weights)


def _weighted_tail_forward(*arguments):
    """Computes the sum and, for the backward pass, its gradients."""
    total, *gradients = _tail_loss_and_gradients(*arguments)
    return total, gradients


def _weighted_tail_backward(gradients, cotangent):
    """Scales the gradients by the cotangent of the sum; clusters and rows get none."""
    tails, hidden, token_weights = token_blocks.scale_gradients(gradients, cotangent)
    return tails, hidden, None, None, token_weights


_weighted_tail_loss.defvjp(_weighted_tail_forward, _weighted_tail_backward)


def _tail_loss_and_gradients(tails, hidden, cluster, tail_row, token_weights):
    """Computes sum_n u_n loss_n of the tails of tokens [N], and in the same pass its gradients:
    (sum, gradients for the tails, for hidden [N, D], for the weights [N]). Words of the head add
    nothing."""
    order = _sort(tails, hidden, cluster)
    h, clusters, rows, weights = order.cut((hidden, cluster, tail_row, token_weights))
    clusters, runs = jnp.where(order.is_first_copy(), clusters, 0), order.order.shape[0]

    def zeros(x, *runs):
        return sharded_functions.zeros((*runs, *x.shape), accumulator(x), hidden)

    tail_gradients, sums = [], (zeros(weights[0, 0], runs), zeros(h), zeros(weights))
    for tail, arrays in enumerate(tails, 1):
        in_tail = clusters == tail
        blocks = h, jnp.where(in_tail, weights, 0), jnp.where(in_tail, rows, 0)

        def step(number, carry, arrays=arrays, in_tail=in_tail, blocks=blocks):
            tail_sum, (total, hidden_sum, weight_sum) = carry
            results = _block_loss_and_gradients(runs, arrays, *(x[number] for x in blocks))
            loss, tail_part, hidden_part, weight_part = results
            weight_part = jnp.where(in_tail[number], weight_part, 0)
            return token_blocks.add_gradients(tail_sum, tail_part), (
                total + loss.astype(total.dtype),
                hidden_sum.at[number].add(hidden_part.astype(hidden_sum.dtype)),
                weight_sum.at[number].add(weight_part.astype(weight_sum.dtype)),
            )

        first, end = _filled_range(in_tail.any(axis=1))
        initial = jax.tree.map(lambda x: zeros(x, runs), arrays), sums
        tail_sum, sums = jax.lax.fori_loop(first, end, step, initial)
        tail_gradients.append(cast_like(jax.tree.map(lambda g: g.sum(axis=0), tail_sum), arrays))
    total, *token_sums = sums
    token_gradients = cast_like([*map(order.join, token_sums)], [hidden, token_weights])
    return total.sum(), tail_gradients, *token_gradients


def _block_loss_and_gradients(runs, tail, *token_arrays):
    """Returns (the weighted loss of a block of tokens within a tail, its gradients for the tail,
    for hidden and for the weights). The loss and the tail's gradients are [runs, ...]: a run lies
    on one device, so that nothing is summed over devices here."""
    differentiate = jax.value_and_grad(_weighted_block, (0, 1, 2))
    if runs == 1:
        loss, (tail_gradients, *gradients) = differentiate(tail, *token_arrays)
        return loss, jax.tree.map(lambda g: g[None], tail_gradients), *gradients
    by_run = [x.reshape(runs, -1, *x.shape[1:]) for x in token_arrays]
    differentiate = jax.vmap(differentiate, (None, 0, 0, 0))
    run_losses, (tail_gradients, *gradients) = differentiate(tail, *by_run)
    return run_losses, tail_gradients, *(g.reshape(-1, *g.shape[2:]) for g in gradients)


def _weighted_block(tail, hidden, token_weights, rows):
    """Computes the weighted sum of the losses of a block of tokens within a tail."""
    projection, words = tail
    states = products.matmul(hidden, projection)
    return weighted_softmax_loss(states, words, _zero_bias(words), rows, token_weights)
