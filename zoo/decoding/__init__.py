"""Decoding: from a step function to words. Only `steps` and `generation` call models.

The examples begin with a step function whose distribution depends only on the last word:

    >>> import jax
    >>> import jax.numpy as jnp
    >>> from zoo import decoding
    >>> def follow(table, words, carry):
    ...     return table[words], carry
    >>> log_probs = jnp.log(jnp.array([[0.1, 0.6, 0.3], [0.5, 0.2, 0.3], [0.8, 0.1, 0.1]]))
    >>> step = jax.tree_util.Partial(follow, log_probs)  # word 0 is the boundary
    >>> first, carry = jnp.array([0]), ()  # of one sentence
"""

from zoo.decoding.beam import BeamSearch, Hypotheses
from zoo.decoding.sampling import Sampling, draw, feed, force, sample
from zoo.decoding.steps import average, fuse

__all__ = [
    "BeamSearch",
    "Hypotheses",
    "Sampling",
    "average",
    "draw",
    "feed",
    "force",
    "fuse",
    "sample",
]
