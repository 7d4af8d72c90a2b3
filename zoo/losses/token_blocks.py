"""Losses of tokens taken in blocks, whose gradients are formed beside them.

What is wide, such as logits over all words, is held for one block of tokens at a time. Gradients
are formed while it is at hand: in the forward pass of a weighted sum, so that nothing is computed
twice, or in the backward pass of losses by token, whose weights are the cotangents. A loss gives
one function of a block,

    of_block(shared, fixed, columns, data, u) -> (losses [n], gradients)

    shared, fixed: what all tokens have in common, such as weights; the first get gradients.
    columns, data: what each token has, leaves [n, ...]; the first get gradients.
    u: the weights of the tokens, [n]. What fills up blocks is the last token again with a weight of
      0: of tokens of weight 0 the gradients must be 0, though the losses be NaN.
    gradients: a function sums -> (sums, gradients of columns), of sum_n u_n loss_n. The sums are
      those of shared over the blocks before, in at least float32; it adds the block's (`added`).

It is a function of a module, with numbers bound by functools.partial at most: never with arrays.
"""

import functools

import jax
import jax.numpy as jnp

from zoo.arrays import blocks, layouts
from zoo.losses import softmax
from zoo.losses.token_weights import slopes_of_weights, weighted_sum


def added(sums, gradients):
    """The sums with the gradients of a block, leaf by leaf."""
    return jax.tree.map(lambda total, part: total + part.astype(total.dtype), sums, gradients)


def weighted_loss(of_block, block, shared, fixed, columns, data, token_weights):
    """sum_n u_n loss_n, a scalar in nats, `block` tokens at a time.

    The gradient of a weight is the token's loss, but 0 where a token of weight 0 has none: see
    `zoo.losses.token_weights`.

    Args:
      of_block: see above.
      block: tokens at a time; need not divide N.
      shared: a pytree of arrays.
      fixed: a pytree of arrays, without gradient.
      columns: a pytree of arrays [N, ...], one at least.
      data: a pytree of arrays [N, ...], without gradient.
      token_weights: u, [N].
    """
    shared, *of_tokens = layouts.alike((shared, columns, data, token_weights))
    return _weighted_loss(of_block, block, shared, fixed, *of_tokens)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _weighted_loss(of_block, block, shared, fixed, columns, data, token_weights):
    def step(total, inputs):
        (*tokens, u) = inputs
        losses, _ = of_block(shared, fixed, *tokens, u)
        return total + weighted_sum(losses, u).astype(total.dtype), None

    inputs = _blocks(block, columns, data, token_weights)
    return jax.lax.scan(step, _zero(columns), inputs)[0]


def _weighted_forward(of_block, block, shared, fixed, columns, data, token_weights):
    walked = _walk(of_block, block, shared, fixed, columns, data, token_weights)
    total, of_shared, of_columns, losses = walked
    slopes = slopes_of_weights(losses, token_weights)
    return total, (of_shared, of_columns, slopes)


def _weighted_backward(of_block, block, gradients, cotangent):
    of_shared, of_columns, slopes = jax.tree.map(
        lambda gradient: (gradient * cotangent).astype(gradient.dtype), gradients
    )
    return of_shared, None, of_columns, None, slopes


_weighted_loss.defvjp(_weighted_forward, _weighted_backward)


def losses(of_block, block, shared, fixed, columns, data):
    """The losses of the tokens, nats, [N], `block` tokens at a time, forward and backward.

    The arguments are those of `weighted_loss`.
    """
    shared, *of_tokens = layouts.alike((shared, columns, data))
    return _losses(of_block, block, shared, fixed, *of_tokens)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _losses(of_block, block, shared, fixed, columns, data):
    tokens = jax.tree.leaves(columns)[0].shape[0]

    def step(_, inputs):
        return None, of_block(shared, fixed, *inputs)[0]

    inputs = _blocks(block, columns, data, jnp.ones(tokens, _zero(columns).dtype))
    return blocks.joined(jax.lax.scan(step, None, inputs)[1], tokens)


def _losses_forward(of_block, block, shared, fixed, columns, data):
    arguments = shared, fixed, columns, data
    return _losses(of_block, block, *arguments), arguments


def _losses_backward(of_block, block, arguments, cotangents):
    shared, fixed, columns, data = arguments
    walked = _walk(of_block, block, shared, fixed, columns, data, cotangents)
    _, of_shared, of_columns, _ = walked
    return of_shared, None, of_columns, None


_losses.defvjp(_losses_forward, _losses_backward)


def _walk(of_block, block, shared, fixed, columns, data, token_weights):
    """(sum_n u_n loss_n, its gradients of shared and of columns, the losses [N])."""

    def step(carry, inputs):
        total, sums = carry
        (*tokens, u) = inputs
        losses, gradients = of_block(shared, fixed, *tokens, u)
        sums, of_columns = gradients(sums)
        total += weighted_sum(losses, u).astype(total.dtype)
        return (total, sums), (_as(of_columns, tokens[0]), losses)

    sums = jax.tree.map(
        lambda x: layouts.zeros(x.shape, softmax.accumulator(x), token_weights), shared
    )
    inputs = _blocks(block, columns, data, token_weights)
    (total, sums), of_tokens = jax.lax.scan(step, (_zero(columns), sums), inputs)
    of_columns, losses = blocks.joined(of_tokens, token_weights.shape[0])
    return total, _as(sums, shared), of_columns, losses


def _blocks(block, columns, data, token_weights):
    """The arrays of all tokens, cut into blocks."""
    block = blocks.at_most(block, token_weights.shape[0])
    weights = blocks.of_rows(token_weights, block)
    return *blocks.of_rows((columns, data), block, filling="edge"), weights


def _zero(columns):
    first = jax.tree.leaves(columns)[0]
    return layouts.zeros((), softmax.accumulator(first), first)


def _as(tree, like):
    return jax.tree.map(lambda x, y: x.astype(y.dtype), tree, like)
