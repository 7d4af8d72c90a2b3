"""Losses and their gradients by blocks of tokens.

Wide arrays, such as logits over all words, are held for one block of tokens at a time. Gradients
are computed with them: in the forward pass of a weighted sum, so that nothing is computed twice, or
in the backward pass of losses per token, with the cotangents as weights. A loss provides a function
of one block,

    block_loss(params, constants, states, data, u) -> (losses [n], gradients, *reports)

    params, constants: arrays that all tokens share, such as W; `params` gets gradients.
    states, data: arrays of each token, leaves [n, ...]; `states` gets gradients.
    u: the weights of the tokens, [n]. The last block is filled up by its last token with weights
      of 0: gradients of tokens of weight 0 must be 0, even if their losses are NaN.
    gradients: a function sums -> (sums, gradients of states), the gradients of sum_n u_n loss_n.
      `sums` are the gradients of `params` over earlier blocks, in at least float32, to which the
      function adds the block's (`add_gradients`).
    reports: further results of each token, leaves [n, ...], without gradients; most have none.

It is a module-level function; functools.partial may bind numbers to it, but not arrays.

Tokens of weight 0, such as padding, may hold anything. The derivative of sum_n u_n loss_n with
respect to u_n is loss_n, also where u_n is 0. Only if a token of weight 0 has a loss that is not
finite, the derivative is 0: the token counts as absent. Derivatives are written by hand, so that
without a derivative of the weights nothing but the sum is computed.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from zoo.base.arrays import row_blocks, sharded_functions
from zoo.base.arrays.precision import accumulator, cast_like
from zoo.base.arrays.sharded_functions import vary_together
from zoo.base.arrays.types import Array
from zoo.losses.value_checks import check_shapes


def add_gradients(sums: Any, gradients: Any) -> Any:
    """Adds the gradients of a block to their sums, leaf by leaf."""
    return jax.tree.map(lambda total, part: total + part.astype(total.dtype), sums, gradients)


def weighted_loss(block_loss, block: int, shared, tokens, token_weights) -> tuple:
    """Computes (sum_n u_n loss_n, a scalar in nats, *reports), by blocks of tokens, with gradients.

    `block` is the number of tokens in a block; `shared` is (parameters, constants) and `tokens`
    (states, data), see the module's docstring.
    """
    params, constants = shared
    params = jax.tree.map(jnp.asarray, params)  # numpy's arrays take no traced numbers of rows
    params, *token_arrays = vary_together((params, *tokens, token_weights))
    loss, reports = _weighted_loss(block_loss, block, params, constants, *token_arrays)
    return loss, *reports


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _weighted_loss(block_loss, block, params, constants, states, data, token_weights):
    """Computes `weighted_loss` of unpacked arguments; its custom derivative is below."""

    def step(total, inputs):
        (*tokens, u) = inputs
        losses, _, *reports = block_loss(params, constants, *tokens, u)
        return total + weighted_sum(losses, u).astype(total.dtype), reports

    inputs = _cut_blocks(block, states, data, token_weights)
    total, reports = jax.lax.scan(step, _zero_loss(states), inputs)
    return total, row_blocks.join_rows(reports, token_weights.shape[0])


def _weighted_backward(block_loss, block, gradients, cotangents):
    """Scales the gradients by the cotangent of the sum; constants and data get none."""
    params, states, token_weights = scale_gradients(gradients, cotangents[0])
    return params, None, states, None, token_weights


def scale_gradients(gradients: Any, cotangent: Array) -> Any:
    """Multiplies gradients by the cotangent of the sum, in their own types."""
    return jax.tree.map(lambda gradient: (gradient * cotangent).astype(gradient.dtype), gradients)


def blocked_losses(block_loss: Callable, block: int, shared: tuple, tokens: tuple) -> Array:
    """Computes the losses of tokens, nats, [N], by blocks, and in the backward pass by blocks the
    gradients of params and states alone: arguments as of `weighted_loss`."""
    params, *token_arrays = vary_together((shared[0], *tokens))
    return _losses(block_loss, block, params, shared[1], *token_arrays)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _losses(block_loss, block, params, constants, states, data):
    """Computes `blocked_losses` of unpacked arguments; its custom derivative is below."""
    tokens = jax.tree.leaves(states)[0].shape[0]

    def step(_, inputs):
        return None, block_loss(params, constants, *inputs)[0]

    inputs = _cut_blocks(block, states, data, jnp.ones(tokens, _zero_loss(states).dtype))
    return row_blocks.join_rows(jax.lax.scan(step, None, inputs)[1], tokens)


def _losses_backward(block_loss, block, arguments, cotangents):
    """Computes the gradients of params and states; the losses' cotangents weigh the tokens."""
    _, (params, states, _) = _weighted_forward(block_loss, block, *(*arguments, cotangents))
    return params, None, states, None


