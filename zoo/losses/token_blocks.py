"""Losses and their gradients by blocks of tokens.

Wide arrays, such as logits over all words, are held for one block of tokens at a time. Gradients
are computed with them: in the forward pass of a weighted sum, so that nothing is computed twice, or
in the backward pass of losses per token, with the cotangents as weights. A loss provides a function
of one block,

    of_block(shared, fixed, columns, data, u) -> (losses [n], gradients)

    shared, fixed: arrays that all tokens share, such as W; `shared` gets gradients.
    columns, data: arrays of each token, leaves [n, ...]; `columns` gets gradients.
    u: the weights of the tokens, [n]. The last block is filled up by its last token with weights
      of 0: gradients of tokens of weight 0 must be 0, even if their losses are NaN.
    gradients: a function sums -> (sums, gradients of columns), the gradients of sum_n u_n loss_n.
      `sums` are the gradients of `shared` over earlier blocks, in at least float32, to which the
      function adds the block's (`added`).

It is a module-level function; functools.partial may bind numbers to it, but not arrays.

Tokens of weight 0, such as padding, may hold anything. The derivative of sum_n u_n loss_n with
respect to u_n is loss_n, also where u_n is 0. Only if a token of weight 0 has a loss that is not
finite, the derivative is 0: the token counts as absent. Derivatives are written by hand, so that
without a derivative of the weights nothing but the sum is computed.
"""

import functools

import jax
import jax.numpy as jnp

from zoo.base.arrays import row_blocks, sharded_functions
from zoo.base.arrays.precision import accumulator
from zoo.base.arrays.sharded_functions import vary_together
from zoo.losses.value_checks import check_shapes


def added(sums, gradients):
    """Adds the gradients of a block to their sums, leaf by leaf."""
    return jax.tree.map(lambda total, part: total + part.astype(total.dtype), sums, gradients)


def weighted_loss(of_block, block, shared, fixed, columns, data, token_weights):
    """Computes sum_n u_n loss_n, a scalar in nats, by blocks of tokens: see the module's
    docstring."""
    shared = jax.tree.map(jnp.asarray, shared)  # numpy's arrays take no traced numbers of rows
    shared, *of_tokens = vary_together((shared, columns, data, token_weights))
    return _weighted_loss(of_block, block, shared, fixed, *of_tokens)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _weighted_loss(of_block, block, shared, fixed, columns, data, token_weights):
    def step(total, inputs):
        (*tokens, u) = inputs
        losses, _ = of_block(shared, fixed, *tokens, u)
        return total + weighted_sum(losses, u).astype(total.dtype), None

    inputs = _blocks(block, columns, data, token_weights)
    return jax.lax.scan(step, _zero(columns), inputs)[0]


def _weighted_backward(of_block, block, gradients, cotangent):
    of_shared, of_columns, slopes = scaled(gradients, cotangent)
    return of_shared, None, of_columns, None, slopes


def scaled(gradients, cotangent):
    """Multiplies gradients by the cotangent of the sum, in their own types."""
    return jax.tree.map(lambda gradient: (gradient * cotangent).astype(gradient.dtype), gradients)


def losses(of_block, block, shared, fixed, columns, data):
    """Computes the losses of the tokens, nats, [N], by blocks, forward and backward."""
    shared, *of_tokens = vary_together((shared, columns, data))
    return _losses(of_block, block, shared, fixed, *of_tokens)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _losses(of_block, block, shared, fixed, columns, data):
    tokens = jax.tree.leaves(columns)[0].shape[0]

    def step(_, inputs):
        return None, of_block(shared, fixed, *inputs)[0]

    inputs = _blocks(block, columns, data, jnp.ones(tokens, _zero(columns).dtype))
    return row_blocks.join_rows(jax.lax.scan(step, None, inputs)[1], tokens)


