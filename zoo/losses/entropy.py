"""Entropy, accuracy and divergence of softmaxes, by blocks of the vocabulary.

For p = softmax(o) and q = softmax(o') over the same words,

    H(p) = log Z - sum_v p_v o_v,    KL(p || q) = sum_v p_v (o_v - o'_v) - log Z + log Z',

are running sums over the words, as log Z is. Gradients come from the slopes

    d H / d o_v = -p_v (log p_v + H),
    d KL / d o_v = p_v (log p_v - log q_v - KL),    d KL / d o'_v = q_v - p_v,

    d JS / d o_v = s p_v (log p_v - log m_v - KL(p || m)),    m = s p + (1 - s) q,

by blocks, too: no array [tokens, V] is held, forward or backward.
"""

import functools
import math
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp

from zoo.base.arrays import row_blocks
from zoo.base.arrays.precision import as_wide
from zoo.base.arrays.sharded_functions import over_tokens, vary_together
from zoo.base.arrays.types import Array, Real
from zoo.losses import softmax
from zoo.losses.shaping import Shaping
from zoo.losses.softmax import Exponentials, TermOptions, Terms
from zoo.losses.value_checks import check_shapes, check_share, nan_where_invalid

Cap: TypeAlias = Real | None


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
    shaping = Shaping.from_options(soft_cap, temperature, targets.shape)
    options = TermOptions(statistics=True)
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
    soft_cap: Cap | tuple[Cap, Cap] = None,
    temperature: Real | tuple[Real, Real] = 1.0,
) -> Array:
    """Computes KL(p || q) of two softmaxes over the same words, such as a teacher and a student.

    Args:
      hidden: the hidden states of p, [..., D].
      weights: the vectors of p's words, [V, D].
      bias: the biases of p's words, [V].
      q_hidden: the hidden states of q, [..., E].
      q_weights: the vectors of q's words, [V, E].
      q_bias: the biases of q's words, [V].
      soft_cap: the number beyond which no score goes, None for no cap; or a pair of p's and q's.
      temperature: T, above 0, or a pair; both as in `softmax_loss`.

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
    arrays = hidden, weights, bias, q_hidden, q_weights, q_bias
    return _between_softmaxes(None, *arrays, soft_cap, temperature)


@over_tokens("hidden")
def softmax_js_divergence(
    hidden,
    weights,
    bias,
    q_hidden,
    q_weights,
    q_bias,
    *,
    p_share=0.5,
    soft_cap=None,
    temperature=1.0,
) -> Array:
    """Computes the Jensen-Shannon divergence, s KL(p || m) + (1 - s) KL(q || m).

    m = s p + (1 - s) q is the mixture of the two.

    Args:
      hidden, weights, bias, q_hidden, q_weights, q_bias: see `softmax_kl_divergence`.
      p_share: s, above 0 and below 1.
      soft_cap, temperature: see `softmax_kl_divergence`.

    Returns:
      [...], nats, differentiable.

    Raises:
      ValueError: shapes do not agree, or a number is out of range.

    Example:
      >>> p, q = jnp.log(jnp.array([0.5, 0.25, 0.25])), jnp.zeros(3)
      >>> h, table = jnp.ones((1, 4)), jnp.zeros((3, 4))
      >>> print(losses.softmax_js_divergence(h, table, p, h, table, q).round(4))
      [0.0144]

    Source: Lin (1991); Agarwal et al. (2024), section 3, for distillation.
    """
    check_share(p_share=p_share)
    if not p_share:
        raise ValueError("p_share is 0: give a number above 0, or take softmax_kl_divergence")
    arrays = hidden, weights, bias, q_hidden, q_weights, q_bias
    return _between_softmaxes(float(p_share), *arrays, soft_cap, temperature)


def _between_softmaxes(
    p_share, hidden, weights, bias, q_hidden, q_weights, q_bias, soft_cap, temperature
) -> Array:
    """Computes a divergence of two softmaxes, [...], after checks of the arguments."""
    check_shapes(
        hidden=(hidden, "... D"),
        weights=(weights, "V D"),
        bias=(bias, "V"),
        q_hidden=(q_hidden, "... E"),
        q_weights=(q_weights, "V E"),
        q_bias=(q_bias, "V"),
    )
    shape = hidden.shape[:-1]
    soft_caps, temperatures = (
        x if isinstance(x, tuple) else (x, x) for x in (soft_cap, temperature)
    )
    p_shaping, q_shaping = (
        Shaping.from_options(*numbers, shape)
        for numbers in zip(soft_caps, temperatures, strict=True)
    )
    p = as_wide(hidden, weights, bias).reshape(-1, hidden.shape[-1]), weights, bias
    q = as_wide(q_hidden, q_weights, q_bias).reshape(-1, q_hidden.shape[-1]), q_weights, q_bias
    p, q = vary_together(((p, p_shaping), (q, q_shaping)))
    columns = hidden.shape[-1] + q_hidden.shape[-1]
    block = softmax.vocabulary_block(math.prod(shape), len(bias), columns)
    return _divergence(p_share, block, p, q).reshape(shape)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _divergence(p_share, block, p, q):
    """Computes JS(p, q) [N], or KL(p || q) for a share of None, by `block` words of p and q, each
    ((hidden [N, ?], weights, bias), shaping)."""
    return _divergence_forward(p_share, block, p, q)[0]


def _divergence_forward(p_share, block, p, q):
    """Computes (the divergence [N], residuals of the backward pass) in one scan over the words for
    KL, in two for JS."""
    blocks = row_blocks.RowBlocks.from_size(len(p[0][2]), block)

    def block_scores(number):
        return [softmax.logits_of_block(blocks, number, s, table)[0] for table, s in (p, q)]

    def step(carry, number):
        (p_sum, q_sum), (p_scores, q_scores) = carry, block_scores(number)
        return (p_sum.add(p_scores, p_scores - q_scores)[0], q_sum.add(q_scores)[0]), None

    initial = Exponentials.empty(p[0][0]), Exponentials.empty(q[0][0])
    (p_sum, q_sum), _ = jax.lax.scan(step, initial, blocks.numbers())
    log_zs = p_sum.log(), q_sum.log()
    if p_share is None:
        divergence = p_sum.mean() + q_sum.log_ratio(p_sum)
        return divergence, (p, q, log_zs, divergence)

    def add(means, number):
        gaps = _gaps_to_mixture(p_share, block_scores(number), log_zs)
        groups = zip(means, gaps, strict=True)
        return [mean + (probs * gap).sum(axis=-1) for mean, (probs, gap) in groups], None

    means, _ = jax.lax.scan(add, [jnp.zeros_like(log_z) for log_z in log_zs], blocks.numbers())
    return p_share * means[0] + (1 - p_share) * means[1], (p, q, log_zs, means)


def _gaps_to_mixture(p_share, scores, log_zs):
    """Returns (p, log p - log m) and (q, log q - log m) of a block, 0 without mass.

    They come from log p - log q, which keeps the divergence exact where p is near q.
    """
    log_p, log_q = (x - log_z[:, None] for x, log_z in zip(scores, log_zs, strict=True))
    p, q, ratio = jnp.exp(log_p), jnp.exp(log_q), log_p - log_q
    p_gap = -jnp.log1p((1 - p_share) * jnp.expm1(-ratio))
    q_gap = -jnp.log1p(p_share * jnp.expm1(ratio))
    return (p, jnp.where(p > 0, p_gap, 0)), (q, jnp.where(q > 0, q_gap, 0))


def _divergence_backward(p_share, block, residuals, cotangent):
    """Computes the gradients of p's and q's arrays by blocks of words."""
    p, q, log_zs, means = residuals
    blocks = row_blocks.RowBlocks.from_size(len(p[0][2]), block)

    def logit_gradients(number, *scores):
        if p_share is not None:
            groups = zip(
                (p_share, 1 - p_share),
                _gaps_to_mixture(p_share, scores, log_zs),
                means,
                strict=True,
            )
            return [
                probs * (gap - mean[:, None]) * (share * cotangent)[:, None]
                for share, (probs, gap), mean in groups
            ]
        log_p, log_q = (x - log_z[:, None] for x, log_z in zip(scores, log_zs, strict=True))
        p_probs = jnp.exp(log_p)
        p_grad = jnp.where(p_probs > 0, p_probs * (log_p - log_q - means[:, None]), 0)
        q_grad = jnp.exp(log_q) - p_probs
        return [p_grad * cotangent[:, None], q_grad * cotangent[:, None]]

    return tuple(softmax.gradients_by_blocks(blocks, (p, q), logit_gradients))


_divergence.defvjp(_divergence_forward, _divergence_backward)