_losses.defvjp(lambda *arguments: (_losses(*arguments), arguments[2:]), _losses_backward)


def _weighted_forward(block_loss, block, params, constants, states, data, token_weights):
    """Computes ((sum_n u_n loss_n, reports), gradients (for params, states and the weights))."""

    def step(carry, inputs):
        total, sums = carry
        (*tokens, u) = inputs
        losses, gradients, *reports = block_loss(params, constants, *tokens, u)
        sums, state_gradients = gradients(sums)
        total += weighted_sum(losses, u).astype(total.dtype)
        return (total, sums), (cast_like(state_gradients, tokens[0]), losses, reports)

    sums = jax.tree.map(
        lambda x: sharded_functions.zeros(x.shape, accumulator(x), token_weights), params
    )
    inputs = _cut_blocks(block, states, data, token_weights)
    (total, sums), results = jax.lax.scan(step, (_zero_loss(states), sums), inputs)
    state_gradients, losses, reports = row_blocks.join_rows(results, token_weights.shape[0])
    weight_gradients = token_weight_gradients(losses, token_weights)
    return (total, reports), (cast_like(sums, params), state_gradients, weight_gradients)


_weighted_loss.defvjp(_weighted_forward, _weighted_backward)


def _cut_blocks(block, states, data, token_weights):
    """Reshapes arrays of all tokens to [blocks, block, ...]; the last token, with weight 0, fills
    up the blocks."""
    block = row_blocks.at_most(block, token_weights.shape[0])
    weights = row_blocks.cut_rows(token_weights, block)
    return *row_blocks.cut_rows((states, data), block, filling="edge"), weights


def _zero_loss(states):
    """Returns a scalar 0 in the type in which losses of the states are summed."""
    first = jax.tree.leaves(states)[0]
    return sharded_functions.zeros((), accumulator(first), first)


# ---------------------------------------------------------------- tokens with weights


@jax.custom_jvp
def stop_weight_gradients(token_weights: Array, is_absent: Array) -> Array:
    """Returns the token weights unchanged; their derivatives are 0 where `is_absent`."""
    return token_weights


@stop_weight_gradients.defjvp
def _stop_weight_gradients_jvp(primals, tangents):
    token_weights, is_absent = primals
    return token_weights, jnp.where(is_absent, 0, tangents[0])


def is_usable(states: Array) -> Array:
    """Whether each state is finite, and small enough that its products are finite, bool [...]."""
    # Beyond the square root of the greatest number, the products of a state may be infinite.
    limit = jnp.finfo(jnp.promote_types(states.dtype, jnp.float32)).max ** 0.5
    return (jnp.abs(states) <= limit).all(axis=-1)


def zero_padding_states(states: Array, token_weights: Array) -> tuple[Array, Array]:
    """Replaces the states of tokens of weight 0 by zeros, where they are not usable.

    Otherwise 0 times NaN would make sums NaN. Gives (states [..., D], weights [...]); the weights
    of these tokens have no gradients.
    """
    is_cleared = (token_weights == 0) & ~is_usable(states)
    states = jnp.where(is_cleared[..., None], 0, states)
    return states, stop_weight_gradients(token_weights, is_cleared)


def is_absent(losses: Array, token_weights: Array) -> Array:
    """Whether tokens have weight 0 and a loss that is infinite or NaN, bool [...]."""
    return (token_weights == 0) & ~jnp.isfinite(losses)


def token_weight_gradients(losses: Array, token_weights: Array) -> Array:
    """Computes the gradients of `weighted_sum` with respect to the weights of tokens, [...]."""
    return jnp.where(is_absent(losses, token_weights), 0, losses).astype(token_weights.dtype)


@jax.custom_jvp
def weighted_sum(losses: Array, token_weights: Array) -> Array:
    """Computes sum_n u_n loss_n.

    A token of weight 0 adds nothing, even if its loss is infinite or NaN.

    Args:
      losses: [...], nats.
      token_weights: u, [...]; 0 for padding.

    Returns:
      A scalar, nats.

    Raises:
      ValueError: shapes do not agree.

    Example:
      >>> print(losses.weighted_sum(jnp.array([2.0, jnp.inf]), jnp.array([0.5, 0.0])))
      1.0
    """
    check_shapes(losses=(losses, "..."), token_weights=(token_weights, "..."))
    return jnp.sum(jnp.where(token_weights == 0, 0, token_weights * losses))