def _losses_forward(of_block, block, shared, fixed, columns, data):
    arguments = shared, fixed, columns, data
    return _losses(of_block, block, *arguments), arguments


def _losses_backward(of_block, block, arguments, cotangents):
    shared, fixed, columns, data = arguments
    walked = _walk(of_block, block, shared, fixed, columns, data, cotangents)
    _, (of_shared, of_columns, _) = walked
    return of_shared, None, of_columns, None


_losses.defvjp(_losses_forward, _losses_backward)


def _walk(of_block, block, shared, fixed, columns, data, token_weights):
    """Computes (sum_n u_n loss_n, its gradients for shared, for columns and for the weights)."""

    def step(carry, inputs):
        total, sums = carry
        (*tokens, u) = inputs
        losses, gradients = of_block(shared, fixed, *tokens, u)
        sums, of_columns = gradients(sums)
        total += weighted_sum(losses, u).astype(total.dtype)
        return (total, sums), (_as(of_columns, tokens[0]), losses)

    sums = jax.tree.map(
        lambda x: sharded_functions.zeros(x.shape, accumulator(x), token_weights), shared
    )
    inputs = _blocks(block, columns, data, token_weights)
    (total, sums), of_tokens = jax.lax.scan(step, (_zero(columns), sums), inputs)
    of_columns, losses = row_blocks.join_rows(of_tokens, token_weights.shape[0])
    return total, (_as(sums, shared), of_columns, slopes_of_weights(losses, token_weights))


_weighted_loss.defvjp(_walk, _weighted_backward)


def _blocks(block, columns, data, token_weights):
    """Cuts the arrays of all tokens into blocks."""
    block = row_blocks.at_most(block, token_weights.shape[0])
    weights = row_blocks.cut_rows(token_weights, block)
    return *row_blocks.cut_rows((columns, data), block, filling="edge"), weights


def _zero(columns):
    first = jax.tree.leaves(columns)[0]
    return sharded_functions.zeros((), accumulator(first), first)


def _as(tree, like):
    return jax.tree.map(lambda x, y: x.astype(y.dtype), tree, like)


# ---------------------------------------------------------------- tokens with weights


@jax.custom_jvp
def stop_weight_gradients(token_weights, is_absent):
    """Returns the weights, without gradient where tokens are absent."""
    return token_weights


@stop_weight_gradients.defjvp
def _without_gradient(primals, tangents):
    token_weights, is_absent = primals
    return token_weights, jnp.where(is_absent, 0, tangents[0])


def usable_states(states):
    """Whether each state is finite, and small enough that its products are, bool [...]."""
    # Beyond the square root of the greatest number, the products of a state may be infinite.
    most = jnp.finfo(jnp.promote_types(states.dtype, jnp.float32)).max ** 0.5
    return (jnp.abs(states) <= most).all(axis=-1)


def zero_padding_states(states, token_weights):
    """Returns (states [..., D], weights [...]), the unusable states of tokens of weight 0 replaced
    by zeros, since 0 times NaN would make sums NaN; such a weight has no gradient."""
    without_state = (token_weights == 0) & ~usable_states(states)
    states = jnp.where(without_state[..., None], 0, states)
    return states, stop_weight_gradients(token_weights, without_state)


def is_absent(losses, token_weights):
    """Whether tokens have weight 0 and a loss that is infinite or NaN, bool [...]."""
    return (token_weights == 0) & ~jnp.isfinite(losses)


def slopes_of_weights(losses, token_weights):
    """Computes the derivatives of weighted_sum with respect to the weights, [...]."""
    return jnp.where(is_absent(losses, token_weights), 0, losses).astype(token_weights.dtype)


@jax.custom_jvp
def weighted_sum(losses, token_weights):
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


