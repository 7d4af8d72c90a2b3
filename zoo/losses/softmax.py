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

Scores may be shaped before they are normalised: o' = c tanh(o / c) / T, with a soft cap c, beyond
which no score goes (Gemma Team 2024, section 2), and a temperature T, so that p is proportional to
p^(1/T). Products with W, gradients and measures are otherwise the same.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from zoo.base.arrays import products, row_blocks, row_lookup, sharded_functions
from zoo.base.arrays.precision import accumulator, as_wide
from zoo.base.arrays.sharded_functions import over_tokens, vary_together
from zoo.losses import value_checks

# Logits held at a time. 3 Mi float32 logits (12 MiB) keep the products efficient and stay in cache.
LOGITS_AT_A_TIME = 3 * 1024 * 1024
# Rows of W at a time: with 256 columns they fill 2 MiB, a core's cache, which is faster than the
# larger products of larger blocks. Of fewer columns, as in tails of an adaptive softmax, up to
# NARROW times as many rows: the products of small blocks are too small to be shared by two cores.
MOST_ROWS_AT_A_TIME = 2048
NARROW = 8
LEAST_ROWS_AT_A_TIME = 128

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


def token_block(tokens: int, vocabulary: int, least: int = 1) -> int:
    """Returns the number of tokens in a block of which all scores are held."""
    return row_blocks.even_block(tokens, max(LOGITS_AT_A_TIME // vocabulary, least))


class Shaping(NamedTuple):
    """What becomes of the scores o before they are normalised: c tanh(o / c) / T.

    Neither number gets a gradient.
    """

    soft_cap: jax.Array | None = None
    temperature: jax.Array | None = None

    @classmethod
    def from_options(cls, soft_cap, temperature=1.0) -> "Shaping":
        """Checks the two numbers; those that change nothing become None."""
        numbers = {"soft_cap": soft_cap, "temperature": temperature}
        for name, number in numbers.items():
            if number is not None:
                value_checks.check_number(name, number)
            known = None if number is None else value_checks.concrete_values(number)
            if known is not None and not (known > 0 and np.isfinite(known)):
                raise ValueError(f"{name} is {known}: give a number above 0")
        if isinstance(temperature, int | float) and temperature == 1:
            numbers["temperature"] = None
        stopped = jax.lax.stop_gradient({k: x for k, x in numbers.items() if x is not None})
        return cls(**stopped)

    def apply(self, scores):
        """Computes c tanh(o / c) / T."""
        if self.soft_cap is not None:
            scores = self.soft_cap * jnp.tanh(scores / self.soft_cap)
        return scores if self.temperature is None else scores / self.temperature

    def slopes(self, shaped, slopes):
        """Computes the slopes of o from slopes of the shaped scores: (1 - tanh^2(o / c)) / T."""
        temperature = 1 if self.temperature is None else self.temperature
        if self.soft_cap is not None:
            slopes = slopes * (1 - (shaped * temperature / self.soft_cap) ** 2)
        return slopes / temperature


UNSHAPED = Shaping()


def logits(hidden, weights, bias, shaping=UNSHAPED):
    """Computes w_v . h + c_v, shaped, [..., V], in at least float32."""
    scores = products.matmul_transposed(hidden, weights)
    return shaping.apply(scores + jnp.broadcast_to(bias.astype(scores.dtype), scores.shape))


def target_logits(hidden, weights, bias, targets, shaping=UNSHAPED):
    """Computes w_x . h + c_x of each token's target, shaped, [N], in at least float32."""
    scores = products.einsum("nd,nd->n", hidden, row_lookup.take(weights, targets))
    return shaping.apply(scores + bias[targets].astype(scores.dtype))


def difference(expected, targets, observed, words=None):
    """Computes gradients of logits: expected minus observed in the columns of the targets, which
    nearly cancel where a model is sure, and so are subtracted before the gradient is rounded."""
    words = jnp.arange(expected.shape[1]) if words is None else words
    is_target = words[None] == targets[:, None]
    return expected - jnp.where(is_target, observed[:, None], 0).astype(expected.dtype)


# ------------------------------------------------------------ the terms of losses of each token


class TermOptions(NamedTuple):
    """Which terms are computed beside log Z - o_x."""

    # epsilon of label smoothing: the loss is log Z - (1 - epsilon) o_x - epsilon / V sum_v o_v
    smoothing: float = 0.0
    statistics: bool = False


class Terms(NamedTuple):
    """What one pass over the words gives for each token, [N]."""

    loss: jax.Array  # nats; smoothed if that is wanted
    log_z: jax.Array  # nats
    # if statistics are wanted:
    entropy: jax.Array | None = None  # nats
    correct: jax.Array | None = None  # bool, whether no other word is as probable as the target


def _smoothed(smoothing, scores, targets):
    """Computes (1 - epsilon) o_x + epsilon / V sum_v o_v from all scores, [n, V]."""
    of_target = jnp.take_along_axis(scores, targets[:, None], axis=-1)[:, 0]
    if smoothing:
        of_target += smoothing * (scores.mean(axis=-1) - of_target)
    return of_target


def plain_terms(wanted, hidden, weights, bias, targets, shaping=UNSHAPED) -> Terms:
    """Computes the terms by their definitions; holds all logits."""
    return terms_from_scores(wanted, logits(hidden, weights, bias, shaping), targets)


def terms_from_scores(wanted, scores, targets, normalised=False) -> Terms:
    """Computes the terms from the scores of all words, [N, V], or from log p if normalised."""
    log_z = jnp.zeros_like(scores[:, 0]) if normalised else jax.nn.logsumexp(scores, axis=-1)
    of_target = _smoothed(wanted.smoothing, scores, targets)
    if not wanted.statistics:
        return Terms(log_z - of_target, log_z)
    shares = jnp.exp(scores - log_z[:, None])
    log_shares = jnp.where(shares > 0, scores - log_z[:, None], 0)
    is_target = jnp.arange(scores.shape[-1])[None] == targets[:, None]
    others = jnp.where(is_target, -jnp.inf, scores)
    correct = of_target > jax.lax.stop_gradient(others).max(axis=-1)
    return Terms(log_z - of_target, log_z, -(shares * log_shares).sum(axis=-1), correct)


def logits_of_rows(cut, number, shaping, hidden, weights, bias):
    """Computes the logits of a block of words.

    Gives (logits [N, size], -inf for words that an earlier block has; the block's rows of W).
    """
    rows = cut.take_narrow(number, weights)
    block_logits = logits(hidden, rows, cut.take(number, bias), shaping)
    return cut.masked(number, block_logits, -jnp.inf), rows


class Exponentials(NamedTuple):
    """A running sum of exponentials; its logarithm is only taken at the end, for one after each
    block would add a rounding error each time."""

    largest: jax.Array  # the largest logit so far, [N]
    total: jax.Array  # the sum of exp(logit - largest), [N]
    weighted: jax.Array  # the sum of exp(logit - largest) x, [N], for numbers x of each word

    @classmethod
    def none(cls, hidden):
        """Returns the sum over no logits."""
        tokens, dtype = hidden.shape[0], accumulator(hidden)
        # The least finite number stands for -inf, whose difference with itself would be NaN.
        least = sharded_functions.filled(tokens, jnp.finfo(dtype).min, dtype, hidden)
        zeros = sharded_functions.zeros(tokens, dtype, hidden)
        return cls(least, zeros, zeros)

    def plus(self, logits, numbers=None):
        """Returns the sum with the exponentials of further logits, and their numbers, added, and
        these exponentials, exp(logit - largest)."""
        largest = jnp.maximum(self.largest, logits.max(axis=-1))
        scale = jnp.exp(self.largest - largest)
        exponentials = jnp.exp(logits - largest[:, None])
        weighted = self.weighted
        if numbers is not None:
            added = jnp.where(exponentials > 0, exponentials * numbers, 0)
            weighted = weighted * scale + added.sum(axis=-1)
        total = self.total * scale + exponentials.sum(axis=-1)
        return Exponentials(largest, total, weighted), exponentials

    def moved(self, below, new):
        """Returns the sum of exp(o - m) (o - m), with the largest logit m of `new`."""
        shift = self.largest - new.largest
        return (below + shift * self.total) * jnp.exp(shift)

    def log(self):
        """Returns the logarithm of the sum, [N]."""
        return self.largest + jnp.log(self.total)

    def log_over(self, other):
        """Returns the logarithm of the sum divided by another, exact where they are close."""
        return (self.largest - other.largest) + jnp.log(self.total / other.total)

    def mean(self):
        """Returns the mean of the numbers under the softmax, [N]."""
        return self.weighted / self.total


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def blocked_terms(wanted, block, hidden, weights, bias, targets, shaping=UNSHAPED) -> Terms:
    """Computes `plain_terms` by blocks of the vocabulary, differentiable backwards.

    Memory beside arguments and results is O(N * block), forward and backward.
    """
    cut = row_blocks.RowBlocks.from_size(weights.shape[0], block)
    terms, _, _ = walk(wanted, cut, hidden, weights, bias, targets, shaping)
    return terms


def walk(wanted, cut, hidden, weights, bias, targets, shaping, measure=None, kept=False):
    """Computes the terms by blocks of words, and of one block also with a measure, log m [N, V].

    Gives (terms, the running sum, and if they are to be kept what each block has for gradients: the
    exponentials [blocks, N, size], the largest logit so far [blocks, N], and capped logits).
    """
    of_target = target_logits(hidden, weights, bias, targets, shaping)

    def step(carry, number):
        sums, total, rival, below = carry
        block_logits, _ = logits_of_rows(cut, number, shaping, hidden, weights, bias)
        if wanted.smoothing:
            total += cut.masked(number, block_logits, 0).sum(axis=-1)
        if wanted.statistics:
            is_target = cut.row_numbers(number)[None] == targets[:, None]
            rival = jnp.maximum(rival, jnp.where(is_target, -jnp.inf, block_logits).max(axis=-1))
        new, exponentials = sums.plus(measured(block_logits, measure))
        if wanted.statistics:
            below = sums.moved(below, new) + _below(block_logits, new.largest).sum(axis=-1)
        capped = None if shaping.soft_cap is None else block_logits
        return (new, total, rival, below), (exponentials, new.largest, capped) if kept else None

    zeros = sharded_functions.zeros(hidden.shape[0], accumulator(hidden), hidden)
    initial = Exponentials.none(hidden), zeros, zeros - jnp.inf, zeros
    (sums, total, rival, below), of_blocks = jax.lax.scan(step, initial, cut.numbers())
    log_z, smoothed = sums.log(), of_target
    if wanted.smoothing:
        smoothed += wanted.smoothing * (total / cut.rows - of_target)
    terms = Terms(log_z - smoothed, log_z)
    if wanted.statistics:
        entropy = jnp.log(sums.total) - below / sums.total
        terms = Terms(*terms[:2], entropy, of_target > rival)
    return terms, sums, of_blocks


def measured(scores, measure):
    return scores if measure is None else scores + measure.astype(scores.dtype)


def _below(scores, largest):
    """Computes exp(o_v - largest) (o_v - largest); 0 where a word has no mass."""
    beneath = scores - largest[:, None]
    exponentials = jnp.exp(beneath)
    return exponentials * jnp.where(exponentials > 0, beneath, 0)


def _blocked_forward(wanted, block, hidden, weights, bias, targets, shaping):
    terms = blocked_terms(wanted, block, hidden, weights, bias, targets, shaping)
    return terms, (hidden, weights, bias, targets, shaping, terms)


def _blocked_backward(wanted, block, residuals, cotangents):
    """Computes gradients by blocks.

    d log Z / d o_v = p_v, d o_x / d o_v = [v = x], d H / d o_v = -p_v (log p_v + H).
    """
    hidden, weights, bias, targets, shaping, terms = residuals
    observed = cotangents.loss * (1 - wanted.smoothing)
    uniform = cotangents.loss * wanted.smoothing / weights.shape[0]
    scale = (cotangents.loss + cotangents.log_z)[:, None]

    cut = row_blocks.RowBlocks.from_size(weights.shape[0], block)

    def slopes_of(number, block_logits):
        log_p, factor = block_logits - terms.log_z[:, None], scale
        p = jnp.exp(log_p)
        if wanted.statistics:
            log_p = jnp.where(p > 0, log_p, 0)
            factor -= cotangents.entropy[:, None] * (log_p + terms.entropy[:, None])
        expected = p * factor
        slopes = difference(expected, targets, observed, cut.row_numbers(number))
        return [slopes - uniform[:, None] if wanted.smoothing else slopes]

    table = hidden, weights, bias
    (gradients,) = gradients_by_words(cut, (table,), shaping, slopes_of)
    return *gradients, None, None


blocked_terms.defvjp(_blocked_forward, _blocked_backward)


def gradients_by_words(cut, tables, shaping, slopes_of):
    """Computes the gradients of each (hidden, weights, bias) by blocks of the vocabulary.

    `slopes_of`: (number of a block, *logits [N, size] of each table) -> their slopes [N, size],
    before they were shaped.
    """

    def step(sums, number):
        blocks = [logits_of_rows(cut, number, shaping, *table) for table in tables]
        of_scores = slopes_of(number, *(scores for scores, _ in blocks))
        parts = zip(sums, tables, blocks, of_scores, strict=True)
        return [
            _with_block(cut, number, of_table, table, rows, shaping.slopes(scores, slopes))
            for of_table, table, (scores, rows), slopes in parts
        ], None

    def zeros(x, dtype):
        return row_blocks.bits(sharded_functions.zeros(x.shape, dtype, tables[0][0]))

    # A word's gradient comes from one block, and is rounded once.
    initial = [
        (zeros(hidden, accumulator(hidden)), *(zeros(x, x.dtype) for x in of_words))
        for hidden, *of_words in tables
    ]
    sums, _ = jax.lax.scan(step, initial, cut.numbers())
    return [
        (of_hidden.astype(hidden.dtype), *map(row_blocks.from_bits, of_words, table))
        for (of_hidden, *of_words), (hidden, *table) in zip(sums, tables, strict=True)
    ]


def _with_block(cut, number, sums, table, rows, slopes):
    """Adds the gradients of a block of words to the gradients of their table."""
    (of_hidden, *of_words), (hidden, *_) = sums, table
    slopes = cut.masked(number, slopes, 0)
    of_block, of_rows = products.both_gradients(slopes, hidden, rows)
    new = [
        cut.put(number, old, row_blocks.bits(of_some.astype(x.dtype)))
        for old, of_some, x in zip(of_words, (of_rows, slopes.sum(axis=0)), table[1:], strict=True)
    ]
    return of_hidden + of_block, *new


# ---------------------------------------------------------------- any leading axes


@over_tokens("hidden")
def softmax_loss(
    hidden,
    weights,
    bias,
    targets,
    block=None,
    log_measure=None,
    contexts=None,
    width=0,
    *,
    soft_cap=None,
    temperature=1.0,
    label_smoothing=0.0,
):
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
      soft_cap: the number beyond which no score goes; None for no cap.
      temperature: T, above 0; it gets no gradient, and neither does the cap.
      label_smoothing: epsilon, the share of the target distribution that is uniform over V words.

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
      >>> given = jax.tree_util.Partial(lambda contexts: contexts)  # which are log m here
      >>> measure = {"log_measure": given, "contexts": jnp.log(jnp.full((2, 8), 0.5))}
      >>> print(losses.softmax_loss(h, *table, jnp.array([0, 7]), **measure)[1].round(3))
      [1.386 1.386]

    Source: Milakov and Gimelshein (2018), for the running log-sum-exp; Dymetman and Xiao (2016),
    section 2, for the measure; Gemma Team (2024), section 2, for the soft cap; Szegedy et al.
    (2016), section 7, for label smoothing.
    """
    check_softmax(hidden, weights, bias, targets=targets, block=block)
    value_checks.check_share(label_smoothing=label_smoothing)
    shaping, wanted = Shaping.from_options(soft_cap, temperature), TermOptions(label_smoothing)
    vocabulary = weights.shape[0]
    if log_measure is None:
        terms = exact_terms(hidden, weights, bias, targets, block, shaping, wanted)
        return value_checks.nan_where_invalid(terms.loss, vocabulary, targets), terms.log_z
    h, c = flat_contexts(log_measure, hidden, contexts, targets, weights.shape[0])
    if block is None:
        block = token_block(targets.size, max(weights.shape[0], width))
    arguments = h, weights, bias, targets.reshape(-1), block, log_measure, c, shaping, wanted
    loss, log_z = (result.reshape(targets.shape) for result in _measured_loss(*arguments))
    return value_checks.nan_where_invalid(loss, vocabulary, targets), log_z


def _measured_loss(hidden, weights, bias, targets, block, log_measure, contexts, shaping, wanted):
    """Computes log sum_v m_nv exp(o_v) - o_x of each token, by blocks of tokens.

    Gives (loss [N], log Z [N]) in nats, both differentiable. Logits and measure are recomputed in
    the backward pass, so that the memory is O(block * V).
    """

    @jax.checkpoint
    def of_block(inputs):
        h, x, c = inputs
        block_logits = logits(h, weights, bias, shaping)
        log_z = jax.nn.logsumexp(block_logits + log_measure(c).astype(block_logits.dtype), axis=-1)
        return log_z - _smoothed(wanted.smoothing, block_logits, x), log_z

    tokens = hidden.shape[0]
    columns = row_blocks.cut_rows(
        (hidden, targets, contexts), row_blocks.at_most(block, tokens), filling="edge"
    )
    results = jax.lax.map(of_block, columns)
    return row_blocks.join_rows(results, tokens)


def flat_contexts(log_measure, hidden, contexts, targets, vocabulary):
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


def exact_terms(
    hidden, weights, bias, targets, block=None, shaping=UNSHAPED, wanted=TermOptions()
) -> Terms:
    """Computes the terms, [...], without checks, so that targets of padding may be anything."""
    hidden, weights, bias, targets = vary_together((hidden, weights, bias, targets))
    hidden, shape = as_wide(hidden, weights, bias), targets.shape
    hidden, targets = hidden.reshape(-1, hidden.shape[-1]), targets.reshape(-1)
    if block is None:
        block = vocabulary_block(hidden.shape[0], *weights.shape)
    if block >= weights.shape[0]:
        hidden, weights, bias = map(_backward_only, (hidden, weights, bias))
        terms = plain_terms(wanted, hidden, weights, bias, targets, shaping)
    else:
        terms = blocked_terms(wanted, block, hidden, weights, bias, targets, shaping)
    return jax.tree.map(lambda term: term.reshape(shape), terms)


@jax.custom_vjp
def _backward_only(array):
    """Returns the array, without forward-mode derivatives, which the blocked form does not have."""
    return array


# The forward pass calls the function itself, as the blocked form does: so forward mode over reverse
# mode is excluded, too.
_backward_only.defvjp(
    lambda array: (_backward_only(array), None), lambda _, cotangent: (cotangent,)
)


def check_softmax(hidden, weights, bias, block=None, **of_tokens):
    """Checks a softmax, arrays over its tokens such as targets, and the size of blocks."""
    table = {"hidden": (hidden, "... D"), "weights": (weights, "V D"), "bias": (bias, "V")}
    if 0 in np.shape(weights):
        raise ValueError(f"weights has the shape {np.shape(weights)}: give a word and a column")
    value_checks.check_words(table, **of_tokens)
    if block is not None and (not isinstance(block, int | np.integer) or block < 1):
        raise ValueError(f"block is {block!r}: give a whole number of at least 1")
