"""The weighted sum of exact softmax losses, in blocks of tokens: the form that trainers use.

The gradients are formed in the forward pass, while the logits of a block are at hand (see
`zoo.losses.token_blocks`): no product is computed twice, where the losses by token of `softmax`
compute the logits again. The price: there is only a sum, with weights that are known beforehand.
The gradient of the weights is the losses themselves.
"""

import functools

import jax
import jax.numpy as jnp

from zoo.arrays import blocks
from zoo.losses import softmax, token_blocks, values
from zoo.losses.explicit_axes import over_tokens
from zoo.losses.shapes import check_shapes
from zoo.losses.token_weights import present_states, weighted_rows, weighted_sum

# Every block of tokens reads W and adds to a [V, D] gradient. With fewer tokens than this (V above
# 24,000 or so) that costs more time than blocks of the vocabulary, which compute logits twice.
LEAST_TOKENS_AT_A_TIME = 128


def token_block(tokens: int, vocabulary: int) -> int:
    """The number of tokens in a block of the weighted loss."""
    return blocks.even(tokens, softmax.LOGITS_AT_A_TIME // vocabulary)


def _block(penalty, shared, log_measure, h, data, u):
    """Losses of a block of tokens and their gradients, as `zoo.losses.token_blocks` has them."""
    (weights, bias), (x, contexts) = shared, data
    block_logits = softmax.logits(h, weights, bias)
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
        slopes = weighted_rows(softmax.difference(expected, x, u), u)
        hidden_gradient, weights_gradient = softmax.products_with(slopes, h, weights)
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
    values.check_ids(weights.shape[0], token_weights, targets=targets)
    values.check_least(0, "at least 0", penalty=penalty)
    hidden, contexts = jax.tree.map(
        lambda leaf: leaf.reshape(-1, *leaf.shape[targets.ndim :]), (hidden, contexts)
    )
    targets, token_weights = targets.reshape(-1), token_weights.reshape(-1)
    hidden, token_weights = present_states(hidden, token_weights)
    tokens, vocabulary = targets.shape[0], weights.shape[0]
    by_token = block is not None or log_measure is not None
    block = token_block(tokens, vocabulary) if block is None else block
    if by_token or block >= blocks.at_most(LEAST_TOKENS_AT_A_TIME, tokens):
        return token_blocks.weighted_loss(
            functools.partial(_block, penalty),
            block,
            (weights, bias),
            log_measure,
            hidden,
            (targets, contexts),
            token_weights,
        )
    losses, log_z = softmax.exact_loss(hidden, weights, bias, targets)
    if penalty:
        losses += penalty * log_z * log_z
    return weighted_sum(losses, token_weights)
