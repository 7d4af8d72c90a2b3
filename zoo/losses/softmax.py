"""Exact softmax losses that never hold a [tokens, V] array.

For logits o = W h + c over V classes, the loss of a target x is, in nats,

    loss(h, x) = log Z - o_x,    log Z = log sum_v exp(o_v).

`plain_terms` computes this formula directly. `blocked_terms` computes it by blocks of the
vocabulary, with a running log-sum-exp, and recomputes the logits in its backward pass: it gives
losses per token in memory for tokens * block logits. `zoo.losses.top_k` finds the most probable
words in the same way, and draws.

Training uses their weighted sum, of `zoo.losses.weighted_softmax`, which computes no logits twice.

Classes may have a measure m_nv that depends on the token, such as their mass under a background
with a context: log Z = log sum_v m_nv exp(o_v). An array of measures, [tokens, V], would be as
large as the logits, so a function computes it, `log_measure`, for one block of tokens at a time.

Scores may be shaped before they are normalised: see `zoo.losses.shaping`. Products with W,
gradients and measures are otherwise the same.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from zoo.base.arrays import products, row_blocks, row_lookup, sharded_functions
from zoo.base.arrays.precision import accumulator, as_wide, cast_like
from zoo.base.arrays.sharded_functions import over_tokens, vary_together
from zoo.base.arrays.types import Array, Real
from zoo.losses import value_checks
from zoo.losses.shaping import UNSHAPED, Shaping
from zoo.losses.token_blocks import add_gradients

# Hidden states [N, D], and the weights [V, D] and bias [V] of the words.
Operands: TypeAlias = tuple[Array, Array, Array]

# Logits held at a time. 3 Mi float32 logits (12 MiB) keep the products efficient and stay in cache.
LOGITS_AT_A_TIME = 3 * 1024 * 1024
# Rows of W at a time: with 256 columns they fill 2 MiB, a core's cache, which is faster than the
# larger products of larger blocks. Of fewer columns, as in tails of an adaptive softmax, up to
# NARROW times as many rows: the products of small blocks are too small to be shared by two cores.
MOST_ROWS_AT_A_TIME = 2048
NARROW = 8
LEAST_ROWS_AT_A_TIME = 128

# The number of tokens for which blocks are chosen if a program is exported for any number.
DEFAULT_TOKENS = 1024


def vocabulary_block(tokens: int, vocabulary: int, columns: int) -> int:
    """Returns the number of rows of W in a block; all of them where the logits are few."""
    if not row_blocks.is_known(tokens):
        tokens = DEFAULT_TOKENS
    limit = LOGITS_AT_A_TIME // max(tokens, 1)
    if vocabulary <= limit:
        return vocabulary
    rows = MOST_ROWS_AT_A_TIME * min(max(256 // max(columns, 1), 1), NARROW)
    return min(vocabulary, rows, max(LEAST_ROWS_AT_A_TIME, limit))


def token_block(tokens: int, vocabulary: int, minimum: int = 1) -> int:
    """Returns the number of tokens in a block, whose scores [n, V] are held, by a limit of at least
    `minimum`."""
    return row_blocks.even_block(tokens, max(LOGITS_AT_A_TIME // vocabulary, minimum))


def logits(hidden: Array, weights: Array, bias: Array, shaping: Shaping = UNSHAPED) -> Array:
    """Computes the scores of all words, w_v . h + c_v, shaped, [..., V], in at least float32."""
    parts = row_lookup.split_columns(weights, hidden), jax.tree.leaves(weights)
    scores: Any = sum(map(products.matmul_transposed, *parts))
    return shaping.apply(scores + jnp.broadcast_to(bias.astype(scores.dtype), scores.shape))


def target_logits(hidden, weights, bias, targets, shaping=UNSHAPED) -> Array:
    """Computes each token's target score, w_x . h + c_x, shaped, [N], in at least float32."""
    scores = products.einsum("nd,nd->n", hidden, row_lookup.take(weights, targets))
    scores += row_lookup.take(bias, targets).astype(scores.dtype)
    return shaping.apply(scores[:, None])[:, 0]


