"""Exact softmax losses that never hold a [tokens, V] array.

For logits o = W h + c over V classes, the loss of a target x is, in nats,

    loss(h, x) = log Z - o_x,    log Z = log sum_v exp(o_v).

`plain_softmax_loss` computes this formula directly. `blocked_softmax_loss` computes it by blocks of
the vocabulary, with a running log-sum-exp, and recomputes the logits in its backward pass: it gives
losses per token in memory for tokens * block logits. `softmax_top_k` finds the most probable words
in the same way, and `softmax_sample` draws.

Training uses `weighted_softmax_loss`, the weighted sum of the losses by blocks of tokens. Its
gradients are computed in the forward pass, from the logits of each block (see
`zoo.losses.token_blocks`): no product is computed twice, where losses per token recompute the
logits. In return, it gives only a sum, whose weights must be known beforehand.

Classes may have a measure m_nv that depends on the token, such as their mass under a background
with a context: log Z = log sum_v m_nv exp(o_v). An array of measures, [tokens, V], would be as
large as the logits, so a function computes it, `log_measure`, for one block of tokens at a time.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from zoo.arrays import products, row_blocks, row_lookup, sharded_functions
from zoo.arrays.sharded_functions import over_tokens
from zoo.arrays.types import accumulator
from zoo.losses import token_blocks, value_checks
from zoo.losses.token_blocks import present_states, weighted_rows, weighted_sum

# Logits held at a time. 3 Mi float32 logits (12 MiB) keep the products efficient and stay in cache.
LOGITS_AT_A_TIME = 3 * 1024 * 1024
# Rows of W at a time: with 256 columns they fill 2 MiB, a core's cache, which is faster than the
# larger products of larger blocks. Of fewer columns, as in tails of an adaptive softmax, up to
# NARROW times as many rows: the products of small blocks are too small to be shared by two cores.
MOST_ROWS_AT_A_TIME = 2048
NARROW = 8
LEAST_ROWS_AT_A_TIME = 128

# Every block of tokens reads W and adds to a [V, D] gradient. With fewer tokens than this (V above
# about 24,000), blocks of the vocabulary are faster, although they compute logits twice.
LEAST_TOKENS_AT_A_TIME = 128

# The number of tokens for which blocks are chosen if a program is exported for any number.
TOKENS_OF_ANY = 1024


def vocabulary_block(tokens: int, vocabulary: int, columns: int) -> int:
    """Returns the number of rows of W in a block; all of them where the logits are few."""
    if not row_blocks.is_known(tokens):
        tokens = TOKENS_OF_ANY
    most = LOGITS_AT_A_TIME // max(tokens, 1)
    if vocabulary <= most:
        return vocabulary
    rows = MOST_ROWS_AT_A_TIME * min(max(256 // max(columns, 1), 1), NARROW)
    return min(vocabulary, rows, max(LEAST_ROWS_AT_A_TIME, most))


def plain_softmax_loss(hidden, weights, bias, targets):
    """Computes log sum_v exp(w_v . h + c_v) - (w_x . h + c_x); holds all logits.

    Gives (loss [N], log Z [N]) in nats.
    """
    all_logits = logits(hidden, weights, bias)
    log_z = jax.nn.logsumexp(all_logits, axis=-1)
    return log_z - jnp.take_along_axis(all_logits, targets[:, None], axis=-1)[:, 0], log_z


def logits(hidden, weights, bias):
    """Computes w_v . h + c_v, [..., V], in at least float32."""
    scores = products.matmul_transposed(hidden, weights)
    return scores + jnp.broadcast_to(bias.astype(scores.dtype), scores.shape)


def target_logits(hidden, weights, bias, targets):
    """Computes w_x . h + c_x of each token's target, [N], in at least float32."""
    scores = products.einsum("nd,nd->n", hidden, row_lookup.take(weights, targets))
    return scores + bias[targets].astype(scores.dtype)


def difference(expected, targets, observed, words=None):
    """Computes gradients of logits: expected minus observed in the columns of the targets.

    The two nearly cancel where a model is sure, so they are subtracted before the gradient is
    rounded to a type of fewer bits.
    """
    words = jnp.arange(expected.shape[1]) if words is None else words
    is_target = words[None] == targets[:, None]
    return expected - jnp.where(is_target, observed[:, None], 0).astype(expected.dtype)


