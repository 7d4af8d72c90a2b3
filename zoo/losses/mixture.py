"""The exact loss of a mixture of softmaxes: per token, and as the weighted sum that trainers use.

The sum forms its gradients in the forward pass, as `softmax_sum` does for one softmax. The
posterior of the components, without which there is no gradient, is known as soon as a token has met
all words, so its blocks are of tokens with the whole vocabulary.
"""

import functools

import jax
import jax.numpy as jnp

from zoo.arrays import blocks
from zoo.losses import softmax, softmax_sum
from zoo.losses.shapes import check_shapes
from zoo.losses.token_weights import slopes_of_weights, weighted_rows, weighted_sum


def mixture_loss(contexts, log_prior, weights, bias, targets):
    """Computes -log sum_m pi_m softmax(W g_m + c)_x of a mixture of M softmaxes.

    Args:
      contexts: g, [..., M, D].
      log_prior: log pi, [..., M], nats; the pi sum to 1.
      weights: W, [V, D].
      bias: c, [V].
      targets: x, int [...], each in [0, V).

    Returns:
      [...], nats; exact.

    Raises:
      ValueError: shapes do not agree. TypeError: targets are no whole numbers.

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
    _check(contexts, log_prior, weights, bias, targets=(targets, "..."))
    targets = jnp.broadcast_to(targets[..., None], log_prior.shape)
    losses, _ = softmax.softmax_loss(contexts, weights, bias, targets)
    return -jax.nn.logsumexp(log_prior - losses, axis=-1)


def weighted_mixture_loss(contexts, log_prior, weights, bias, targets, token_weights, block=None):
    """Computes sum_n u_n loss_n of `mixture_loss`, with its gradients.

    In blocks of tokens, whose gradients are formed in the forward pass, or of the vocabulary where
    that is faster.

    Args:
      contexts: g, [..., M, D].
      log_prior: log pi, [..., M], nats.
      weights: W, [V, D].
      bias: c, [V].
      targets: x, int [...], each in [0, V).
      token_weights: u, [...]; where 0, as of padding, a token may hold anything.
      block: tokens at a time, which need not divide them; None for what is fast.

    Returns:
      A scalar, nats.

    Raises:
      ValueError: shapes do not agree. TypeError: targets are no whole numbers.

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
    of_tokens = {"targets": (targets, "..."), "token_weights": (token_weights, "...")}
    _check(contexts, log_prior, weights, bias, **of_tokens)
    components, vocabulary = contexts.shape[-2], len(bias)
    contexts = contexts.reshape(-1, *contexts.shape[-2:])
    log_prior = log_prior.reshape(-1, components)
    targets, token_weights = targets.reshape(-1), token_weights.reshape(-1)
    by_token = block is not None
    if not by_token:
        block = softmax_sum.token_block(targets.size, components * vocabulary)
    least = min(targets.size, softmax_sum.LEAST_TOKENS_AT_A_TIME)
    if by_token or block * components >= least:
        return token_blocked_mixture_loss(
            contexts, log_prior, weights, bias, targets, token_weights, block
        )
    losses = mixture_loss(contexts, log_prior, weights, bias, targets)
    return weighted_sum(losses, token_weights)


def mixture_log_probs(contexts, log_prior, weights, bias):
    """Computes log p of every word under a mixture of softmaxes.

    Args:
      contexts: g, [..., M, D].
      log_prior: log pi, [..., M], nats.
      weights: W, [V, D].
      bias: c, [V].

    Returns:
      [..., V], nats. Beyond it, the logits of all components are held: [..., M, V].

    Raises:
      ValueError: shapes do not agree.

    Example:
      >>> even = jnp.log(jnp.full(2, 0.5))
      >>> table = jnp.zeros((4, 3)), jnp.zeros(4)
      >>> print(jnp.exp(losses.mixture_log_probs(jnp.ones((2, 3)), even, *table)).round(4))
      [0.25 0.25 0.25 0.25]

    Source: Yang et al. (2018), section 3.
    """
    _check(contexts, log_prior, weights, bias)
    of_each = jax.nn.log_softmax(softmax.logits(contexts, weights, bias), axis=-1)
    return jax.nn.logsumexp(log_prior[..., None] + of_each, axis=-2)


def _check(contexts, log_prior, weights, bias, **of_tokens):
    check_shapes(
        contexts=(contexts, "... M D"),
        log_prior=(log_prior, "... M"),
        weights=(weights, "V D"),
        bias=(bias, "V"),
        **of_tokens,
        integers=of_tokens.keys() & {"targets"},
    )