def expected_minus_observed(expected, targets, observed, words=None) -> Array:
    """Subtracts `observed` [N] from `expected` [N, V] in each target's column: logits' gradients.

    The two nearly cancel where a model is sure, so they are subtracted before they are rounded.
    `words`: the words of the columns, if they are not all words.
    """
    words = jnp.arange(expected.shape[1]) if words is None else words
    is_target = words[None] == targets[:, None]
    return expected - jnp.where(is_target, observed[:, None], 0).astype(expected.dtype)


# ------------------------------------------------------------ the terms of losses of each token


class TermOptions(NamedTuple):
    """Options of the terms: label smoothing of the loss, or statistics (without it), or reports."""

    # epsilon of label smoothing: the loss is log Z - (1 - epsilon) o_x - epsilon / V sum_v o_v
    smoothing: float = 0.0
    statistics: bool = False
    report: bool = False


class Terms(NamedTuple):
    """The loss, log Z, and what options ask for, of each token, [N]."""

    loss: Array  # nats, with label smoothing
    log_z: Array  # nats
    # with TermOptions.statistics:
    entropy: Array | None = None  # nats
    correct: Array | None = None  # bool, whether no other word is as probable as the target
    # with TermOptions.report:
    log_prob: Array | None = None  # o_x - log Z, nats
    best_word: Array | None = None  # int32, the word with the greatest mass


def has_share(bias: Array, shaping: Shaping) -> Array:
    """Whether a word has a share of smoothed labels: a score of -inf, by such a bias, excludes it;
    under a soft cap, no score is."""
    return (bias > -jnp.inf) | (shaping.soft_cap is not None)


def _smoothed_target_scores(smoothing, scores, targets):
    """Computes (1 - epsilon) o_x + epsilon / V sum_v o_v from all scores, [n, V], over the V words
    whose score is not -inf."""
    target_scores = jnp.take_along_axis(scores, targets[:, None], axis=-1)[:, 0]
    if smoothing:
        has_mass = scores > -jnp.inf
        mean = jnp.where(has_mass, scores, 0).sum(axis=-1) / has_mass.sum(axis=-1)
        target_scores += smoothing * (mean - target_scores)
    return target_scores


def _mean_scores(hidden, weights, bias, shaping):
    """Computes the mean score of all words with a share, [N], without a soft cap: as scores are
    linear, it is the score of a mean word."""
    share = has_share(bias, shaping)

    def mean(x):
        where = share.reshape(-1, *[1] * (x.ndim - 1))
        return jnp.mean(x, 0, accumulator(x), keepdims=True, where=where)

    return logits(hidden, jax.tree.map(mean, weights), mean(bias), shaping)[:, 0]


def plain_terms(options: TermOptions, operands: Operands, targets, shaping=UNSHAPED) -> Terms:
    """Computes each token's loss and log Z by their definitions, holding all logits [N, V]."""
    return terms_from_scores(options, logits(*operands, shaping), targets)


def terms_from_scores(options: TermOptions, scores, targets, is_normalised: bool = False) -> Terms:
    """Computes each token's loss and log Z from scores [N, V], or from log p if normalised."""
    log_z = jnp.zeros_like(scores[:, 0]) if is_normalised else jax.nn.logsumexp(scores, axis=-1)
    target_scores = _smoothed_target_scores(options.smoothing, scores, targets)
    terms = Terms(log_z - target_scores, log_z)
    if options.report:
        log_prob = _smoothed_target_scores(0, scores, targets) - log_z
        best_word = scores.argmax(axis=-1).astype(jnp.int32)
        return terms._replace(log_prob=log_prob, best_word=best_word)
    if not options.statistics:
        return terms
    probs = jnp.exp(scores - log_z[:, None])
    log_probs = jnp.where(probs > 0, scores - log_z[:, None], 0)
    is_target = jnp.arange(scores.shape[-1])[None] == targets[:, None]
    rivals = jnp.where(is_target, -jnp.inf, scores)
    correct = target_scores > jax.lax.stop_gradient(rivals).max(axis=-1)
    return terms._replace(entropy=-(probs * log_probs).sum(axis=-1), correct=correct)


