"""Priors: knowledge of words that a model has before training.

The examples begin with

    >>> import pathlib
    >>> import jax.numpy as jnp
    >>> import numpy as np
    >>> from zoo import priors
    >>> from zoo.data import Corpus, with_background
    >>> from zoo.lexicon import Lexicon, with_features
    >>> sentences = [["the", "cat", "sat"], ["the", "cat"]]
    >>> corpora, words = {"train": Corpus("a text", sentences)}, ("</s>", "the", "cat", "sat")
    >>> lexicon = Lexicon(words, np.array([2, 2, 2, 1]), boundary="</s>")
    >>> def predict(background, lexicon, context):  # b(x | context) of each x, in per cent
    ...     tables, carry = background.tables(lexicon), background.initial_carry(1)
    ...     contexts, _ = background.apply(tables, jnp.array([lexicon.encode(context)]), carry)
    ...     percent = 100 * jnp.exp(background.log_probs(tables, contexts)[0, -1])
    ...     return dict(zip(lexicon.words, percent.round().astype(int).tolist()))
"""

from zoo.base import lazy

# Most programs need few of them.
__getattr__, __dir__, __all__ = lazy.names(__name__)