# ---------------------------------------------------------------- blocks of the vocabulary


def logits_of_rows(hidden, weights, bias, cut, number):
    """Computes the logits of a block of words.

    Gives (logits [N, size], -inf for words that an earlier block has; the block's rows of W).
    """
    rows = cut.take(number, weights)
    block_logits = logits(hidden, rows, cut.take(number, bias))
    return cut.masked(number, block_logits, -jnp.inf), rows


class Exponentials(NamedTuple):
    """A running sum of exponentials.

    Its logarithm is only taken at the end: a logarithm after each block would add a rounding error
    each time.
    """

    largest: jax.Array  # the largest logit so far, [N]
    total: jax.Array  # the sum of exp(logit - largest), [N]

    @classmethod
    def none(cls, hidden):
        """Returns the sum over no logits."""
        tokens, dtype = hidden.shape[0], accumulator(hidden)
        # The least finite number stands for -inf, whose difference with itself would be NaN.
        least = sharded_functions.filled(tokens, jnp.finfo(dtype).min, dtype, hidden)
        return cls(least, sharded_functions.zeros(tokens, dtype, hidden))

    def plus(self, logits):
        """Returns the sum with the exponentials of further logits added."""
        largest = jnp.maximum(self.largest, logits.max(axis=-1))
        total = self.total * jnp.exp(self.largest - largest)
        return Exponentials(largest, total + jnp.exp(logits - largest[:, None]).sum(axis=-1))

    def log(self):
        """Returns the logarithm of the sum, [N]."""
        return self.largest + jnp.log(self.total)


def blocked_log_z(hidden, weights, bias, block):
    """Computes log sum_v exp(w_v . h + c_v), [N], by blocks of the vocabulary."""

    cut = row_blocks.Cut.of(weights.shape[0], block)

    def step(sums, number):
        return sums.plus(logits_of_rows(hidden, weights, bias, cut, number)[0]), None

    sums, _ = jax.lax.scan(step, Exponentials.none(hidden), cut.numbers())
    return sums.log()


@functools.partial(jax.custom_vjp, nondiff_argnums=(4,))
def blocked_softmax_loss(hidden, weights, bias, targets, block):
    """Computes `plain_softmax_loss` by blocks of the vocabulary.

    Gives (loss [N], log Z [N]) in nats, both differentiable. Memory beside arguments and results is
    O(N * block), forward and backward.
    """
    log_z = blocked_log_z(hidden, weights, bias, block)
    return log_z - target_logits(hidden, weights, bias, targets), log_z


def _blocked_forward(hidden, weights, bias, targets, block):
    loss, log_z = blocked_softmax_loss(hidden, weights, bias, targets, block)
    return (loss, log_z), (hidden, weights, bias, targets, log_z)


def _blocked_backward(block, residuals, cotangents):
    """Computes gradients by blocks: d loss / d o_v = p_v - [v = x] and d log Z / d o_v = p_v."""
    hidden, weights, bias, targets, log_z = residuals
    loss_cotangent, log_z_cotangent = cotangents
    scale = (loss_cotangent + log_z_cotangent)[:, None]
    cut = row_blocks.Cut.of(weights.shape[0], block)

    def step(gradients, number):
        hidden_gradient, weight_gradient, bias_gradient = gradients
        block_logits, rows = logits_of_rows(hidden, weights, bias, cut, number)
        expected = jnp.exp(block_logits - log_z[:, None]) * scale
        slopes = difference(expected, targets, loss_cotangent, cut.row_numbers(number))
        slopes = cut.masked(number, slopes, 0)
        of_block, of_rows = products.both_gradients(slopes, hidden, rows)
        return (
            hidden_gradient + of_block,
            cut.add(number, weight_gradient, of_rows),
            cut.add(number, bias_gradient, slopes.sum(axis=0)),
        ), None

    like = hidden, weights, bias
    initial = tuple(sharded_functions.zeros(x.shape, accumulator(x), hidden) for x in like)
    gradients, _ = jax.lax.scan(step, initial, cut.numbers())
    return *(g.astype(x.dtype) for g, x in zip(gradients, like, strict=True)), None


blocked_softmax_loss.defvjp(_blocked_forward, _blocked_backward)