def logits_of_block(blocks, number, shaping, operands) -> tuple[Array, Array]:
    """Returns (logits [N, size] of one block of words, the block's rows of W).

    The logits of words that an earlier block has, too, are -inf.
    """
    hidden, weights, bias = operands
    rows = blocks.take_narrow(number, weights)
    block_logits = logits(hidden, rows, blocks.take(number, bias), shaping)
    return blocks.masked(number, block_logits, -jnp.inf), rows


class Exponentials(NamedTuple):
    """A running log-sum-exp over blocks of logits, with a weighted sum.

    The logarithm is only taken at the end: after each block it would add a rounding error.
    """

    largest: Array  # the largest logit so far, [N]
    total: Array  # the sum of exp(logit - largest), [N]
    weighted: Array  # the sum of exp(logit - largest) x, [N], for numbers x of each word

    @classmethod
    def empty(cls, hidden: Array) -> "Exponentials":
        """Returns the sum over no logits, for the tokens of hidden states [N, D]."""
        tokens, dtype = hidden.shape[0], accumulator(hidden)
        # The least finite number stands for -inf, whose difference with itself would be NaN.
        lowest = sharded_functions.filled(tokens, jnp.finfo(dtype).min, dtype, hidden)
        zeros = sharded_functions.zeros(tokens, dtype, hidden)
        return cls(lowest, zeros, zeros)

    def add(self, logits: Array, numbers: Array | None = None) -> tuple["Exponentials", Array]:
        """Returns (the running sum with further logits [N, n] added, their exponentials).

        The exponentials are exp(logit - largest), with the largest logit of the new sum. `numbers`,
        [N, n], are averaged by `mean`.
        """
        largest = jnp.maximum(self.largest, logits.max(axis=-1))
        scale = jnp.exp(self.largest - largest)
        exponentials = jnp.exp(logits - largest[:, None])
        weighted = self.weighted
        if numbers is not None:
            products = jnp.where(exponentials > 0, exponentials * numbers, 0)
            weighted = weighted * scale + products.sum(axis=-1)
        total = self.total * scale + exponentials.sum(axis=-1)
        return Exponentials(largest, total, weighted), exponentials

    def rescale(self, gap_sum: Array, merged: "Exponentials") -> Array:
        """Converts sum_v exp(o_v - m) (o_v - m) from this largest logit m to that of `merged`."""
        shift = self.largest - merged.largest
        return (gap_sum + shift * self.total) * jnp.exp(shift)

    def log(self) -> Array:
        """Returns the logarithm of the sum, [N]."""
        return self.largest + jnp.log(self.total)

    def log_ratio(self, denominator: "Exponentials") -> Array:
        """Returns log(self / denominator), [N], exact where the two sums are close."""
        return (self.largest - denominator.largest) + jnp.log(self.total / denominator.total)

    def mean(self) -> Array:
        """Returns the expectation under the softmax of the `numbers` given to `add`, [N]."""
        return self.weighted / self.total


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def blocked_terms(options: TermOptions, block: int, operands, targets, shaping) -> Terms:
    """Computes each token's loss and log Z by blocks of words; differentiable in reverse mode only.

    Memory beside arguments and results is O(N * block), forward and backward.
    """
    blocks = row_blocks.RowBlocks.from_size(operands[1].shape[0], block)
    return scan_vocabulary(options, blocks, operands, targets, shaping)[0]


