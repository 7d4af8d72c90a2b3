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

from zoo.embeddings.char_cnn import CharCNN
from zoo.embeddings.concat import Concat
from zoo.embeddings.embedding import Embedding
from zoo.embeddings.features import Features
from zoo.embeddings.lookup import Lookup

__all__ = ["CharCNN", "Concat", "Embedding", "Features", "Lookup"]
