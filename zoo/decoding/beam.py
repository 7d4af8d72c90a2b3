"""Beam search over sequences that end with a mark or at a greatest length.

At each length the `width` most probable unfinished sequences are kept, the beam. Finished ones are
kept apart, as many as are wanted, and are never lost to unfinished ones. A sequence is at most as
probable as each of its beginnings: so whatever was let go, with all that could have become of it,
is at most as probable as the best beginning that was let go, and where that is below the last of
what was found, the search is known to have been exact.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from zoo.errors import UserError


class Found(NamedTuple):
    """log_probs: [count], nats, the most probable first; -inf where there are no more sequences.
    sequences: int32 [count, length], filled up with the end mark. missed: a scalar, nats, at least
    the log-probability of every sequence that is not among them for want of room in the beam."""

    log_probs: jax.Array
    sequences: jax.Array
    missed: jax.Array


def search(
    step: Callable[[jax.Array, Any], tuple[jax.Array, Any]],
    state: Any,
    *,
    start: int,
    end: int,
    length: int,
    count: int,
    width: int,
) -> Found:
    """The most probable sequences c_1 ... c_m by sum_j log p(c_j | c_<j).

    c_m is the end mark, the only one, or m = length. A pure function of arrays, to be jitted and
    mapped by the caller.

    Args:
      step: from the last symbols int32 [width] and a state to (log p of each symbol [width, A] in
        nats, state). state: before the first symbol, every leaf [width, ...].
      start: the symbol before the first. count: sequences wanted. width: of the beam.

    Raises:
      UserError: the beam is too narrow for so many sequences.
    """
    if not 1 <= count <= width:
        raise UserError(f"a beam of {width} cannot find {count} sequences: give 1 to {width}.")

    def best(log_probs, sequences):
        log_probs, places = jax.lax.top_k(log_probs, count)
        return log_probs, sequences[places]

    def joined(finished, log_probs, sequences):
        return best(
            jnp.concatenate([finished[0], log_probs]), jnp.concatenate([finished[1], sequences])
        )

    def lengthen(carry, position):
        beam, sequences, last, state, finished, missed = carry
        log_probs, state = step(last, state)
        log_probs += beam[:, None]
        # From here on all sequences have the end mark, so these are the finished ones too.
        finished = joined(finished, log_probs[:, end], sequences)
        longer = log_probs.at[:, end].set(-jnp.inf)
        beam, places = jax.lax.top_k(longer.ravel(), width + 1)
        missed, beam, places = jnp.maximum(missed, beam[-1]), beam[:-1], places[:-1]
        parents, last = jnp.divmod(places.astype(jnp.int32), log_probs.shape[1])
        sequences = sequences[parents].at[:, position].set(last)
        state = jax.tree.map(lambda leaf: leaf[parents], state)
        return (beam, sequences, last, state, finished, missed), None

    sequences = jnp.full((width, length), end, jnp.int32)
    # One hypothesis to begin with; the other places of the beam are empty.
    beam = jnp.where(jnp.arange(width) == 0, 0.0, -jnp.inf)
    finished = jnp.full(count, -jnp.inf), sequences[:count]
    carry: Any = beam, sequences, jnp.full(width, start, jnp.int32), state, finished, -jnp.inf
    carry, _ = jax.lax.scan(lengthen, carry, jnp.arange(length))
    beam, sequences, _, _, finished, missed = carry
    log_probs, sequences = joined(finished, beam, sequences)
    return Found(log_probs, sequences, missed)