# ---------------------------------------------------------------- any leading axes


@over_tokens("hidden")
def softmax_loss(
    hidden, weights, bias, targets, block=None, log_measure=None, contexts=None, width=0
):
    """Computes log Z - o_x of the softmax, o = W h + c, and log Z = log sum_v m_v exp(o_v).

    Args:
      hidden: h, [..., D].
      weights: W, [V, D].
      bias: c, [V].
      targets: x, int [...], each in [0, V).
      block: rows of W in a block, forward and backward. With V, all logits are held; with fewer,
        they are recomputed in the backward pass. With a measure, tokens in a block. None for a fast
        choice that holds no [tokens, V] array.
      log_measure: a `jax.tree_util.Partial`, contexts of n tokens -> log m, [n, V], nats; None for
        a measure of 1.
      contexts: its argument, a pytree of leaves [..., ?] with the axes of targets in front.
      width: the most numbers that log_measure holds for a token, from which the size of token
        blocks is chosen; values below V count as V.

    Returns:
      (loss [...], log Z [...]), nats; both are exact and differentiable.

    Raises:
      ValueError: shapes do not agree, or a target is not a row of W. TypeError: targets are not
        whole numbers.

    Example:
      >>> h, table = jnp.ones((2, 4)), (jnp.zeros((8, 4)), jnp.zeros(8))
      >>> loss, log_z = losses.softmax_loss(h, *table, jnp.array([0, 7]))
      >>> print(loss.round(3), log_z.round(3))
      [2.079 2.079] [2.079 2.079]
      >>> given = jax.tree_util.Partial(lambda contexts: contexts)  # which are log m here
      >>> measure = {"log_measure": given, "contexts": jnp.log(jnp.full((2, 8), 0.5))}
      >>> print(losses.softmax_loss(h, *table, jnp.array([0, 7]), **measure)[1].round(3))
      [1.386 1.386]

    Source: Milakov and Gimelshein (2018), for the running log-sum-exp; Dymetman and Xiao (2016),
    section 2, for the measure.
    """
    check_softmax(hidden, weights, bias, targets=targets, block=block)
    if log_measure is None:
        return exact_loss(hidden, weights, bias, targets, block)
    h, c = _flat(log_measure, hidden, contexts, targets, weights.shape[0])
    if block is None:
        block = token_block(targets.size, max(weights.shape[0], width))
    results = _measured_loss(h, weights, bias, targets.reshape(-1), block, log_measure, c)
    return tuple(result.reshape(targets.shape) for result in results)


def _measured_loss(hidden, weights, bias, targets, block, log_measure, contexts):
    """Computes log sum_v m_nv exp(o_v) - o_x of each token, by blocks of tokens.

    Gives (loss [N], log Z [N]) in nats, both differentiable. Logits and measure are recomputed in
    the backward pass, so that the memory is O(block * V).
    """

    @jax.checkpoint
    def of_block(inputs):
        h, x, c = inputs
        block_logits = logits(h, weights, bias)
        log_z = jax.nn.logsumexp(block_logits + log_measure(c).astype(block_logits.dtype), axis=-1)
        return log_z - jnp.take_along_axis(block_logits, x[:, None], axis=-1)[:, 0], log_z

    tokens = hidden.shape[0]
    columns = row_blocks.of_rows(
        (hidden, targets, contexts), row_blocks.at_most(block, tokens), filling="edge"
    )
    results = jax.lax.map(of_block, columns)
    return row_blocks.joined(results, tokens)


def _flat(log_measure, hidden, contexts, targets, vocabulary):
    """Returns (hidden, contexts) with leaves [N, ?], after checks of the contexts."""
    for leaf in jax.tree.leaves(contexts):
        if leaf.shape[: targets.ndim] != targets.shape:
            raise ValueError(
                f"contexts have the shape {leaf.shape}: give the axes {targets.shape} of targets "
                "in front"
            )
    flat = jax.tree.map(
        lambda leaf: leaf.reshape(targets.size, *leaf.shape[targets.ndim :]), (hidden, contexts)
    )
    measure = None if log_measure is None else jax.eval_shape(log_measure, flat[1]).shape
    if measure not in (None, (targets.size, vocabulary)):
        raise ValueError(
            f"log_measure returns the shape {measure}: give log m of every word for each token, "
            f"{(targets.size, vocabulary)}"
        )
    return flat