def scan_vocabulary(
    options, blocks, operands, targets, shaping, measure=None, keep_residuals=False
) -> tuple[Terms, Exponentials, tuple]:
    """Computes each token's loss and log Z in one scan over blocks of words.

    With a measure, log m [N, V], the blocks must be a single block. Gives (terms, the running sum,
    residuals for gradients or None: the exponentials [blocks, N, size], the largest logit so
    far [blocks, N], and the logits if the shaping's gradients need them).
    """
    hidden, weights, bias = operands
    target_scores = target_logits(hidden, weights, bias, targets, shaping)

    def step(carry, number):
        sums, total, rival, gap_sum, best_word = carry
        scores, _ = logits_of_block(blocks, number, shaping, operands)
        if options.smoothing:
            total += jnp.where(scores > -jnp.inf, scores, 0).sum(axis=-1)
        if options.statistics:
            is_target = blocks.row_numbers(number)[None] == targets[:, None]
            rival = jnp.maximum(rival, jnp.where(is_target, -jnp.inf, scores).max(axis=-1))
        log_masses = scores if measure is None else scores + measure.astype(scores.dtype)
        merged, exponentials = sums.add(log_masses)
        if options.statistics:
            gaps = _weighted_gaps(scores, merged.largest)
            gap_sum = sums.rescale(gap_sum, merged) + gaps.sum(axis=-1)
        if options.report:
            block_best = blocks.row_numbers(number)[log_masses.argmax(axis=-1)].astype(jnp.int32)
            best_word = jnp.where(merged.largest > sums.largest, block_best, best_word)
        shaped = scores if shaping.keeps_scores else None
        residuals = (exponentials, merged.largest, shaped) if keep_residuals else None
        return (merged, total, rival, gap_sum, best_word), residuals

    zeros = sharded_functions.zeros(hidden.shape[0], accumulator(hidden), hidden)
    words = sharded_functions.zeros(hidden.shape[0], jnp.int32, hidden)
    initial = Exponentials.empty(hidden), zeros, zeros - jnp.inf, zeros, words
    results, residuals = jax.lax.scan(step, initial, blocks.numbers())
    sums, total, rival, gap_sum, best_word = results
    log_z, smoothed = sums.log(), target_scores
    if options.smoothing:
        mean = total / has_share(bias, shaping).sum()
        smoothed += options.smoothing * (mean - target_scores)
    terms = Terms(log_z - smoothed, log_z)
    if options.statistics:
        entropy = jnp.log(sums.total) - gap_sum / sums.total
        terms = terms._replace(entropy=entropy, correct=target_scores > rival)
    if options.report:
        terms = terms._replace(log_prob=target_scores - log_z, best_word=best_word)
    return terms, sums, residuals


def _weighted_gaps(scores, largest):
    """Computes the terms of the entropy, exp(o_v - largest) (o_v - largest), 0 without mass."""
    gaps = scores - largest[:, None]
    exponentials = jnp.exp(gaps)
    return exponentials * jnp.where(exponentials > 0, gaps, 0)


def _blocked_forward(options, block, operands, targets, shaping):
    """Computes the terms, and the residuals of `_blocked_backward`."""
    terms = blocked_terms(options, block, operands, targets, shaping)
    return terms, (operands, targets, shaping, terms)


def _blocked_backward(options, block, residuals, cotangents):
    """Computes the gradients of hidden, weights, bias and the shaping by blocks of words.

    d log Z / d o_v = p_v, d o_x / d o_v = [v = x], d H / d o_v = -p_v (log p_v + H).
    """
    operands, targets, shaping, terms = residuals
    blocks = row_blocks.RowBlocks.from_size(operands[1].shape[0], block)
    observed = cotangents.loss * (1 - options.smoothing)
    uniform = cotangents.loss * options.smoothing / has_share(operands[2], shaping).sum()
    scale = (cotangents.loss + cotangents.log_z)[:, None]

    def logit_gradients(number, block_logits):
        # The least finite number for the log Z of no mass: -inf - -inf would be NaN.
        log_z = jnp.maximum(terms.log_z, jnp.finfo(terms.log_z.dtype).min)
        log_p, factor = block_logits - log_z[:, None], scale
        p = jnp.exp(log_p)
        if options.statistics:
            log_p = jnp.where(p > 0, log_p, 0)
            factor -= cotangents.entropy[:, None] * (log_p + terms.entropy[:, None])
        words = blocks.row_numbers(number)
        gradients = expected_minus_observed(p * factor, targets, observed, words)
        if options.smoothing:
            gradients -= jnp.where(block_logits > -jnp.inf, uniform[:, None], 0)
        return [gradients]

    tables = [(operands, shaping)]
    ((gradients, shaping_gradients),) = gradients_by_blocks(blocks, tables, logit_gradients)
    return gradients, None, shaping_gradients


