"""Functions of spellings at a cost by their own lengths, not by the length of the longest.

The shapes of a compiled program are fixed, so a batch of spellings [N, L] is as wide as the longest
word can be, and most of it is padding. `map_by_length` sorts the spellings, longest first, takes
them in blocks, and computes each block in the narrowest of a few widths that holds it; a block
without any spelling is not computed at all. The widths grow by half, so that less than a third of
the work is padding.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from zoo.arrays import row_blocks, sharded_functions
from zoo.arrays.types import accumulator

# Spellings computed together: enough for efficient products, few enough that lengths are alike.
BLOCK = 128
NARROWEST = 4


def widths(longest: int, least: int = 1) -> list[int]:
    """Lists the widths to which letters are cut: 4, 6, 9, 13, 19 ... and `longest`."""
    narrower, width = [], max(NARROWEST, least)
    while width <= 0.8 * longest:
        narrower.append(width)
        width += width // 2
    return [*narrower, longest]


class Differentiated(NamedTuple):
    """A function of spellings with a gradient of its own.

    `forward`: (params, letters [n, l], lengths [n], *others [n, ...]) -> (result [n, ...], kept), a
    pytree whose shapes are the same for every l. `backward`: (params, letters, lengths, others,
    kept, cotangent [n, ...]) -> (gradient of params, gradient of the tuple others).
    """

    # (params, letters [n, l], lengths [n], *others [n, ...]) -> (result [n, ...], kept), a pytree
    # whose shapes are the same for every l
    forward: Callable
    # (params, letters, lengths, others, kept, cotangent [n, ...]) -> (gradient of params, gradient
    # of the tuple others)
    backward: Callable


def recomputed(function) -> Differentiated:
    """Gives a function of spellings a backward pass that computes the function once more."""

    def forward(*arguments):
        return function(*arguments), ()

    def backward(params, letters, lengths, others, kept, cotangent):
        def of_block(params, others):
            return function(params, letters, lengths, *others)

        return jax.vjp(of_block, params, others)[1](cotangent)

    return Differentiated(forward, backward)


def map_by_length(function, params, letters, lengths, others=(), *, least=1, count=None, rows=1):
    """Computes function(params, letters, lengths, *others) for N spellings, in blocks by length.

    Gives [N, ...], differentiable backwards in params and others. `function`: (params, letters [n,
    l], lengths [n], *others [n, ...]) -> [n, ...], row by row, the same for every l >= lengths; or
    a Differentiated, which has a gradient of its own. `count`: scalar, only the first `count`
    spellings are computed; the results of the others are 0. None computes all.
    """
    params, letters, lengths, others = sharded_functions.alike((params, letters, lengths, others))
    number, longest = letters.shape
    if count is not None:
        lengths = jnp.where(jnp.arange(number) < count, lengths, 0)
    runs, block = sharded_functions.shares(rows, BLOCK, (params, lengths, others))
    order = row_blocks.Sorted.by(-lengths, runs, block)
    letters, lengths, others = order.cut((letters, lengths, tuple(map(jnp.asarray, others))))
    if not isinstance(function, Differentiated):
        function = recomputed(function)
    cuts = tuple(widths(longest, least))
    results = _of_blocks(function, cuts, params, letters, lengths, others)
    # The last block that is computed may have rows beyond `count`.
    asked = (lengths > 0).reshape(*lengths.shape, *(1,) * (results.ndim - 2))
    return order.joined(jnp.where(asked, results, 0))


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _of_blocks(function, cuts, params, letters, lengths, others):
    """Computes [m, n, ...] of blocks: letters [m, n, L], lengths [m, n], others [m, n, ...].

    Blocks without a spelling are the last; they are not computed and their results are 0.
    """
    return _forward(function, cuts, params, letters, lengths, others)[0]


def _forward(function, cuts, params, letters, lengths, others):
    blocks = letters, lengths, *others
    shapes = jax.eval_shape(function.forward, params, *_at(0, blocks))

    def compute(block, results):
        of_block = cut_by_length(cuts, function.forward, params, *_at(block, blocks))
        return jax.tree.map(lambda x, new: x.at[block].set(new), results, of_block)

    zeros = jax.tree.map(
        lambda x: sharded_functions.zeros((letters.shape[0], *x.shape), x.dtype, letters), shapes
    )
    results, kept = jax.lax.fori_loop(0, _filled(lengths), compute, zeros)
    return results, (params, letters, lengths, others, kept)


def _backward(function, cuts, residuals, cotangents):
    """Computes the gradients; autodiff would also add gradients of params from empty blocks."""
    params, *blocks = residuals

    def add(block, sums):
        of_params, of_others = sums
        of_block = _at(block, (*blocks, cotangents))
        more, new = cut_by_length(cuts, function.backward, params, *of_block)
        of_others = jax.tree.map(lambda x, new: x.at[block].set(new), of_others, new)
        return jax.tree.map(jnp.add, of_params, more), of_others

    _, lengths, others, _ = blocks
    zeros = jax.tree.map(lambda x: jnp.zeros_like(x, accumulator(x)), params)
    zeros = zeros, jax.tree.map(jnp.zeros_like, others)
    of_params, of_others = jax.lax.fori_loop(0, _filled(lengths), add, zeros)
    of_params = jax.tree.map(lambda total, x: total.astype(x.dtype), of_params, params)
    return of_params, None, None, of_others


_of_blocks.defvjp(_forward, _backward)


def _at(block, blocks):
    return jax.tree.map(lambda x: x[block], blocks)


def _filled(lengths):
    """Counts the blocks, of lengths [m, n], that have a spelling."""
    return (lengths.max(axis=1) > 0).sum()


def cut_by_length(cuts, function, params, letters, lengths, *rest):
    """Calls function with the letters of a block cut to the narrowest width that holds them."""

    def cut(width, params, letters, *rest):
        return function(params, letters[:, :width], *rest)

    chosen = (jnp.asarray(cuts) < lengths.max()).sum()
    branches = [functools.partial(cut, width) for width in cuts]
    return jax.lax.switch(chosen, branches, params, letters, lengths, *rest)