def exact_loss(hidden, weights, bias, targets, block=None):
    """Computes `softmax_loss` without checks, so that targets of padding may be anything."""
    hidden, weights, bias, targets = sharded_functions.alike((hidden, weights, bias, targets))
    shape = targets.shape
    hidden, targets = hidden.reshape(-1, hidden.shape[-1]), targets.reshape(-1)
    if block is None:
        block = vocabulary_block(hidden.shape[0], *weights.shape)
    if block >= weights.shape[0]:
        hidden, weights, bias = map(_backward_only, (hidden, weights, bias))
        loss, log_z = plain_softmax_loss(hidden, weights, bias, targets)
    else:
        loss, log_z = blocked_softmax_loss(hidden, weights, bias, targets, block)
    return loss.reshape(shape), log_z.reshape(shape)


@jax.custom_vjp
def _backward_only(array):
    """Returns the array, without forward-mode derivatives.

    The blocked form has reverse mode only, so the plain form, which small vocabularies use, has
    reverse mode only, too.
    """
    return array


# The forward pass calls the function itself, as the blocked form does: so forward mode over reverse
# mode is excluded, too.
_backward_only.defvjp(
    lambda array: (_backward_only(array), None), lambda _, cotangent: (cotangent,)
)


def above_mean(hidden, weights, bias, targets):
    """Computes o_x - 1/V sum_v o_v of o = W h + c, [...], which label smoothing adds times epsilon.

    The mean of the scores is the score of the mean vector, so that no logits are computed.
    """
    dtype = accumulator(hidden)
    of_target = products.einsum("...d,...d->...", hidden, row_lookup.take(weights, targets))
    of_mean = jnp.einsum("...d,d->...", hidden.astype(dtype), weights.astype(dtype).mean(axis=0))
    return of_target - of_mean + bias[targets].astype(dtype) - bias.astype(dtype).mean()


def check_softmax(hidden, weights, bias, block=None, **of_tokens):
    """Checks a softmax, arrays over its tokens such as targets, and the size of blocks."""
    table = {"hidden": (hidden, "... D"), "weights": (weights, "V D"), "bias": (bias, "V")}
    value_checks.check_words(table, **of_tokens)
    if block is not None:
        value_checks.check_least(1, "at least 1", block=block)


# ---------------------------------------------------------------- the weighted sum


