"""Cores: networks along time, which turn vectors of words into hidden states.

The examples of the cores begin with

    >>> import jax
    >>> import jax.numpy as jnp
    >>> from zoo import cores
    >>> key, inputs = jax.random.key(0), jnp.ones((2, 5, 4))  # two rows of five vectors
"""

from zoo.layers.bidirectional import Bidirectional
from zoo.layers.core import Core, Stacked
from zoo.layers.elman import Elman
from zoo.layers.gru import GRU
from zoo.layers.lstm import LSTM
from zoo.layers.windowed import LastWords, NGram

__all__ = ["GRU", "LSTM", "Bidirectional", "Core", "Elman", "LastWords", "NGram", "Stacked"]