@functools.partial(jax.custom_vjp, nondiff_argnums=(6,))
def token_blocked_mixture_loss(contexts, log_prior, weights, bias, targets, token_weights, block):
    """-sum_n u_n log sum_m pi_nm softmax(W g_nm + c)_{x_n}, `block` tokens at a time.

    With r_nm = pi_nm p_nm(x_n) / p_n(x_n), the posterior of component m, the gradient of the logits
    of component m is u_n r_nm (p_nm - onehot(x_n)), and that of log pi_nm is -u_n r_nm.

    Args:
      contexts: g, [N, M, D]; log_prior: log pi, [N, M]; weights: W, [V, D]; bias: c, [V].
      targets: int [N], each in [0, V). token_weights: [N], the u_n.
      block: tokens at a time; need not divide N.

    Returns:
      The weighted sum, a scalar in nats. Memory beyond arguments and results: O(block * M * V).
    """
    data = (contexts, log_prior, targets, token_weights)
    return _over_token_blocks(data, weights, bias, block, with_gradients=False)[0]


def _forward(contexts, log_prior, weights, bias, targets, token_weights, block):
    data = (contexts, log_prior, targets, token_weights)
    return _over_token_blocks(data, weights, bias, block, with_gradients=True)


def _over_token_blocks(data, weights, bias, block, *, with_gradients):
    contexts, log_prior, targets, token_weights = data
    tokens = len(targets)
    block = min(block, tokens)
    # Tokens that fill the last block have weight 0, so they add nothing to sum or gradients.
    weight_blocks = blocks.of_rows(token_weights, block)
    inputs = blocks.of_rows((contexts, log_prior, targets), block, filling="edge")

    def step(carry, inputs):
        total, weights_gradient, bias_gradient = carry
        (g, prior, x), u = inputs
        # One product over all components of all tokens: XLA's batched products are slower.
        rows = g.reshape(-1, g.shape[-1])
        block_logits = softmax.logits(rows, weights, bias).reshape(*prior.shape, -1)
        target_logits = jnp.take_along_axis(block_logits, x[:, None, None], axis=-1)[..., 0]
        largest = block_logits.max(axis=-1)
        exponentials = jnp.exp(block_logits - largest[..., None])
        z = exponentials.sum(axis=-1)
        joint = prior + target_logits - largest - jnp.log(z)
        log_p = jax.nn.logsumexp(joint, axis=-1)
        total -= weighted_sum(log_p, u)
        if not with_gradients:
            return (total, weights_gradient, bias_gradient), None
        posterior = jnp.exp(joint - log_p[:, None])
        share = weighted_rows(u[:, None] * posterior, u)
        expected = (exponentials * (share / z)[..., None]).reshape(len(rows), -1)
        slopes = softmax.difference(expected, jnp.repeat(x, prior.shape[1]), share.reshape(-1))
        slopes = weighted_rows(slopes, jnp.repeat(u, prior.shape[1]))
        of_rows, of_weights = softmax.products_with(slopes, rows, weights)
        weights_gradient += of_weights.astype(weights_gradient.dtype)
        bias_gradient += slopes.sum(axis=0).astype(bias_gradient.dtype)
        of_contexts = of_rows.astype(g.dtype).reshape(g.shape)
        of_tokens = of_contexts, -share, slopes_of_weights(-log_p, u)
        return (total, weights_gradient, bias_gradient), of_tokens

    zero = jnp.zeros((), softmax.accumulator(contexts))
    if not with_gradients:
        (total, _, _), _ = jax.lax.scan(step, (zero, zero, zero), (inputs, weight_blocks))
        return total, None
    initial = (zero, *(jnp.zeros(x.shape, softmax.accumulator(x)) for x in (weights, bias)))
    (total, weights_gradient, bias_gradient), of_blocks = jax.lax.scan(
        step, initial, (inputs, weight_blocks)
    )
    of_contexts, of_prior, of_token_weights = blocks.joined(of_blocks, tokens)
    gradients = (of_contexts, of_prior, weights_gradient, bias_gradient, of_token_weights)
    like = (contexts, log_prior, weights, bias, token_weights)
    return total, tuple(g.astype(x.dtype) for g, x in zip(gradients, like, strict=True))


def _backward(block, gradients, cotangent):
    *of_arrays, of_token_weights = ((g * cotangent).astype(g.dtype) for g in gradients)
    return *of_arrays, None, of_token_weights


token_blocked_mixture_loss.defvjp(_forward, _backward)