blocked_terms.defvjp(_blocked_forward, _blocked_backward)


def gradients_by_blocks(blocks, tables, logit_gradients) -> list[tuple[Operands, Shaping]]:
    """Computes the gradients of (operands, shaping) of each table by blocks of words.

    `logit_gradients`: (number of a block, *shaped logits [N, size] of each table) -> the gradients
    of these logits, [N, size] each.
    """

    def step(sums, number):
        logits_and_rows = [logits_of_block(blocks, number, s, operands) for operands, s in tables]
        gradients_by_table = logit_gradients(number, *(scores for scores, _ in logits_and_rows))
        groups = zip(sums, tables, logits_and_rows, gradients_by_table, strict=True)
        return [_add_block(blocks, number, *group) for group in groups], None

    def zeros(array, dtype):
        return row_blocks.bits(sharded_functions.zeros(array.shape, dtype, tables[0][0][0]))

    # A word's gradient comes from one block, and is rounded once.
    initial = [
        (
            jax.tree.map(lambda x: zeros(x, accumulator(x)), (hidden, shaping)),
            jax.tree.map(lambda x: zeros(x, x.dtype), word_arrays),
        )
        for (hidden, *word_arrays), shaping in tables
    ]
    sums, _ = jax.lax.scan(step, initial, blocks.numbers())
    results = []
    for (state_sums, word_bits), ((hidden, *word_arrays), shaping) in zip(
        sums, tables, strict=True
    ):
        hidden_gradient, shaping_gradient = cast_like(state_sums, (hidden, shaping))
        word_gradients = jax.tree.map(row_blocks.from_bits, word_bits, word_arrays)
        results.append(((hidden_gradient, *word_gradients), shaping_gradient))
    return results


def _add_block(blocks, number, sums, table, logits_and_rows, gradients):
    """Adds a block's gradient to the sums of hidden's and the shaping's, and puts its words'
    gradients, as bits, into the gradients of weights and bias."""
    (state_sums, word_bits), ((hidden, *word_arrays), shaping) = sums, table
    scores, rows = logits_and_rows
    gradients, shaping_gradient = shaping.backward(scores, blocks.masked(number, gradients, 0))
    hidden_gradient, rows_gradient = products.both_gradients(gradients, hidden, rows)
    row_gradients = *row_lookup.split_columns(word_arrays[0], rows_gradient), gradients.sum(axis=0)
    bits, structure = jax.tree.flatten(word_bits)
    updated = [
        blocks.put(number, x, row_blocks.bits(gradient.astype(array.dtype)))
        for x, gradient, array in zip(
            bits, row_gradients, jax.tree.leaves(word_arrays), strict=True
        )
    ]
    state_sums = add_gradients(state_sums, (hidden_gradient, shaping_gradient))
    return state_sums, jax.tree.unflatten(structure, updated)


# ---------------------------------------------------------------- any leading axes


