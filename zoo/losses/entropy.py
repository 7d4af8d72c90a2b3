"""Entropy, accuracy and divergence of softmaxes, by blocks of the vocabulary.

For p = softmax(o) and q = softmax(o') over the same words,

    H(p) = log Z - sum_v p_v o_v,    KL(p || q) = sum_v p_v (o_v - o'_v) - log Z + log Z',

are running sums over the words, as log Z is. Gradients come from the slopes

    d H / d o_v = -p_v (log p_v + H),
    d KL / d o_v = p_v (log p_v - log q_v - KL),    d KL / d o'_v = q_v - p_v,

by blocks, too: no array [tokens, V] is held, forward or backward.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from zoo.base.arrays import row_blocks
from zoo.base.arrays.precision import as_wide
from zoo.base.arrays.sharded_functions import over_tokens, vary_together
from zoo.base.arrays.types import Array, Real
from zoo.losses import softmax
from zoo.losses.softmax import Exponentials, Shaping, TermOptions, Terms
from zoo.losses.value_checks import check_shapes, nan_where_invalid


class Statistics(NamedTuple):
    """log p of a target, the entropy of its distribution, and whether the target is the best word.

    Attributes:
      log_prob: log p(x), [...], nats.
      entropy: -sum_v p_v log p_v, [...], nats.
      correct: bool [...], whether x is more probable than every other word.
    """

    log_prob: Array
    entropy: Array
    correct: Array


@over_tokens("hidden")
def softmax_statistics(
    hidden: Array,
    weights: Array,
    bias: Array,
    targets: Array,
    *,
    soft_cap: Real | None = None,
    temperature: Real = 1.0,
) -> Statistics:
    """Computes log p(x), the entropy of p and whether x is its best word, in one pass.

    Args:
      hidden, weights, bias, targets, soft_cap: see `softmax_loss`.
      temperature: T, above 0.

    Returns:
      A `Statistics`, whose numbers in nats are differentiable.

    Raises:
      ValueError: shapes do not agree, a target is not a row of W, or a number is out of range.
        TypeError: targets are not whole numbers.

    Example:
      >>> table = jnp.zeros((2, 4)), jnp.log(jnp.array([0.75, 0.25]))
      >>> statistics = losses.softmax_statistics(jnp.ones((2, 4)), *table, jnp.array([0, 1]))
      >>> print(statistics.entropy.round(3), statistics.correct)
      [0.562 0.562] [ True False]

    Source: Milakov and Gimelshein (2018), for running sums over the words.
    """
    softmax.check_softmax((hidden, weights, bias), targets=targets)
    shaping, options = Shaping.from_options(soft_cap, temperature), TermOptions(statistics=True)
    terms = softmax.softmax_terms((hidden, weights, bias), targets, None, shaping, options)
    loss = nan_where_invalid(terms.loss, weights.shape[0], targets)
    return statistics_from_terms(terms._replace(loss=loss))


def statistics_from_terms(terms: Terms) -> Statistics:
    """Returns log p(x), entropy and accuracy from terms with statistics and no smoothing."""
    assert terms.entropy is not None and terms.correct is not None  # as was asked for
    return Statistics(-terms.loss, terms.entropy, terms.correct)


@over_tokens("hidden")
def softmax_kl_divergence(
    hidden: Array,
    weights: Array,
    bias: Array,
    q_hidden: Array,
    q_weights: Array,
    q_bias: Array,
    *,
    soft_cap: Real | None = None,
    temperature: Real = 1.0,
) -> Array:
    """Computes KL(p || q) of two softmaxes over the same words, such as a teacher and a student.

    Args:
      hidden: the hidden states of p, [..., D].
      weights: the vectors of p's words, [V, D].
      bias: the biases of p's words, [V].
      q_hidden: the hidden states of q, [..., E].
      q_weights: the vectors of q's words, [V, E].
      q_bias: the biases of q's words, [V].
      soft_cap: the number beyond which no score of either goes; None for no cap.
      temperature: T of both, above 0.

    Returns:
      [...], nats, differentiable. With respect to q, the gradient is the cross-entropy's.

    Raises:
      ValueError: shapes do not agree, or a number is out of range.

    Example:
      >>> p, q = jnp.log(jnp.array([0.5, 0.25, 0.25])), jnp.zeros(3)
      >>> h, table = jnp.ones((1, 4)), jnp.zeros((3, 4))
      >>> print(losses.softmax_kl_divergence(h, table, p, h, table, q).round(3))
      [0.059]

    Source: Hinton, Vinyals and Dean (2015), for distillation at a temperature.
    """
    check_shapes(
        hidden=(hidden, "... D"),
        weights=(weights, "V D"),
        bias=(bias, "V"),
        q_hidden=(q_hidden, "... E"),
        q_weights=(q_weights, "V E"),
        q_bias=(q_bias, "V"),
    )
    shaping = Shaping.from_options(soft_cap, temperature)
    shape = hidden.shape[:-1]
    p = as_wide(hidden, weights, bias).reshape(-1, hidden.shape[-1]), weights, bias
    q = as_wide(q_hidden, q_weights, q_bias).reshape(-1, q_hidden.shape[-1]), q_weights, q_bias
    p, q = vary_together((p, q))
    block = softmax.vocabulary_block(p[0].shape[0], len(bias), p[0].shape[1] + q[0].shape[1])
    return _kl_divergence(block, p, q, shaping).reshape(shape)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _kl_divergence(block, p, q, shaping):
    """Computes KL(p || q) [N] of p and q, each (hidden [N, ?], weights, bias), by `block` words."""
    return _kl_forward(block, p, q, shaping)[0]


def _kl_forward(block, p, q, shaping):
    """Computes (KL(p || q) [N], residuals of the backward pass) in one scan over the words."""
    blocks = row_blocks.RowBlocks.from_size(len(p[1]), block)

    def step(carry, number):
        p_sum, q_sum = carry
        p_scores, _ = softmax.logits_of_block(blocks, number, shaping, p)
        q_scores, _ = softmax.logits_of_block(blocks, number, shaping, q)
        return (p_sum.add(p_scores, p_scores - q_scores)[0], q_sum.add(q_scores)[0]), None

    initial = Exponentials.empty(p[0]), Exponentials.empty(q[0])
    (p_sum, q_sum), _ = jax.lax.scan(step, initial, blocks.numbers())
    divergence = p_sum.mean() + q_sum.log_ratio(p_sum)
    return divergence, (p, q, shaping, (p_sum.log(), q_sum.log()), divergence)


def _kl_backward(block, residuals, cotangent):
    """Computes the gradients of p's and q's arrays by blocks of words; the shaping gets none."""
    p, q, shaping, log_zs, divergence = residuals
    blocks = row_blocks.RowBlocks.from_size(len(p[1]), block)

    def logit_gradients(number, p_scores, q_scores):
        log_p, log_q = p_scores - log_zs[0][:, None], q_scores - log_zs[1][:, None]
        p_probs = jnp.exp(log_p)
        p_grad = jnp.where(p_probs > 0, p_probs * (log_p - log_q - divergence[:, None]), 0)
        q_grad = jnp.exp(log_q) - p_probs
        return [p_grad * cotangent[:, None], q_grad * cotangent[:, None]]

    return *softmax.gradients_by_blocks(blocks, (p, q), shaping, logit_gradients), None


_kl_divergence.defvjp(_kl_forward, _kl_backward)
