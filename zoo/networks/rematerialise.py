"""Rematerialisation along time: states are recomputed in the backward pass instead of kept.

Chen et al., "Training deep nets with sublinear memory cost" (2016), along the positions of a
window. The inputs of each chunk and the state before it are kept, and the backward pass recomputes
the rest, one chunk at a time.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from zoo.arrays import row_blocks, sharded_functions


def in_chunks(function: Callable, length: int, weights: Any, arrays: Any, state: Any):
    """Applies a function along time, chunk by chunk, with rematerialisation.

    Gives (outputs, leaves [T, ...]; the state after the last position). `function`: (weights,
    arrays, state) -> (outputs, state), for any number of positions, where a position depends on
    earlier ones only through the state.
    """
    time = jax.tree.leaves(arrays)[0].shape[0]
    if not length or not row_blocks.is_known(time):  # exported for any number: keeps nothing anyway
        return function(weights, arrays, state)
    if length >= time:
        return jax.checkpoint(function)(weights, arrays, state)
    weights, arrays, state = sharded_functions.alike((weights, arrays, state))
    chunks, rest = divmod(time, length)
    whole = chunks * length
    in_order = jax.tree.map(lambda x: x[:whole].reshape(chunks, length, *x.shape[1:]), arrays)

    @jax.checkpoint
    def of_chunk(weights, chunk, state):
        outputs, state = function(weights, chunk, state)
        return state, outputs

    state, outputs = jax.lax.scan(lambda s, chunk: of_chunk(weights, chunk, s), state, in_order)
    outputs = jax.tree.map(lambda x: x.reshape(whole, *x.shape[2:]), outputs)
    if not rest:
        return outputs, state
    last = jax.tree.map(lambda x: x[whole:], arrays)
    state, of_rest = of_chunk(weights, last, state)
    joined = jax.tree.map(lambda a, b: jnp.concatenate([a, b]), outputs, of_rest)
    return joined, state
