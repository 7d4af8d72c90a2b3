"""Exact softmax losses under a measure of the classes that depends on the token.

With a measure m_nv (the mass of each class under a background with a context),

    loss(h_n, x) = log Z_n - o_x,    log Z_n = log sum_v m_nv exp(o_v).

An array of measures, [tokens, V], would be as large as the logits. So the measure is given as a
function, a `jax.tree_util.Partial`, contexts of n tokens -> log m, [n, V], and computed for one
block of tokens at a time.
"""

import jax
import jax.numpy as jnp

from zoo.arrays import row_blocks
from zoo.arrays.sharded_functions import over_tokens
from zoo.losses import softmax, value_checks
from zoo.losses.shape_checks import check_shapes


def token_blocked_measured_loss(hidden, weights, bias, targets, block, log_measure, contexts):
    """Computes log sum_v m_nv exp(o_v) - o_x of each token, by blocks of tokens.

    Gives (loss [N], log Z [N]) in nats, both differentiable. Logits and measure are recomputed in
    the backward pass, so that the memory is O(block * V).
    """

    @jax.checkpoint
    def of_block(inputs):
        h, x, c = inputs
        block_logits = softmax.logits(h, weights, bias)
        log_z = jax.nn.logsumexp(block_logits + log_measure(c).astype(block_logits.dtype), axis=-1)
        return log_z - jnp.take_along_axis(block_logits, x[:, None], axis=-1)[:, 0], log_z

    tokens = hidden.shape[0]
    columns = row_blocks.of_rows(
        (hidden, targets, contexts), row_blocks.at_most(block, tokens), filling="edge"
    )
    results = jax.lax.map(of_block, columns)
    return row_blocks.joined(results, tokens)


@over_tokens("hidden")
def measured_softmax_loss(hidden, weights, bias, targets, log_measure, contexts, width=0):
    """Computes log Z - o_x, log Z = log sum_v m_v exp(o_v), o = W h + c, under a measure m.

    Args:
      hidden: h, [..., D].
      weights: W, [V, D].
      bias: c, [V].
      targets: x, int [...], each in [0, V).
      log_measure: a `jax.tree_util.Partial`, contexts of n tokens -> log m, [n, V], nats.
      contexts: its argument, a pytree of leaves [..., ?] with the axes of targets in front.
      width: the most numbers that log_measure holds for a token, from which the size of token
        blocks is chosen; values below V count as V.

    Returns:
      (loss [...], log Z [...]), nats.

    Raises:
      ValueError: shapes do not agree. TypeError: targets are not whole numbers.

    Example:
      >>> log_measure = jax.tree_util.Partial(lambda contexts: contexts)  # which are log m here
      >>> table = jnp.zeros((4, 2)), jnp.zeros(4)
      >>> log_m = jnp.log(jnp.array([[0.5, 0.5, 1.0, 2.0]]))
      >>> arguments = jnp.ones((1, 2)), *table, jnp.array([0]), log_measure, log_m
      >>> loss, log_z = losses.measured_softmax_loss(*arguments)
      >>> print(jnp.exp(log_z).round(3))
      [4.]

    Source: Dymetman and Xiao (2016), section 2, with a background that depends on the context.
    """
    flat, x, block = _flat((hidden, contexts), targets, weights, bias, log_measure, width)
    value_checks.check_ids(weights.shape[0], targets=targets)
    results = token_blocked_measured_loss(flat[0], weights, bias, x, block, log_measure, flat[1])
    return tuple(result.reshape(targets.shape) for result in results)


@over_tokens("hidden")
def weighted_measured_softmax_loss(
    hidden, weights, bias, targets, token_weights, log_measure, contexts, width=0
):
    """Computes sum_n u_n loss_n of `measured_softmax_loss`, and its gradients in the same pass.

    Args:
      hidden: h, [..., D].
      weights: W, [V, D].
      bias: c, [V].
      targets: x, int [...], each in [0, V).
      token_weights: u, [...]; 0 for padding, whose hidden states and targets may be anything.
      log_measure: a `jax.tree_util.Partial`, contexts of n tokens -> log m, [n, V], nats.
      contexts: its argument, a pytree of leaves [..., ?] with the axes of targets in front.
      width: the most numbers that log_measure holds for a token, from which the size of token
        blocks is chosen; values below V count as V.

    Returns:
      A scalar, nats.

    Raises:
      ValueError: shapes do not agree. TypeError: targets are not whole numbers.

    Example:
      >>> log_measure = jax.tree_util.Partial(lambda contexts: contexts)  # which are log m here
      >>> table = jnp.zeros((4, 2)), jnp.zeros(4)
      >>> log_m = jnp.log(jnp.array([[0.5, 0.5, 1.0, 2.0]]))
      >>> arguments = jnp.ones((1, 2)), *table, jnp.array([0]), jnp.ones(1), log_measure, log_m
      >>> print(f"{jnp.exp(losses.weighted_measured_softmax_loss(*arguments)):.3f}")
      4.000

    Source: see `measured_softmax_loss`.
    """
    flat, x, block = _flat((hidden, contexts), targets, weights, bias, log_measure, width)
    return softmax.weighted_softmax_loss(
        flat[0],
        weights,
        bias,
        x,
        token_weights.reshape(-1),
        block,
        log_measure=log_measure,
        contexts=flat[1],
    )


def _flat(tree, targets, weights, bias, log_measure, width):
    """Returns (leaves [..., ?] as [N, ?], targets [N], number of tokens in a block)."""
    check_shapes(
        hidden=(tree[0], "... D"),
        weights=(weights, "V D"),
        bias=(bias, "V"),
        targets=(targets, "..."),
        integers=("targets",),
    )
    for leaf in jax.tree.leaves(tree[1]):
        if leaf.shape[: targets.ndim] != targets.shape:
            raise ValueError(
                f"contexts have the shape {leaf.shape}: give the axes {targets.shape} of targets "
                "in front"
            )
    flat = jax.tree.map(lambda leaf: leaf.reshape(targets.size, *leaf.shape[targets.ndim :]), tree)
    measure = jax.eval_shape(log_measure, flat[1]).shape
    if measure != (targets.size, weights.shape[0]):
        raise ValueError(
            f"log_measure returns the shape {measure}: give log m of every word for each token, "
            f"{(targets.size, weights.shape[0])}"
        )
    return (
        flat,
        targets.reshape(-1),
        softmax.token_block(targets.size, max(weights.shape[0], width)),
    )
