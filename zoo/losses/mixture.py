"""The exact loss of a mixture of softmaxes, per token and as the weighted sum that training uses.

The sum computes its gradients in the forward pass: see `zoo.losses.token_blocks`. The gradient
needs the posterior of the components, which needs the scores of all words. So a block is some
tokens, whose components are held as the tokens of a softmax.
"""

import jax
import jax.numpy as jnp
import numpy as np

from zoo.base.arrays import sharded_functions
from zoo.base.arrays.precision import as_wide
from zoo.base.arrays.types import Array, Real
from zoo.losses import softmax, token_blocks, value_checks, weighted_softmax
from zoo.losses.shaping import Shaping
from zoo.losses.softmax import TermOptions
from zoo.losses.token_blocks import (
    is_usable,
    stop_weight_gradients,
    weighted_sum,
    zero_padding_rows,
)
from zoo.losses.weighted_softmax import BlockResiduals


@sharded_functions.over_tokens("contexts", axes=2)
def mixture_loss(
    contexts: Array,
    log_prior: Array,
    weights: Array,
    bias: Array,
    targets: Array,
    *,
    soft_cap: Real | None = None,
) -> Array:
    """Computes -log sum_m pi_m softmax(W g_m + c)_x of a mixture of M softmaxes.

    Args:
      contexts: g, [..., M, D].
      log_prior: log pi, [..., M], nats; pi sums to 1 over the components.
      weights: W, [V, D].
      bias: c, [V].
      targets: x, int [...], each in [0, V).
      soft_cap: the number beyond which no score goes, see `softmax_loss`; None for no cap.

    Returns:
      [...], nats; exact.

    Raises:
      ValueError: shapes do not agree, or pi does not sum to 1. TypeError: targets are
        not whole numbers.

    Example:
      >>> bias = jnp.log(jnp.array([0.5, 0.25, 0.25]))
      >>> even = jnp.log(jnp.full((1, 2), 0.5))
      >>> loss = losses.mixture_loss(
      ...     jnp.zeros((1, 2, 4)), even, jnp.ones((3, 4)), bias, jnp.array([0])
      ... )
      >>> print(jnp.exp(-loss).round(4))
      [0.5]

    Source: Yang et al. (2018), section 3.
    """
    _check(contexts, log_prior, weights, bias, targets=targets)
    _check_prior_sums(log_prior)
    shaping = Shaping.from_options(soft_cap)
    losses = _losses((contexts, weights, bias), log_prior, targets, shaping)
    return value_checks.nan_where_invalid(losses, len(bias), targets)


def _losses(operands, log_prior, targets, shaping):
    """Computes the losses [...] of targets [...] under a mixture, unchecked: operands are (contexts
    [..., M, D], weights, bias), log_prior is [..., M]."""
    targets = jnp.broadcast_to(targets[..., None], log_prior.shape)
    terms = softmax.softmax_terms(operands, targets, None, shaping, TermOptions())
    return -jax.nn.logsumexp(log_prior - terms.loss, axis=-1)


def _check_prior_sums(log_prior):
    """Raises ValueError unless exp(log_prior) sums to 1, where its values are known."""
    values = value_checks.concrete_values(log_prior)
    if values is not None:
        remedy = "subtract the logarithm of their sum from log_prior"
        value_checks.check_sums("exp(log_prior)", np.exp(values), remedy)