@over_tokens("hidden")
def softmax_loss(
    hidden: Array,
    weights: Array,
    bias: Array,
    targets: Array,
    block: int | None = None,
    log_measure: Callable[[Any], Array] | None = None,
    contexts: Any = None,
    width: int = 0,
    *,
    soft_cap: Real | None = None,
    temperature: Real = 1.0,
    label_smoothing: float = 0.0,
) -> tuple[Array, Array]:
    """Computes log Z - o_x of the softmax, o = W h + c, and log Z = log sum_v m_v exp(o_v).

    With a soft cap or a temperature, o = c tanh((W h + c) / c) / T; with label smoothing, the loss
    is log Z - (1 - epsilon) o_x - epsilon / V sum_v o_v.

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
      soft_cap: c, the number beyond which no score goes, also none of -inf: a word with such a bias
        has the score -c; None for no cap.
      temperature: T, above 0: a constant, or an array of one number or of one for each token,
        [...], which gets a gradient; so may be the cap.
      label_smoothing: epsilon, the share of the target distribution that is uniform over the V
        words, those with a score of -inf left out.

    Returns:
      (loss [...], log Z [...]), nats; both are exact and differentiable.

    Raises:
      ValueError: shapes do not agree, a target is not a row of W, or a number is out of range.
        TypeError: targets are not whole numbers.

    Example:
      >>> h, table = jnp.ones((2, 4)), (jnp.zeros((8, 4)), jnp.zeros(8))
      >>> loss, log_z = losses.softmax_loss(h, *table, jnp.array([0, 7]))
      >>> print(loss.round(3), log_z.round(3))
      [2.079 2.079] [2.079 2.079]
      >>> identity = jax.tree_util.Partial(lambda contexts: contexts)  # which are log m here
      >>> measure = {"log_measure": identity, "contexts": jnp.log(jnp.full((2, 8), 0.5))}
      >>> print(losses.softmax_loss(h, *table, jnp.array([0, 7]), **measure)[1].round(3))
      [1.386 1.386]

    Source: Milakov and Gimelshein (2018), for the running log-sum-exp; Dymetman and Xiao (2016),
    section 2, for the measure; Gemma Team (2024), section 2, for the soft cap; Szegedy et al.
    (2016), section 7, for label smoothing.
    """
    check_softmax((hidden, weights, bias), targets=targets, block=block)
    value_checks.check_share(label_smoothing=label_smoothing)
    shaping = Shaping.from_options(soft_cap, temperature, targets.shape)
    vocabulary = weights.shape[0]
    if log_measure is None:
        options = TermOptions(label_smoothing)
        terms = softmax_terms((hidden, weights, bias), targets, block, shaping, options)
        return value_checks.nan_where_invalid(terms.loss, vocabulary, targets), terms.log_z

    # Logits and measure are recomputed in the backward pass, so that the memory is O(block * V).
    @jax.checkpoint
    def block_losses(rows):
        h, x, c, block_shaping = rows
        scores = logits(h, weights, bias, block_shaping)
        log_z = jax.nn.logsumexp(scores + log_measure(c).astype(scores.dtype), axis=-1)
        return log_z - _smoothed_target_scores(label_smoothing, scores, x), log_z

    h, c = flatten_contexts(log_measure, hidden, contexts, targets, vocabulary)
    if block is None:
        block = token_block(targets.size, max(vocabulary, width))
    block = row_blocks.at_most(block, targets.size)
    rows = row_blocks.cut_rows((h, targets.reshape(-1), c, shaping), block, filling="edge")
    results = row_blocks.join_rows(jax.lax.map(block_losses, rows), targets.size)
    loss, log_z = (result.reshape(targets.shape) for result in results)
    return value_checks.nan_where_invalid(loss, vocabulary, targets), log_z


def flatten_contexts(log_measure, hidden, contexts, targets, vocabulary: int) -> tuple[Array, Any]:
    """Returns (hidden, contexts) with leaves [N, ?]; raises ValueError unless contexts have the
    axes of targets in front and log_measure returns [N, V]."""
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


