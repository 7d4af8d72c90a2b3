"""Log-probabilities of some words of a softmax, such as those that a teacher stored.

A cross-entropy needs one word of each token; distillation from K stored words, a ranking loss or a
reward of several answers needs K. Their scores are taken from the blocks of logits from which log Z
is summed, so that no array [tokens, V] or [tokens, K, D] is held, forward or backward.
"""

import functools

import jax
import jax.numpy as jnp

from zoo.base.arrays import row_blocks, sharded_functions
from zoo.base.arrays.precision import accumulator, as_wide
from zoo.base.arrays.sharded_functions import over_tokens, vary_together
from zoo.base.arrays.types import Array
from zoo.losses import softmax, value_checks
from zoo.losses.shaping import Shaping
from zoo.losses.softmax import Exponentials


@over_tokens("hidden")
def softmax_word_log_probs(
    hidden, weights, bias, words, *, soft_cap=None, temperature=1.0
) -> Array:
    """Computes log p of K words of each token, by blocks of the vocabulary.

    Args:
      hidden, weights, bias: see `softmax_loss`.
      words: int [..., K], each in [0, V), in any order, also repeated.
      soft_cap, temperature: see `softmax_loss`.

    Returns:
      [..., K], nats, differentiable.

    Raises:
      ValueError: shapes do not agree, a word is not a row of W, or a number is out of range.
        TypeError: words are not whole numbers.

    Example:
      >>> table = jnp.zeros((3, 4)), jnp.log(jnp.array([0.5, 0.3, 0.2]))
      >>> log_probs = losses.softmax_word_log_probs(jnp.ones((1, 4)), *table, jnp.array([[2, 0]]))
      >>> print(jnp.exp(log_probs).round(2))
      [[0.2 0.5]]

    Source: Milakov and Gimelshein (2018), for the running log-sum-exp.
    """
    softmax.check_softmax((hidden, weights, bias))
    arrays = {"hidden": (hidden, "... D"), "words": (words, "... K")}
    value_checks.check_shapes(integers=("words",), **arrays)
    value_checks.check_ids(bias.shape[0], words=words)
    shaping = Shaping.from_options(soft_cap, temperature, hidden.shape[:-1])
    states = as_wide(hidden, weights, bias).reshape(-1, hidden.shape[-1])
    ids = jnp.asarray(words, jnp.int32).reshape(-1, words.shape[-1])
    block = softmax.vocabulary_block(states.shape[0], *weights.shape)
    arguments = vary_together(((states, weights, bias), ids, shaping))
    log_probs = _word_log_probs(block, *arguments).reshape(words.shape)
    return value_checks.nan_where_invalid(log_probs, bias.shape[0], jnp.asarray(words))


def take_words(scores: Array, words: Array) -> Array:
    """Returns the scores of words [n, K] out of [n, V]; NaN for ids outside the vocabulary."""
    taken = jnp.take_along_axis(scores, words, axis=-1, mode="clip")
    return value_checks.nan_where_invalid(taken, scores.shape[-1], words)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _word_log_probs(block, operands, words, shaping):
    """Computes log p of words [N, K] by `block` words of the vocabulary."""
    return _forward(block, operands, words, shaping)[0]


def _forward(block, operands, words, shaping):
    """Computes (log p of words [N, K], residuals of the backward pass) in one scan."""
    hidden, _, bias = operands
    blocks = row_blocks.RowBlocks.from_size(bias.shape[0], block)

    def step(carry, number):
        sums, scores = carry
        block_scores, _ = softmax.logits_of_block(blocks, number, shaping, operands)
        columns, is_here = blocks.find(number, words)
        columns = jnp.where(is_here, columns, 0)
        here = jnp.take_along_axis(block_scores, columns, axis=1)
        return (sums.add(block_scores)[0], jnp.where(is_here, here, scores)), None

    zeros = sharded_functions.zeros(words.shape, accumulator(hidden), hidden)
    initial = Exponentials.empty(hidden), zeros
    (sums, scores), _ = jax.lax.scan(step, initial, blocks.numbers())
    log_z = sums.log()
    return scores - log_z[:, None], (operands, words, shaping, log_z)


def _backward(block, residuals, cotangents):
    """Computes the gradients by blocks of words: d log p_k / d o_v = [v = k] - p_v."""
    operands, words, shaping, log_z = residuals
    blocks = row_blocks.RowBlocks.from_size(operands[2].shape[0], block)

    def add_row(row, columns, row_cotangents):
        return row.at[columns].add(row_cotangents, mode="drop")

    def logit_gradients(number, scores):
        columns, is_here = blocks.find(number, words)
        columns = jnp.where(is_here, columns, blocks.size)  # beyond the block: dropped
        expected = jnp.exp(scores - log_z[:, None]) * cotangents.sum(axis=-1, keepdims=True)
        return [jax.vmap(add_row)(-expected, columns, cotangents)]

    tables = [(operands, shaping)]
    ((gradients, shaping_gradients),) = softmax.gradients_by_blocks(blocks, tables, logit_gradients)
    return gradients, None, shaping_gradients


_word_log_probs.defvjp(_forward, _backward)


def top_k_kl_divergence(log_probs: Array, q_log_probs: Array) -> Array:
    """Computes KL(p || q) over K words and the rest of the vocabulary, which counts as one word.

    sum_k p_k log(p_k / q_k) + p_r log(p_r / q_r),    p_r = 1 - sum_k p_k

    Args:
      log_probs: log p of K different words, such as a teacher's best, [..., K], nats.
      q_log_probs: log q of the same words, such as `softmax_word_log_probs` gives, [..., K].

    Returns:
      [...], nats, differentiable.

    Raises:
      ValueError: shapes do not agree, or a log-probability is above 0.

    Example:
      >>> p, q = jnp.log(jnp.array([[0.5, 0.25]])), jnp.log(jnp.array([[0.25, 0.25]]))
      >>> print(losses.top_k_kl_divergence(p, q).round(4))  # log 2 / 2 - log 2 / 4
      [0.1733]

    Source: Goddard et al., "DistillKit" (2024).
    """
    value_checks.check_shapes(log_probs=(log_probs, "... K"), q_log_probs=(q_log_probs, "... K"))
    value_checks.check_log_probs(log_probs=log_probs, q_log_probs=q_log_probs)
    log_p, log_q = _with_rest(log_probs), _with_rest(q_log_probs)
    probs = jnp.exp(log_p)
    return (probs * jnp.where(probs > 0, log_p - log_q, 0)).sum(axis=-1)


def _with_rest(log_probs):
    """Appends the logarithm of the rest of the mass, at least one rounding, [..., K + 1]."""
    log_probs = jnp.asarray(log_probs, accumulator(log_probs))
    log_sum = jax.nn.logsumexp(log_probs, axis=-1, keepdims=True)
    log_rest = jnp.log(-jnp.expm1(jnp.minimum(log_sum, -jnp.finfo(log_probs.dtype).eps)))
    return jnp.concatenate([log_probs, log_rest], axis=-1)
