"""Attention of a decoder's hidden states to an encoder's, which gives the states for the head.

The examples begin with

    >>> import jax
    >>> import jax.numpy as jnp
    >>> from zoo import attention
    >>> key, hidden = jax.random.key(0), jnp.ones((2, 3, 4))  # two sentences, three states each
    >>> memory = jnp.ones((2, 5, 6))  # of five source words
    >>> mask = jnp.array([[True] * 5, [True] * 3 + [False] * 2])  # three, in the second sentence
"""

from zoo.layers.attention import Attention, Bahdanau, Luong

__all__ = ["Attention", "Bahdanau", "Luong"]
