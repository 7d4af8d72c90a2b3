"""Exact softmax losses that never hold a [tokens, V] array.

For logits o = W h + c over V classes, the loss of a target x is, in nats,

    loss(h, x) = log Z - o_x,    log Z = log sum_v exp(o_v).

`plain_softmax_loss` is that formula. `blocked_softmax_loss` walks over blocks of the vocabulary
with a running log-sum-exp and computes the logits once more in its backward pass: losses per
token, memory of tokens * block. `weighted_softmax_loss` walks over blocks of tokens and forms the
gradients in its forward pass, while the logits are at hand: no product is computed twice, but it
gives only a sum with weights that are known beforehand, which is what a trainer needs.

Where classes have a measure that depends on the token, see `zoo.heads.measured`.
"""

import functools

import jax
import jax.numpy as jnp

# Logits held at a time. 3 Mi float32 logits (12 MiB) keep the products efficient and stay in cache.
LOGITS_AT_A_TIME = 3 * 1024 * 1024
# Every block of tokens reads W and adds to a [V, D] gradient. With fewer tokens than this (V above
# 24,000 or so) that costs more time than blocks of the vocabulary, which compute logits twice.
LEAST_TOKENS_AT_A_TIME = 128
# Rows of W at a time: with 256 columns they fill 2 MiB, a core's cache, which pays more than the
# larger products of larger blocks.
MOST_ROWS_AT_A_TIME = 2048


def vocabulary_block(tokens: int, vocabulary: int) -> int:
    """Rows of W to take at a time; all of them where the logits are few."""
    most = LOGITS_AT_A_TIME // max(tokens, 1)
    if vocabulary <= most:
        return vocabulary
    return min(vocabulary, MOST_ROWS_AT_A_TIME, max(128, most))