def _weighted_sum(primals, tangents):
    losses, token_weights = primals
    of_losses, of_weights = tangents
    total = weighted_sum(losses, token_weights)
    tangent = jnp.zeros_like(total)
    if not isinstance(of_losses, jax.custom_derivatives.SymbolicZero):
        tangent = jnp.sum(jnp.where(token_weights == 0, 0, token_weights * of_losses))
    if not isinstance(of_weights, jax.custom_derivatives.SymbolicZero):
        slopes = slopes_of_weights(losses, token_weights)
        tangent += jnp.sum(of_weights * slopes).astype(tangent.dtype)
    return total, tangent


weighted_sum.defjvp(_weighted_sum, symbolic_zeros=True)


def weighted_rows(slopes, token_weights):
    """Replaces the gradients of tokens of weight 0, which may be NaN, by 0."""
    return jnp.where(token_weights[:, None] == 0, 0, slopes)


# --------------------------- weighted sums of the losses of spellings, in blocks by length
# As above, gradients are computed in the forward pass of the sum, whose
# weights are known: nothing is computed twice. `zoo.base.arrays.row_blocks` describes the blocks.


def sum_by_length(function, params, letters, lengths, others, weights, *, rows=1):
    """Computes sum_n u_n loss_n of spellings, with the gradients (of params, others and weights) in
    the forward pass. `function`: (params, letters [n, l], lengths [n], *others [n, ...]) -> losses
    [n], row by row, the same for every l >= lengths."""
    arrays = params, letters, lengths, others, weights
    params, letters, lengths, others, weights = vary_together(arrays)
    runs, block = sharded_functions.shares(rows, row_blocks.BLOCK, (params, lengths, others))
    widest = functools.reduce(jnp.promote_types, (leaf.dtype for leaf in jax.tree.leaves(others)))
    weights = weights.astype(jnp.promote_types(accumulator(weights), widest))
    order = row_blocks.SortedRows.from_keys(-lengths, runs, block)
    letters, lengths, others, weights = order.cut((letters, lengths, others, weights))
    weights = jnp.where(order.distinct(), weights, 0)
    cuts = tuple(row_blocks.widths(letters.shape[-1]))
    return _sum_of_blocks(function, cuts, params, letters, lengths, others, weights)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _sum_of_blocks(function, cuts, params, letters, lengths, others, weights):
    """Computes the sum over blocks: letters [m, n, L], lengths [m, n], others [m, n, ...]."""

    def add(total, block):
        *block, weights = block
        results = row_blocks.cut_by_length(cuts, function, params, *block)
        return total + weighted_sum(results, weights), None

    zero = sharded_functions.zeros((), weights.dtype, weights)
    return jax.lax.scan(add, zero, (letters, lengths, *others, weights))[0]


def _sum_forward(function, cuts, params, letters, lengths, others, weights):
    def graded(params, letters, lengths, *rest):
        *others, weights = rest

        def of_block(params, others):
            return function(params, letters, lengths, *others)

        results, pull = jax.vjp(of_block, params, others)
        return results, *pull(weights.astype(results.dtype))

    def add(sums, block):
        results, of_params, of_others = row_blocks.cut_by_length(cuts, graded, params, *block)
        total = sums[0] + weighted_sum(results, block[-1])
        return (total, jax.tree.map(jnp.add, sums[1], of_params)), (results, tuple(of_others))

    zero = sharded_functions.zeros((), weights.dtype, weights)
    zeros = zero, jax.tree.map(lambda x: jnp.zeros_like(x, accumulator(x)), params)
    blocks = letters, lengths, *others, weights
    (total, of_params), (results, of_others) = jax.lax.scan(add, zeros, blocks)
    of_params = jax.tree.map(lambda total, x: total.astype(x.dtype), of_params, params)
    return total, (of_params, of_others, slopes_of_weights(results, weights))


def _sum_backward(function, cuts, gradients, cotangent):
    of_params, of_others, slopes = scaled(gradients, cotangent)
    return of_params, None, None, of_others, slopes


_sum_of_blocks.defvjp(_sum_forward, _sum_backward)
