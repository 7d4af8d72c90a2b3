"""Sampling: words drawn one after the other.

A step function says what comes next:

    step(words int32 [B], carry) -> (log_probs [B, V] in nats, carry)

Give it as `jax.tree_util.Partial(function, params, tables)`: the arrays then are arguments of the
compiled loop. Those that a plain closure holds become constants of the program.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from zoo.errors import UserError

Step = Callable[[jax.Array, Any], tuple[jax.Array, Any]]


def _as_tree(step):
    return step if isinstance(step, jax.tree_util.Partial) else jax.tree_util.Partial(step)


def sample(
    step: Step,
    words: jax.Array | np.ndarray,
    carry: Any,
    key: jax.Array,
    length: int,
    *,
    temperature: float = 1.0,
    boundary: int | None = None,
) -> tuple[jax.Array, jax.Array]:
    """Draws w_t from p(. | w_<t)^(1 / temperature), renormalised, until the boundary or `length`.

    Args:
      words: int32 [B], the word before the first draw of each row. carry: the state before it.
      temperature: 1 samples the model itself; 0 takes the most probable word, the first of equals.
      boundary: the word that ends a row, or None if nothing does.

    Returns:
      (words int32 [B, length], log_prob [B, length]): the words drawn and their log-probability
      under the model itself whatever the temperature, nats. After a boundary a row has further
      boundaries, of log-probability 0.

    Raises:
      UserError: the temperature is below 0, or not finite.
    """
    if not 0 <= temperature < math.inf:
        raise UserError(f"the temperature is {temperature}: give 0 (greedy) or a number above it.")
    greedy = temperature == 0
    return _sample(
        _as_tree(step),
        jnp.asarray(words, jnp.int32),
        carry,
        key,
        1.0 if greedy else temperature,
        length=length,
        greedy=greedy,
        boundary=boundary,
    )


@functools.partial(jax.jit, static_argnames=("length", "greedy", "boundary"))
def _sample(step, words, carry, key, temperature, *, length, greedy, boundary):
    def draw(state, time):
        words, carry, finished = state
        log_probs, carry = step(words, carry)
        if greedy:
            drawn = jnp.argmax(log_probs, axis=-1)
        else:
            drawn = jax.random.categorical(jax.random.fold_in(key, time), log_probs / temperature)
        drawn = drawn.astype(jnp.int32)
        log_prob = jnp.take_along_axis(log_probs, drawn[:, None], axis=-1)[:, 0]
        if boundary is not None:
            drawn = jnp.where(finished, boundary, drawn)
            log_prob = jnp.where(finished, 0, log_prob)
            finished |= drawn == boundary
        return (drawn, carry, finished), (drawn, log_prob)

    state = (words, carry, jnp.zeros(words.shape, bool))
    _, (drawn, log_prob) = jax.lax.scan(draw, state, jnp.arange(length))
    return drawn.T, log_prob.T


@jax.jit
def _feed(step, words, carry):
    def read(carry, column):
        return step(column, carry)[1], None

    return jax.lax.scan(read, carry, words.T)[0]


def feed(step: Step, words: jax.Array | np.ndarray, carry: Any) -> Any:
    """The carry after reading words int32 [B, T], T perhaps 0."""
    return _feed(_as_tree(step), jnp.asarray(words, jnp.int32), carry)
