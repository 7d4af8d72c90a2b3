"""Embeddings: vectors of words.

The examples begin with

    >>> import jax
    >>> import jax.numpy as jnp
    >>> import numpy as np
    >>> from zoo import embeddings
    >>> from zoo.lexicon import Lexicon, with_features
    >>> lexicon = Lexicon(words=("the", "cat", "sat"), counts=np.array([3, 2, 1]))
    >>> key, words = jax.random.key(0), jnp.array([[0, 1], [2, 1]])
"""

from zoo.layers.embeddings import CharCNN, Concat, Embedding, Features, Lookup

__all__ = ["CharCNN", "Concat", "Embedding", "Features", "Lookup"]
