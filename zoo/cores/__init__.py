"""Cores: networks along time, which turn vectors of words into hidden states.

The examples of the cores begin with

    >>> import jax
    >>> import jax.numpy as jnp
    >>> from zoo import cores
    >>> key, inputs = jax.random.key(0), jnp.ones((2, 5, 4))  # two rows of five vectors
"""

from zoo.cores.bidirectional import Bidirectional
from zoo.cores.core import Core
from zoo.cores.elman import Elman
from zoo.cores.gru import GRU
from zoo.cores.last_words import LastWords
from zoo.cores.lstm import LSTM
from zoo.cores.ngram import NGram

__all__ = ["GRU", "LSTM", "Bidirectional", "Core", "Elman", "LastWords", "NGram"]
