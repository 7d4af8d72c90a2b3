"""Weighted sums of the losses of spellings, in blocks by length.

As in `zoo.losses.token_blocks`, gradients are computed in the forward pass of the sum, whose
weights are known: nothing is computed twice. `zoo.arrays.by_length` describes the blocks.
"""

import functools

import jax
import jax.numpy as jnp

from zoo.arrays import by_length, row_blocks, sharded_functions
from zoo.arrays.types import accumulator
from zoo.losses.token_blocks import slopes_of_weights, weighted_sum


def sum_by_length(function, params, letters, lengths, others, weights, *, rows=1):
    """Computes sum_n u_n loss_n of spellings, with the gradients in the forward pass.

    Gives a scalar, differentiable backwards in params, others and weights. `function`: (params,
    letters [n, l], lengths [n], *others [n, ...]) -> losses [n], row by row, the same for every l
    >= lengths.
    """
    arrays = params, letters, lengths, others, weights
    params, letters, lengths, others, weights = sharded_functions.alike(arrays)
    runs, block = sharded_functions.shares(rows, by_length.BLOCK, (params, lengths, others))
    widest = functools.reduce(jnp.promote_types, (leaf.dtype for leaf in jax.tree.leaves(others)))
    weights = weights.astype(jnp.promote_types(accumulator(weights), widest))
    order = row_blocks.Sorted.by(-lengths, runs, block)
    letters, lengths, others, weights = order.cut((letters, lengths, others, weights))
    weights = jnp.where(order.distinct(), weights, 0)
    cuts = tuple(by_length.widths(letters.shape[-1]))
    return _sum_of_blocks(function, cuts, params, letters, lengths, others, weights)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _sum_of_blocks(function, cuts, params, letters, lengths, others, weights):
    """Computes the sum over blocks: letters [m, n, L], lengths [m, n], others [m, n, ...]."""

    def add(total, block):
        *block, weights = block
        results = by_length.cut_by_length(cuts, function, params, *block)
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
        results, of_params, of_others = by_length.cut_by_length(cuts, graded, params, *block)
        total = sums[0] + weighted_sum(results, block[-1])
        return (total, jax.tree.map(jnp.add, sums[1], of_params)), (results, tuple(of_others))

    zero = sharded_functions.zeros((), weights.dtype, weights)
    zeros = zero, jax.tree.map(lambda x: jnp.zeros_like(x, accumulator(x)), params)
    blocks = letters, lengths, *others, weights
    (total, of_params), (results, of_others) = jax.lax.scan(add, zeros, blocks)
    of_params = jax.tree.map(lambda total, x: total.astype(x.dtype), of_params, params)
    return total, (of_params, of_others, slopes_of_weights(results, weights))


def _sum_backward(function, cuts, gradients, cotangent):
    of_params, of_others, slopes = jax.tree.map(
        lambda gradient: (gradient * cotangent).astype(gradient.dtype), gradients
    )
    return of_params, None, None, of_others, slopes


_sum_of_blocks.defvjp(_sum_forward, _sum_backward)