def token_block(tokens: int, vocabulary: int) -> int:
    """Tokens to take at a time in the weighted loss: even blocks, so that little is padded."""
    most = max(1, LOGITS_AT_A_TIME // vocabulary)
    return -(-tokens // -(-tokens // most))


def plain_softmax_loss(hidden, weights, bias, targets):
    """loss = log sum_v exp(w_v . h + c_v) - (w_x . h + c_x), holding all logits.

    Args:
      hidden: [N, D]; weights: [V, D]; bias: [V]; targets: int [N], each in [0, V).

    Returns:
      (loss [N], log Z [N]) in nats.
    """
    all_logits = logits(hidden, weights, bias)
    log_z = jax.nn.logsumexp(all_logits, axis=-1)
    return log_z - jnp.take_along_axis(all_logits, targets[:, None], axis=-1)[:, 0], log_z


def logits(hidden, weights, bias):
    """w_v . h + c_v, [..., V], accumulated and kept in at least float32."""
    products = jnp.matmul(hidden, weights.T, preferred_element_type=_accumulator(hidden))
    return products + jnp.broadcast_to(bias.astype(products.dtype), products.shape)


def _accumulator(array):
    """The type in which long sums are kept: bfloat16 stands still after some hundred additions."""
    return jnp.promote_types(array.dtype, jnp.float32)


# ---------------------------------------------------------------- blocks of the vocabulary


def _blocks(vocabulary, block):
    """(start, first) of blocks that cover V rows.

    The last block is shifted back so that none sticks out; the rows before its `first` were seen
    by the block before and must be masked, or they would count twice.
    """
    firsts = jnp.arange(0, vocabulary, block)
    return jnp.minimum(firsts, vocabulary - block), firsts


def _block_logits(hidden, weights, bias, start, first, block):
    rows = jax.lax.dynamic_slice_in_dim(weights, start, block)
    block_logits = logits(hidden, rows, jax.lax.dynamic_slice_in_dim(bias, start, block))
    return jnp.where((start + jnp.arange(block) >= first)[None], block_logits, -jnp.inf), rows


def blocked_log_z(hidden, weights, bias, block):
    """log sum_v exp(w_v . h + c_v) for hidden [N, D] -> [N], `block` rows of W at a time."""

    def step(carry, starts):
        largest, total = carry
        block_logits, _ = _block_logits(hidden, weights, bias, *starts, block)
        new_largest = jnp.maximum(largest, block_logits.max(axis=-1))
        total = total * jnp.exp(largest - new_largest)
        total += jnp.exp(block_logits - new_largest[:, None]).sum(axis=-1)
        return (new_largest, total), None

    tokens, dtype = hidden.shape[0], _accumulator(hidden)
    # The least finite number stands for -inf, whose difference with itself would be NaN.
    initial = (jnp.full(tokens, jnp.finfo(dtype).min, dtype), jnp.zeros(tokens, dtype))
    (largest, total), _ = jax.lax.scan(step, initial, _blocks(weights.shape[0], block))
    return largest + jnp.log(total)


@functools.partial(jax.custom_vjp, nondiff_argnums=(4,))
def blocked_softmax_loss(hidden, weights, bias, targets, block):
    """The same as plain_softmax_loss, `block` rows of W at a time.

    Args:
      hidden: [N, D]; weights: [V, D]; bias: [V]; targets: int [N], each in [0, V).
      block: at most V; need not divide V.

    Returns:
      (loss [N], log Z [N]) in nats. Both can be differentiated; beyond arguments and results the
      memory is O(N * block) forward and backward.
    """
    log_z = blocked_log_z(hidden, weights, bias, block)
    target_logits = jnp.einsum(
        "nd,nd->n", hidden, weights[targets], preferred_element_type=log_z.dtype
    )
    return log_z - target_logits - bias[targets], log_z


def _blocked_forward(hidden, weights, bias, targets, block):
    loss, log_z = blocked_softmax_loss(hidden, weights, bias, targets, block)
    return (loss, log_z), (hidden, weights, bias, targets, log_z)


def _blocked_backward(block, residuals, cotangents):
    """d loss / d o_v = p_v - [v = x] and d log Z / d o_v = p_v, one block of p at a time."""
    hidden, weights, bias, targets, log_z = residuals
    loss_cotangent, log_z_cotangent = cotangents
    scale = (loss_cotangent + log_z_cotangent)[:, None]
    observed = loss_cotangent[:, None].astype(hidden.dtype)

    def step(gradients, starts):
        hidden_gradient, weights_gradient, bias_gradient = gradients
        block_logits, rows = _block_logits(hidden, weights, bias, *starts, block)
        expected = jnp.exp(block_logits - log_z[:, None]) * scale
        expected_rows = expected.astype(hidden.dtype)
        return (
            hidden_gradient + expected_rows @ rows,
            _add_rows(weights_gradient, expected_rows.T @ hidden, starts[0]),
            _add_rows(bias_gradient, expected.sum(axis=0), starts[0]),
        ), None

    initial = (
        -(observed * weights[targets]).astype(_accumulator(hidden)),
        _summed_rows(-observed * hidden, targets, weights),
        _summed_rows(-loss_cotangent, targets, bias),
    )
    gradients, _ = jax.lax.scan(step, initial, _blocks(weights.shape[0], block))
    hidden_gradient, weights_gradient, bias_gradient = gradients
    return (
        hidden_gradient.astype(hidden.dtype),
        weights_gradient.astype(weights.dtype),
        bias_gradient.astype(bias.dtype),
        None,
    )


def _summed_rows(rows, targets, like):
    """Zeros of the shape of `like` with rows added at targets, in at least float32."""
    zeros = jnp.zeros(like.shape, _accumulator(like))
    return zeros.at[targets].add(rows.astype(zeros.dtype))


def _add_rows(array, rows, start):
    old = jax.lax.dynamic_slice_in_dim(array, start, rows.shape[0])
    return jax.lax.dynamic_update_slice_in_dim(array, old + rows.astype(array.dtype), start, 0)


blocked_softmax_loss.defvjp(_blocked_forward, _blocked_backward)


# ---------------------------------------------------------------- blocks of tokens


@functools.partial(jax.custom_vjp, nondiff_argnums=(5,))
def weighted_softmax_loss(
    hidden, weights, bias, targets, token_weights, block, log_measure=None, contexts=None
):
    """sum_n u_n loss(h_n, x_n), `block` tokens at a time, gradients formed in the forward pass.

    Args:
      hidden: [N, D]; weights: [V, D]; bias: [V]; targets: int [N], each in [0, V).
      token_weights: [N], the u_n. They get no gradient.
      block: tokens at a time; need not divide N.
      log_measure: a `jax.tree_util.Partial`, contexts of a block -> log m, [block, V]; or None for
        a measure of 1. contexts: its argument, a pytree of leaves [N, ...]. They get no gradient.

    Returns:
      The weighted sum, a scalar in nats. Memory beyond arguments and results: O(block * V).
    """
    data = (hidden, targets, token_weights, contexts)
    return _over_token_blocks(data, weights, bias, log_measure, block, False)[0]


def _weighted_forward(
    hidden, weights, bias, targets, token_weights, block, log_measure=None, contexts=None
):
    data = (hidden, targets, token_weights, contexts)
    return _over_token_blocks(data, weights, bias, log_measure, block, True)


def token_blocks(tree, block):
    """Leaves [N, ...] as [blocks, block, ...]; the last block is filled with the last token."""

    def cut(leaf):
        padding = [(0, -leaf.shape[0] % block)] + [(0, 0)] * (leaf.ndim - 1)
        return jnp.pad(leaf, padding, mode="edge").reshape(-1, block, *leaf.shape[1:])

    return jax.tree.map(cut, tree)


def _over_token_blocks(data, weights, bias, log_measure, block, with_gradients):
    hidden, targets, token_weights, contexts = data
    tokens, size = hidden.shape
    block = min(block, tokens)
    # Tokens that fill the last block have weight 0, so they add nothing to sum or gradients.
    weight_blocks = jnp.pad(token_weights, (0, -tokens % block)).reshape(-1, block)
    hidden_blocks, target_blocks, context_blocks = token_blocks((hidden, targets, contexts), block)

    def step(carry, inputs):
        total, weights_gradient, bias_gradient = carry
        h, x, u, c = inputs
        block_logits = logits(h, weights, bias)
        target_logits = jnp.take_along_axis(block_logits, x[:, None], axis=-1)[:, 0]
        if log_measure is not None:
            block_logits += log_measure(c).astype(block_logits.dtype)
        largest = block_logits.max(axis=-1)
        exponentials = jnp.exp(block_logits - largest[:, None])
        z = exponentials.sum(axis=-1)
        # A token without weight must not turn an infinite loss into NaN.
        losses = jnp.where(u == 0, 0, largest + jnp.log(z) - target_logits)
        total += jnp.sum(u * losses)
        if not with_gradients:
            return (total, weights_gradient, bias_gradient), None
        expected = exponentials * (u / z)[:, None]
        expected_rows = expected.astype(h.dtype)
        weights_gradient += (expected_rows.T @ h).astype(weights_gradient.dtype)
        bias_gradient += expected.sum(axis=0).astype(bias_gradient.dtype)
        return (total, weights_gradient, bias_gradient), expected_rows @ weights

    zero = jnp.zeros((), _accumulator(hidden))
    blocks = (hidden_blocks, target_blocks, weight_blocks, context_blocks)
    if not with_gradients:
        (total, _, _), _ = jax.lax.scan(step, (zero, zero, zero), blocks)
        return total, None
    observed = token_weights[:, None].astype(hidden.dtype)
    initial = (
        zero,
        _summed_rows(-observed * hidden, targets, weights),
        _summed_rows(-token_weights, targets, bias),
    )
    (total, weights_gradient, bias_gradient), hidden_gradient = jax.lax.scan(step, initial, blocks)
    hidden_gradient = hidden_gradient.reshape(-1, size)[:tokens]
    hidden_gradient -= observed * weights[targets]
    gradients = (weights_gradient.astype(weights.dtype), bias_gradient.astype(bias.dtype))
    return total, (hidden_gradient, *gradients)


def _weighted_backward(block, gradients, cotangent):
    return *(g * cotangent.astype(g.dtype) for g in gradients), None, None, None, None


weighted_softmax_loss.defvjp(_weighted_forward, _weighted_backward)


# ---------------------------------------------------------------- for heads: any leading axes


def softmax_loss(hidden, weights, bias, targets):
    """(loss, log Z), both [...], of hidden [..., D] and targets [...]; the block is chosen here."""
    shape = targets.shape
    hidden, targets = hidden.reshape(-1, hidden.shape[-1]), targets.reshape(-1)
    block = vocabulary_block(hidden.shape[0], weights.shape[0])
    if block == weights.shape[0]:
        loss, log_z = plain_softmax_loss(hidden, weights, bias, targets)
    else:
        loss, log_z = blocked_softmax_loss(hidden, weights, bias, targets, block)
    return loss.reshape(shape), log_z.reshape(shape)


def summed_softmax_loss(hidden, weights, bias, targets, token_weights):
    """sum of token_weights [...] * loss, of hidden [..., D] and targets [...]; a scalar in nats.

    In blocks of tokens, or of the vocabulary where that is faster; beyond arguments and results the
    memory is some multiple of LOGITS_AT_A_TIME.
    """
    hidden = hidden.reshape(-1, hidden.shape[-1])
    targets, token_weights = targets.reshape(-1), token_weights.reshape(-1)
    tokens, vocabulary = targets.size, weights.shape[0]
    block = token_block(tokens, vocabulary)
    if block >= min(tokens, LEAST_TOKENS_AT_A_TIME):
        return weighted_softmax_loss(hidden, weights, bias, targets, token_weights, block)
    losses, _ = softmax_loss(hidden, weights, bias, targets)
    token_weights = jax.lax.stop_gradient(token_weights)
    # A token without weight must not turn an infinite loss into NaN.
    return jnp.sum(jnp.where(token_weights == 0, 0, token_weights * losses))
