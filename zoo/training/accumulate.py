"""Gradients of a batch in pieces, one after another, for a batch that memory has no room for."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp


def accumulated(value_and_gradients: Callable, batch: Any, count: int) -> Any:
    """The sums of value_and_gradients over the pieces of a batch.

    Args:
      value_and_gradients: of a piece, ((total, (penalty, carry)), gradients), sums over its lanes.
      batch: a pytree of leaves [B, ...]. Piece i has the lanes i, i + count, ...: where lanes are
        shared out over devices in their order, each device has its share of every piece.
      count: how many pieces, which must divide B.

    Returns:
      What value_and_gradients gives of the whole batch, but for rounding.
    """
    if count == 1:
        return value_and_gradients(batch)
    pieces = jax.tree.map(
        lambda x: x.reshape(x.shape[0] // count, count, *x.shape[1:]).swapaxes(0, 1), batch
    )

    def add(sums, piece):
        (total, (penalty, carry)), gradients = value_and_gradients(piece)
        return jax.tree.map(jnp.add, sums, (total, penalty, gradients)), carry

    first = jax.tree.map(lambda x: x[0], pieces)
    (total, (penalty, _)), gradients = jax.eval_shape(value_and_gradients, first)
    zeros = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), (total, penalty, gradients))
    (total, penalty, gradients), carries = jax.lax.scan(add, zeros, pieces)
    carry = jax.tree.map(lambda x: x.swapaxes(0, 1).reshape(-1, *x.shape[2:]), carries)
    return (total, (penalty, carry)), gradients
