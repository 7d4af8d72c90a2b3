"""The weighted sum of exact softmax losses, in blocks of tokens: the form that trainers use.

`token_blocked_softmax_loss` forms the gradients in its forward pass, while the logits of a block
are at hand: no product is computed twice, where the per-token losses of `softmax` compute the
logits again. The price: it gives only a sum, with weights that are known beforehand. The gradient
of the weights is the losses themselves.
"""

import functools

import jax
import jax.numpy as jnp

from zoo.arrays import blocks
from zoo.losses import softmax
from zoo.losses.shapes import check_shapes
from zoo.losses.token_weights import slopes_of_weights, weighted_rows, weighted_sum

# Every block of tokens reads W and adds to a [V, D] gradient. With fewer tokens than this (V above
# 24,000 or so) that costs more time than blocks of the vocabulary, which compute logits twice.
LEAST_TOKENS_AT_A_TIME = 128


def token_block(tokens: int, vocabulary: int) -> int:
    """Tokens to take at a time in the weighted loss."""
    return blocks.even(tokens, softmax.LOGITS_AT_A_TIME // vocabulary)


@functools.partial(jax.custom_vjp, nondiff_argnums=(5, 6))
def token_blocked_softmax_loss(
    hidden,
    weights,
    bias,
    targets,
    token_weights,
    block,
    penalty=0.0,
    log_measure=None,
    contexts=None,
):
    """sum_n u_n (loss(h_n, x_n) + penalty log^2 Z_n), `block` tokens at a time.

    The gradients are formed in the forward pass.

    Args:
      hidden: [N, D]; weights: [V, D]; bias: [V]; targets: int [N], each in [0, V).
      token_weights: [N], the u_n.
      block: tokens at a time; need not divide N. penalty: of the squared log Z, 0 for none.
      log_measure: a `jax.tree_util.Partial`, contexts of a block -> log m, [block, V]; or None for
        a measure of 1. contexts: its argument, a pytree of leaves [N, ...]. They get no gradient.

    Returns:
      The weighted sum, a scalar in nats. Memory beyond arguments and results: O(block * V).
    """
    data = (hidden, targets, token_weights, contexts)
    return _over_token_blocks(
        data, weights, bias, log_measure, block, penalty, with_gradients=False
    )[0]


def _weighted_forward(
    hidden, weights, bias, targets, token_weights, block, penalty, log_measure=None, contexts=None
):
    data = (hidden, targets, token_weights, contexts)
    return _over_token_blocks(data, weights, bias, log_measure, block, penalty, with_gradients=True)


def _over_token_blocks(data, weights, bias, log_measure, block, penalty, *, with_gradients):
    hidden, targets, token_weights, contexts = data
    tokens = len(targets)
    block = min(block, tokens)
    # Tokens that fill the last block have weight 0, so they add nothing to sum or gradients.
    weight_blocks = blocks.of_rows(token_weights, block)
    hidden_blocks, target_blocks, context_blocks = blocks.of_rows(
        (hidden, targets, contexts), block, filling="edge"
    )

    def step(carry, inputs):
        total, weights_gradient, bias_gradient = carry
        h, x, u, c = inputs
        block_logits = softmax.logits(h, weights, bias)
        target_logits = jnp.take_along_axis(block_logits, x[:, None], axis=-1)[:, 0]
        if log_measure is not None:
            block_logits += log_measure(c).astype(block_logits.dtype)
        largest = block_logits.max(axis=-1)
        exponentials = jnp.exp(block_logits - largest[:, None])
        z = exponentials.sum(axis=-1)
        log_z = largest + jnp.log(z)
        losses = log_z - target_logits + penalty * log_z * log_z
        total += weighted_sum(losses, u)
        if not with_gradients:
            return (total, weights_gradient, bias_gradient), None
        expected = exponentials * (u * (1 + 2 * penalty * log_z) / z)[:, None]
        slopes = weighted_rows(softmax.difference(expected, x, u), u)
        of_hidden, of_weights = softmax.products_with(slopes, h, weights)
        weights_gradient += of_weights.astype(weights_gradient.dtype)
        bias_gradient += slopes.sum(axis=0).astype(bias_gradient.dtype)
        of_tokens = of_hidden.astype(h.dtype), slopes_of_weights(losses, u)
        return (total, weights_gradient, bias_gradient), of_tokens

    zero = jnp.zeros((), softmax.accumulator(hidden))
    inputs = (hidden_blocks, target_blocks, weight_blocks, context_blocks)
    if not with_gradients:
        (total, _, _), _ = jax.lax.scan(step, (zero, zero, zero), inputs)
        return total, None
    initial = (zero, *(jnp.zeros(x.shape, softmax.accumulator(x)) for x in (weights, bias)))
    (total, weights_gradient, bias_gradient), of_tokens = jax.lax.scan(step, initial, inputs)
    hidden_gradient, of_token_weights = blocks.joined(of_tokens, tokens)
    gradients = (weights_gradient.astype(weights.dtype), bias_gradient.astype(bias.dtype))
    return total, (hidden_gradient, *gradients, of_token_weights)


def _weighted_backward(block, penalty, gradients, cotangent):
    *of_arrays, of_token_weights = ((g * cotangent).astype(g.dtype) for g in gradients)
    return *of_arrays, None, of_token_weights, None, None


token_blocked_softmax_loss.defvjp(_weighted_forward, _weighted_backward)


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
):
    """Computes sum_n u_n (loss_n + penalty log^2 Z_n) of the softmax, with its gradients.

    loss_n and log Z_n are those of `softmax_loss`. In blocks of tokens, whose gradients are formed
    in the forward pass, or of the vocabulary where that is faster: never a [tokens, V] array.

    Args:
      hidden: h, [..., D].
      weights: W, [V, D].
      bias: c, [V].
      targets: x, int [...], each in [0, V).
      token_weights: u, [...]; where 0, as of padding, a token may hold anything.
      block: tokens at a time, which need not divide them; None for what is fast.
      penalty: of the squared log Z, a nat a squared nat; 0 for none.
      log_measure: a `jax.tree_util.Partial`, contexts of n tokens -> log m, [n, V], which is added
        to the logits in log Z; None for a measure of 1.
      contexts: its argument, a pytree of leaves [..., ?]. They get no gradient.

    Returns:
      A scalar, nats. Beyond arguments and results the memory is some multiple of
      `softmax.LOGITS_AT_A_TIME`, or O(block * V).

    Raises:
      ValueError: shapes do not agree. TypeError: targets are no whole numbers.

    Example:
      >>> table = jnp.zeros((8, 4)), jnp.zeros(8)
      >>> u = jnp.array([1.0, 2.0, 0.0])  # the third token is padding
      >>> loss = losses.weighted_softmax_loss(jnp.ones((3, 4)), *table, jnp.array([0, 7, 0]), u)
      >>> print(f"{loss:.4f}", f"{3 * jnp.log(8):.4f}")
      6.2383 6.2383

    Source: of the penalty, Devlin et al. (2014), section 2.2.
    """
    check_shapes(
        hidden=(hidden, "... D"),
        weights=(weights, "V D"),
        bias=(bias, "V"),
        targets=(targets, "..."),
        token_weights=(token_weights, "..."),
        integers=("targets",),
    )
    hidden, contexts = jax.tree.map(
        lambda leaf: leaf.reshape(targets.size, *leaf.shape[targets.ndim :]), (hidden, contexts)
    )
    targets, token_weights = targets.reshape(-1), token_weights.reshape(-1)
    tokens, vocabulary = targets.size, weights.shape[0]
    by_token = block is not None or log_measure is not None
    block = token_block(tokens, vocabulary) if block is None else block
    if by_token or block >= min(tokens, LEAST_TOKENS_AT_A_TIME):
        return token_blocked_softmax_loss(
            hidden,
            weights,
            bias,
            targets,
            token_weights,
            block,
            penalty,
            log_measure,
            contexts,
        )
    losses, log_z = softmax.softmax_loss(hidden, weights, bias, targets)
    if penalty:
        losses += penalty * log_z * log_z
    return weighted_sum(losses, token_weights)