@sharded_functions.over_tokens("contexts", axes=2)
def weighted_mixture_loss(
    contexts: Array,
    log_prior: Array,
    weights: Array,
    bias: Array,
    targets: Array,
    token_weights: Array,
    block: int | None = None,
    *,
    soft_cap: Real | None = None,
) -> Array:
    """Computes sum_n u_n loss_n of `mixture_loss`, and its gradients in the same pass.

    It does not check that pi sums to 1.

    Args:
      contexts, log_prior, weights, bias, targets: see `mixture_loss`.
      token_weights: u, [...]; 0 for padding, whose contexts and targets may be anything.
      block: the number of tokens in a block, which need not divide the number of tokens; None for a
        fast choice.
      soft_cap: see `mixture_loss`.

    Returns:
      A scalar, nats.

    Raises:
      ValueError: shapes do not agree. TypeError: targets are not whole numbers.

    Example:
      >>> table = jnp.zeros((8, 4)), jnp.zeros(8)
      >>> even = jnp.log(jnp.full((2, 3), 1 / 3))
      >>> loss = losses.weighted_mixture_loss(
      ...     jnp.ones((2, 3, 4)), even, *table, jnp.array([0, 7]), jnp.array([1.0, 0.5])
      ... )
      >>> print(f"{loss:.4f}", f"{1.5 * jnp.log(8):.4f}")
      3.1192 3.1192

    Source: Yang et al. (2018), section 3.
    """
    _check(contexts, log_prior, weights, bias, targets=targets, token_weights=token_weights)
    shaping, components, vocabulary = Shaping.from_options(soft_cap), contexts.shape[-2], len(bias)
    contexts = as_wide(contexts, weights, bias).reshape(-1, *contexts.shape[-2:])
    log_prior = log_prior.reshape(-1, components)
    targets, token_weights = targets.reshape(-1), token_weights.reshape(-1)
    usable = is_usable(contexts).all(axis=-1) & is_usable(jnp.exp(log_prior))
    is_cleared = (token_weights == 0) & ~usable
    contexts = jnp.where(is_cleared[:, None, None], 0, contexts)
    log_prior = jnp.where(is_cleared[:, None], 0, log_prior)
    token_weights = stop_weight_gradients(token_weights, is_cleared)
    undefined = value_checks.nan_where_invalid(jnp.zeros(()), vocabulary, targets, token_weights)
    has_blocks, count = block is not None, targets.shape[0]
    if block is None:
        minimum = weighted_softmax.least_tokens(weights) // components
        block = softmax.token_block(targets.shape[0], components * vocabulary, minimum)
    sizes = block * components, count
    if has_blocks or weighted_softmax.goes_by_token((contexts, weights), *sizes):
        shared, tokens = ((weights, bias), shaping), ((contexts, log_prior), targets)
        (loss,) = token_blocks.weighted_loss(_block_loss, block, shared, tokens, token_weights)
        return undefined + loss
    losses = _losses((contexts, weights, bias), log_prior, targets, shaping)
    return undefined + weighted_sum(losses, token_weights)


@sharded_functions.over_tokens("contexts", axes=2)
def mixture_log_probs(
    contexts: Array, log_prior: Array, weights: Array, bias: Array, *, soft_cap: Real | None = None
) -> Array:
    """Computes log p of every word under a mixture of softmaxes.

    Args:
      contexts, log_prior, weights, bias, soft_cap: see `mixture_loss`.

    Returns:
      [..., V], nats. The logits of all components are held, too: [..., M, V].

    Raises:
      ValueError: shapes do not agree, or pi does not sum to 1.

    Example:
      >>> even = jnp.log(jnp.full(2, 0.5))
      >>> table = jnp.zeros((4, 3)), jnp.zeros(4)
      >>> print(jnp.exp(losses.mixture_log_probs(jnp.ones((2, 3)), even, *table)).round(4))
      [0.25 0.25 0.25 0.25]

    Source: Yang et al. (2018), section 3.
    """
    _check(contexts, log_prior, weights, bias)
    _check_prior_sums(log_prior)
    scores = softmax.logits(contexts, weights, bias, Shaping.from_options(soft_cap))
    return jax.nn.logsumexp(log_prior[..., None] + jax.nn.log_softmax(scores, axis=-1), axis=-2)


def _check(contexts, log_prior, weights, bias, **token_arrays):
    """Raises ValueError unless shapes agree and targets (of weight 0 aside) are words, TypeError
    unless targets are integers."""
    table = {"weights": (weights, "V D"), "bias": (bias, "V")}
    states = {"contexts": (contexts, "... M D"), "log_prior": (log_prior, "... M")}
    value_checks.check_words(states | table, **token_arrays)


def _block_loss(params, shaping, states, x, u):
    """Returns a block's (losses [n], function that adds their gradients): see `token_blocks`.

    With r_m = pi_m p_m(x) / p(x), the posterior of component m, the gradient with respect to the
    logits of component m is u r_m (p_m - onehot(x)); with respect to log pi_m, it is -u r_m.
    """
    g, log_prior = states
    # One product over all components of all tokens: XLA's batched products are slower.
    operands, words = (g.reshape(-1, g.shape[-1]), *params), jnp.repeat(x, log_prior.shape[1])
    terms, residuals = BlockResiduals.forward(TermOptions(), operands, words, shaping)
    joint = log_prior - terms.loss.reshape(log_prior.shape)
    log_p = jax.nn.logsumexp(joint, axis=-1)

    def gradients(sums):
        posterior = zero_padding_rows(u[:, None] * jnp.exp(joint - log_p[:, None]), u)
        flat = posterior.reshape(-1)
        sums, (context_gradients, _) = residuals.gradients(sums, flat, flat)
        return sums, (context_gradients.reshape(g.shape), -posterior)

    return -log_p, gradients