def token_block(tokens: int, vocabulary: int) -> int:
    """Returns the number of tokens in a block of the weighted loss."""
    return row_blocks.even(tokens, LOGITS_AT_A_TIME // vocabulary)


def _block_of_tokens(penalty, shared, log_measure, h, data, u):
    """Computes a block's losses and their gradients: see `zoo.losses.token_blocks`."""
    (weights, bias), (x, contexts) = shared, data
    block_logits = logits(h, weights, bias)
    target_logits = jnp.take_along_axis(block_logits, x[:, None], axis=-1)[:, 0]
    if log_measure is not None:
        block_logits += log_measure(contexts).astype(block_logits.dtype)
    largest = block_logits.max(axis=-1)
    exponentials = jnp.exp(block_logits - largest[:, None])
    z = exponentials.sum(axis=-1)
    log_z = largest + jnp.log(z)
    losses = log_z - target_logits + penalty * log_z * log_z

    def gradients(sums):
        expected = exponentials * (u * (1 + 2 * penalty * log_z) / z)[:, None]
        slopes = weighted_rows(difference(expected, x, u), u)
        hidden_gradient, weights_gradient = products.both_gradients(slopes, h, weights)
        return token_blocks.added(sums, (weights_gradient, slopes.sum(axis=0))), hidden_gradient

    return losses, gradients


@over_tokens("hidden")
def weighted_softmax_loss(
    hidden,
    weights,
    bias,
    targets,
    token_weights,
    block=None,
    penalty=0.0,
    log_measure=None,
    contexts=None,
    width=0,
):
    """Computes sum_n u_n (loss_n + penalty log^2 Z_n) of the softmax, with its gradients.

    See `softmax_loss` for loss_n and log Z_n. The sum is computed by blocks of tokens, with
    gradients in the forward pass, or by blocks of the vocabulary where that is faster. No array
    [tokens, V] is held.

    Args:
      hidden: h, [..., D].
      weights: W, [V, D].
      bias: c, [V].
      targets: x, int [...], each in [0, V).
      token_weights: u, [...]; 0 for padding, whose hidden states and targets may be anything.
      block: the number of tokens in a block, which need not divide the number of tokens; None for a
        fast choice.
      penalty: the weight of log^2 Z, nats per squared nat; 0 for no penalty.
      log_measure: a `jax.tree_util.Partial`, contexts of n tokens -> log m, [n, V], nats; None for
        a measure of 1.
      contexts: its argument, a pytree of leaves [..., ?], which get no gradient.
      width: the most numbers that log_measure holds for a token, see `softmax_loss`.

    Returns:
      A scalar, nats. Memory beside arguments and results is a small multiple of
      `LOGITS_AT_A_TIME`, or O(block * V).

    Raises:
      ValueError: shapes do not agree. TypeError: targets are not whole numbers.

    Example:
      >>> table = jnp.zeros((8, 4)), jnp.zeros(8)
      >>> u = jnp.array([1.0, 2.0, 0.0])  # the third token is padding
      >>> loss = losses.weighted_softmax_loss(jnp.ones((3, 4)), *table, jnp.array([0, 7, 0]), u)
      >>> print(f"{loss:.4f}", f"{3 * jnp.log(8):.4f}")
      6.2383 6.2383

    Source: Devlin et al. (2014), section 2.2, for the penalty.
    """
    of_tokens = {"targets": targets, "token_weights": token_weights}
    check_softmax(hidden, weights, bias, block=block, **of_tokens)
    value_checks.check_least(0, "at least 0", penalty=penalty)
    hidden, contexts = _flat(log_measure, hidden, contexts, targets, weights.shape[0])
    targets, token_weights = targets.reshape(-1), token_weights.reshape(-1)
    hidden, token_weights = present_states(hidden, token_weights)
    tokens, vocabulary = targets.shape[0], weights.shape[0]
    by_token = block is not None or log_measure is not None
    block = token_block(tokens, max(vocabulary, width)) if block is None else block
    if by_token or block >= row_blocks.at_most(LEAST_TOKENS_AT_A_TIME, tokens):
        return token_blocks.weighted_loss(
            functools.partial(_block_of_tokens, penalty),
            block,
            (weights, bias),
            log_measure,
            hidden,
            (targets, contexts),
            token_weights,
        )
    losses, log_z = exact_loss(hidden, weights, bias, targets)
    if penalty:
        losses += penalty * log_z * log_z
    return weighted_sum(losses, token_weights)


# ---- the most probable words of a softmax and samples from it, by one pass over the vocabulary


class Pass(NamedTuple):
    """The results of one pass over the vocabulary."""

    log_z: jax.Array  # log Z of each token, [N], nats
    values: jax.Array  # the k highest logits, [N, k], falling
    words: jax.Array  # their words, int32 [N, k]
    sample: jax.Array | None  # words drawn from the softmax, int32 [N]; None without a key


def blocked_pass(hidden, weights, bias, block, *, k=0, key=None) -> Pass:
    """Computes log Z, the k best words and a sample in one pass over blocks of the vocabulary.

    The sample is the argmax of o_v + g_v with standard Gumbel noise g (Gumbel 1954), which is
    distributed as the softmax of o.
    """
    hidden, weights, bias = sharded_functions.alike((hidden, weights, bias))
    hidden = as_wide(hidden, weights, bias)
    tokens, dtype = hidden.shape[0], accumulator(hidden)
    cut = row_blocks.Cut.of(weights.shape[0], block)

    def step(carry, number):
        sums, highest_words, highest, sample = carry
        block_logits, _ = logits_of_rows(hidden, weights, bias, cut, number)
        block_words = cut.row_numbers(number).astype(jnp.int32)
        sums = sums.plus(block_logits)
        if k:
            values, columns = jax.lax.top_k(block_logits, min(k, cut.size))
            words = cut.masked(number, block_words, cut.rows)  # behind all words
            highest_words = best(k, highest_words, (values, words[columns]))
        if key is not None:
            noise_key = jax.random.fold_in(key, number * cut.size)
            noisy = block_logits + jax.random.gumbel(noise_key, block_logits.shape, dtype)
            drawn = block_words[noisy.argmax(-1)]
            sample = jnp.where(noisy.max(-1) > highest, drawn, sample)
            highest = jnp.maximum(highest, noisy.max(-1))
        return (sums, highest_words, highest, sample), None

    initial = (
        Exponentials.none(hidden),
        (
            sharded_functions.filled((tokens, k), -jnp.inf, dtype, hidden),
            sharded_functions.filled((tokens, k), cut.rows, jnp.int32, hidden),
        ),
        sharded_functions.filled(tokens, -jnp.inf, dtype, hidden),
        sharded_functions.zeros(tokens, jnp.int32, hidden),
    )
    (sums, (values, words), _, sample), _ = jax.lax.scan(step, initial, cut.numbers())
    return Pass(sums.log(), values, words, None if key is None else sample)


def as_wide(hidden, *arrays):
    """Returns states in float64 if a parameter has it, as the sums over blocks of words do."""
    wide = any(array.dtype == jnp.float64 for array in arrays)
    return hidden.astype(jnp.float64) if wide else hidden


def check_k(k, vocabulary: int):
    """Raises ValueError unless k is from 1 to V, TypeError if it is an array."""
    if hasattr(k, "dtype") and not isinstance(k, np.integer):
        raise TypeError(f"k is an array, {k}: give a Python integer, which sets a shape")
    whole = isinstance(k, int | np.integer) and not isinstance(k, bool)
    if not whole or not 1 <= k <= vocabulary:
        some = f"1 to {vocabulary:,}"
        raise ValueError(f"k is {k!r}, and there are {vocabulary:,} words: give {some}")


def best(k, *found):
    """Returns the k best of some candidates, best first; of equal values, lower words first.

    Gives (values [N, k], words int32 [N, k]).
    """
    values, words = (jnp.concatenate(parts, axis=-1) for parts in zip(*found, strict=True))
    falling, words = jax.lax.sort((-values, words), num_keys=2)
    return -falling[:, :k], words[:, :k]


@over_tokens("hidden")
def softmax_top_k(hidden, weights, bias, k):
    """Finds the k most probable words of the softmax, by blocks of the vocabulary.

    Args:
      hidden: h, [..., D].
      weights: W, [V, D].
      bias: c, [V].
      k: the number of words, at most V.

    Returns:
      (log-probabilities [..., k], nats; words int32 [..., k]), best first.

    Raises:
      ValueError: shapes do not agree, or k is above V.

    Example:
      >>> bias = jnp.log(jnp.array([0.2, 0.5, 0.3]))
      >>> log_probs, words = losses.softmax_top_k(jnp.ones(4), jnp.zeros((3, 4)), bias, 2)
      >>> print(words, jnp.exp(log_probs).round(2))
      [1 2] [0.5 0.3]
    """
    check_softmax(hidden, weights, bias)
    check_k(k, weights.shape[0])
    flat = hidden.reshape(-1, hidden.shape[-1])
    block = vocabulary_block(flat.shape[0], *weights.shape)
    walk = blocked_pass(flat, weights, bias, block, k=k)
    shape = (*hidden.shape[:-1], k)
    return (walk.values - walk.log_z[:, None]).reshape(shape), walk.words.reshape(shape)


@over_tokens("hidden")
def softmax_sample(hidden, weights, bias, key):
    """Draws words from the softmax, by blocks of the vocabulary.

    Args:
      hidden: h, [..., D].
      weights: W, [V, D].
      bias: c, [V].
      key: a key of `jax.random`.

    Returns:
      Words, int32 [...].

    Raises:
      ValueError: shapes do not agree.

    Example:
      >>> table = jnp.zeros((3, 4)), jnp.array([0.0, 90.0, 0.0])  # word 1 has all the mass
      >>> print(losses.softmax_sample(jnp.ones((2, 4)), *table, jax.random.key(0)))
      [1 1]

    Source: Gumbel (1954): the sample is the best word after Gumbel noise is added.
    """
    check_softmax(hidden, weights, bias)
    flat = hidden.reshape(-1, hidden.shape[-1])
    block = vocabulary_block(flat.shape[0], *weights.shape)
    drawn = blocked_pass(flat, weights, bias, block, key=key).sample
    assert drawn is not None  # a key was given
    return drawn.reshape(hidden.shape[:-1])