def softmax_terms(
    operands: Operands, targets: Array, block: int | None, shaping: Shaping, options: TermOptions
) -> Terms:
    """Computes each token's loss and log Z, [...], by all logits at once or by blocks of words.

    Arguments are not checked, so that targets of padding may be anything.
    """
    arrays = *operands, targets.reshape(-1), shaping
    hidden, weights, bias, flat_targets, shaping = vary_together(arrays)
    hidden = as_wide(hidden, weights, bias).reshape(-1, hidden.shape[-1])
    rows, columns = weights.shape
    token_runs, word_runs = sharded_functions.grid((hidden, weights))
    if block is None:
        share = -(-hidden.shape[0] // token_runs), -(-rows // word_runs)
        block = vocabulary_block(*share, columns) * word_runs
    if block >= rows:
        hidden, weights, bias, shaping = map(_backward_only, (hidden, weights, bias, shaping))
        terms = plain_terms(options, (hidden, weights, bias), flat_targets, shaping)
    else:
        is_linear, table = shaping.soft_cap is None, (hidden, weights, bias)
        # One device sums smoothed labels within its loop, without a second table of gradients.
        smoothing = options.smoothing if is_linear and token_runs * word_runs > 1 else 0.0
        options = options._replace(smoothing=options.smoothing - smoothing)
        # Words that fill up the last run must have no mass; sums over words know of no runs.
        has_runs = options == TermOptions() and (rows % word_runs == 0 or is_linear)
        grid = (token_runs, word_runs) if has_runs else (1, 1)
        function = functools.partial(blocked_terms, options, block // grid[1])
        terms = terms_by_runs(grid, function, table, flat_targets, shaping)
        if smoothing:
            gap = terms.log_z - terms.loss - _mean_scores(*table, shaping)
            terms = terms._replace(loss=terms.loss + smoothing * gap)
    return jax.tree.map(lambda term: term.reshape(targets.shape), terms)


def terms_by_runs(grid, function, operands, targets, tree: Any) -> Terms:
    """Computes each token's loss and log Z by function(operands, targets, tree), on each device of
    a grid for a run of tokens and a run of words. Leaves of the tree are [N, ...]."""
    hidden, weights, bias = operands
    if grid == (1, 1):
        return function(operands, targets, tree)

    def run_terms(run, token_arrays, table):
        (hidden, targets, tree), (weights, run_bias) = token_arrays, table
        size = run_bias.shape[0]
        is_word = run * size + jnp.arange(size) < bias.shape[0]
        # The others have no mass; were all scores of a run -inf, their gradients would be NaN.
        run_bias = jnp.where(is_word, run_bias, jnp.finfo(run_bias.dtype).min)
        rows, is_here = sharded_functions.rows_here(targets, run, size)
        terms = function((hidden, weights, run_bias), rows, tree)
        return jnp.where(is_here, terms.log_z - terms.loss, 0), terms.log_z

    arrays = (hidden, targets, tree), (weights, bias)
    scores, log_zs = sharded_functions.over_grid(grid, run_terms, *arrays)
    log_z = jax.nn.logsumexp(log_zs, axis=0)
    return Terms(log_z - scores.sum(axis=0), log_z)


@jax.custom_vjp
def _backward_only(array):
    """Returns the array unchanged; forward-mode derivatives of it raise, as in the blocked form."""
    return array


# The forward pass calls the function itself, as the blocked form does: so forward mode over reverse
# mode is excluded, too.
_backward_only.defvjp(
    lambda array: (_backward_only(array), None), lambda _, cotangent: (cotangent,)
)


def check_softmax(operands: Operands, block: int | None = None, **token_arrays: Array):
    """Raises ValueError unless shapes agree, targets (of weight 0 aside) are words and `block` is a
    whole number of at least 1. `token_arrays`: targets, token_weights."""
    hidden, weights, bias = operands
    table = {"hidden": (hidden, "... D"), "weights": (weights, "V D"), "bias": (bias, "V")}
    if 0 in np.shape(weights):
        raise ValueError(f"weights has the shape {np.shape(weights)}: give a word and a column")
    value_checks.check_words(table, **token_arrays)
    if block is not None and (not isinstance(block, int | np.integer) or block < 1):
        raise ValueError(f"block is {block!r}: give a whole number of at least 1")
