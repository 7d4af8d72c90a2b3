"""Exact softmax losses under a measure of the classes that depends on the token.

With a measure m_nv (the mass of each class under a background with a context),

    loss(h_n, x) = log Z_n - o_x,    log Z_n = log sum_v m_nv exp(o_v).

A [tokens, V] array of measures would be as large as one of logits, so the measure is given as a
function and made for a block of tokens when the block is taken: a `jax.tree_util.Partial`,
contexts of n tokens -> log m, [n, V].
"""

import jax
import jax.numpy as jnp

from zoo.arrays import blocks
from zoo.losses import softmax, softmax_sum


def softmax_loss(hidden, weights, bias, targets, block, log_measure, contexts):
    """loss = log sum_v m_nv exp(o_v) - o_x for each token, `block` tokens at a time.

    Args:
      hidden: [N, D]; weights: [V, D]; bias: [V]; targets: int [N], each in [0, V).
      log_measure: contexts -> log m, [n, V]. contexts: its argument, a pytree of leaves [N, ...].

    Returns:
      (loss [N], log Z [N]) in nats. Both can be differentiated; logits and measure are computed
      once more in the backward pass, so that the memory is O(block * V).
    """

    @jax.checkpoint
    def of_block(inputs):
        h, x, c = inputs
        block_logits = softmax.logits(h, weights, bias)
        log_z = jax.nn.logsumexp(block_logits + log_measure(c).astype(block_logits.dtype), axis=-1)
        return log_z - jnp.take_along_axis(block_logits, x[:, None], axis=-1)[:, 0], log_z

    tokens = hidden.shape[0]
    columns = blocks.of_rows((hidden, targets, contexts), min(block, tokens), filling="edge")
    losses, log_zs = jax.lax.map(of_block, columns)
    return losses.reshape(-1)[:tokens], log_zs.reshape(-1)[:tokens]


def loss(hidden, weights, bias, targets, log_measure, contexts, width):
    """(loss, log Z), both [...], under a measure; see `softmax_loss`.

    Args:
      contexts: leaves [..., ?] with the axes of targets in front. width: numbers that log_measure
        holds for a token at most, from which the block is chosen.
    """
    flat, x, block = _flat((hidden, contexts), targets, weights, width)
    results = softmax_loss(flat[0], weights, bias, x, block, log_measure, flat[1])
    return tuple(result.reshape(targets.shape) for result in results)


def summed_loss(hidden, weights, bias, targets, token_weights, log_measure, contexts, width):
    """sum of token_weights [...] * loss under a measure, a scalar in nats; see `loss`."""
    flat, x, block = _flat((hidden, contexts), targets, weights, width)
    return softmax_sum.weighted_softmax_loss(
        flat[0],
        weights,
        bias,
        x,
        token_weights.reshape(-1),
        block,
        log_measure=log_measure,
        contexts=flat[1],
    )


def _flat(tree, targets, weights, width):
    """(leaves [..., ?] as [N, ?], targets [N], tokens to take at a time)."""
    flat = jax.tree.map(lambda leaf: leaf.reshape(targets.size, *leaf.shape[targets.ndim :]), tree)
    return (
        flat,
        targets.reshape(-1),
        softmax_sum.token_block(targets.size, max(weights.shape[0], width)),
    )