def _weighted_sum_jvp(primals, tangents):
    """Computes (`weighted_sum`, its tangent); tangents that are symbolic zeros cost nothing."""
    losses, token_weights = primals
    loss_tangents, weight_tangents = tangents
    total = weighted_sum(losses, token_weights)
    tangent = jnp.zeros_like(total)
    if not isinstance(loss_tangents, jax.custom_derivatives.SymbolicZero):
        tangent = jnp.sum(jnp.where(token_weights == 0, 0, token_weights * loss_tangents))
    if not isinstance(weight_tangents, jax.custom_derivatives.SymbolicZero):
        gradients = token_weight_gradients(losses, token_weights)
        tangent += jnp.sum(weight_tangents * gradients).astype(tangent.dtype)
    return total, tangent


weighted_sum.defjvp(_weighted_sum_jvp, symbolic_zeros=True)


def zero_padding_rows(gradients: Array, token_weights: Array) -> Array:
    """Replaces the gradients of tokens of weight 0, [n, ?], which may be NaN, by 0."""
    return jnp.where(token_weights[:, None] == 0, 0, gradients)


# --------------------------- weighted sums of the losses of spellings, in blocks by length
# As above, gradients are computed in the forward pass of the sum, whose
# weights are known: nothing is computed twice. `zoo.base.arrays.row_blocks` describes the blocks.


def sum_by_length(function, params, letters, lengths, row_inputs, weights, *, rows=1) -> Array:
    """Computes sum_n u_n loss_n of N spellings by blocks of similar length, with its gradients.

    `function`: (params, letters [n, l], lengths [n], *row_inputs [n, ...]) -> losses [n], row by
    row, the same for every l >= lengths. The gradients, of params, row_inputs and weights, are
    computed in the forward pass. `rows`: the number of batch rows, which devices may share.
    """
    arrays = params, letters, lengths, row_inputs, weights
    params, letters, lengths, row_inputs, weights = vary_together(arrays)
    runs, block = sharded_functions.split_rows(
        rows, row_blocks.BLOCK, (params, lengths, row_inputs)
    )
    widest = jnp.result_type(*(leaf.dtype for leaf in jax.tree.leaves(row_inputs)))
    weights = weights.astype(jnp.promote_types(accumulator(weights), widest))
    order = row_blocks.SortedRows.from_keys(-lengths, runs, block)
    letters, lengths, row_inputs, weights = order.cut((letters, lengths, row_inputs, weights))
    weights = jnp.where(order.is_first_copy(), weights, 0)
    widths = tuple(row_blocks.widths(letters.shape[-1]))
    return _sum_of_blocks(function, widths, params, letters, lengths, row_inputs, weights)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _sum_of_blocks(function, widths, params, letters, lengths, row_inputs, weights):
    """Computes sum_by_length of blocks: letters [m, n, L], lengths [m, n], inputs [m, n, ...]."""

    def add(total, block):
        *block, weights = block
        losses = row_blocks.call_narrowest(widths, function, params, *block)
        return total + weighted_sum(losses, weights), None

    zero = sharded_functions.zeros((), weights.dtype, weights)
    return jax.lax.scan(add, zero, (letters, lengths, *row_inputs, weights))[0]


def _sum_forward(function, widths, params, letters, lengths, row_inputs, weights):
    """Computes (the sum, its gradients (for params, row_inputs, weights)) in one scan."""

    def losses_and_gradients(params, letters, lengths, *arrays):
        *row_inputs, weights = arrays

        def block_losses(params, row_inputs):
            return function(params, letters, lengths, *row_inputs)

        losses, pull = jax.vjp(block_losses, params, row_inputs)
        return losses, *pull(weights.astype(losses.dtype))

    def add(sums, block):
        total, params_sum = sums
        results = row_blocks.call_narrowest(widths, losses_and_gradients, params, *block)
        losses, params_part, inputs_part = results
        total += weighted_sum(losses, block[-1])
        return (total, jax.tree.map(jnp.add, params_sum, params_part)), (losses, tuple(inputs_part))

    zero = sharded_functions.zeros((), weights.dtype, weights)
    zeros = zero, jax.tree.map(lambda x: jnp.zeros_like(x, accumulator(x)), params)
    blocks = letters, lengths, *row_inputs, weights
    (total, params_sum), (losses, input_gradients) = jax.lax.scan(add, zeros, blocks)
    weight_gradients = token_weight_gradients(losses, weights)
    return total, (cast_like(params_sum, params), input_gradients, weight_gradients)


def _sum_backward(function, widths, gradients, cotangent):
    """Scales the gradients by the cotangent of the sum; letters and lengths get none."""
    params, row_inputs, weights = scale_gradients(gradients, cotangent)
    return params, None, None, row_inputs, weights


_sum_of_blocks.defvjp(_sum_forward, _sum_backward)
