"""Components as modules of Flax, by linen and nnx; language models that PyTorch saved.

A module of Flax holds the parameters and tables of a head, an embedding or a core and passes them
to its methods; it computes nothing itself. No other package of zoo imports flax, and none PyTorch.

The examples begin with

    >>> import jax
    >>> import jax.numpy as jnp
    >>> import numpy as np
    >>> from zoo import cores, embeddings, heads
    >>> from zoo.lexicon import Lexicon
    >>> lexicon = Lexicon(words=("the", "cat", "sat"), counts=np.array([3, 2, 1]))
    >>> hidden, targets = jnp.ones((2, 4)), jnp.array([0, 2])
"""
