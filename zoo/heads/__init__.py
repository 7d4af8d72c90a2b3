"""Heads: from a hidden state to a distribution over words. A head is a file, and a line below.

The examples of the heads begin with

    >>> import jax
    >>> import jax.numpy as jnp
    >>> import numpy as np
    >>> from zoo import heads
    >>> from zoo.lexicon import Lexicon, with_features
    >>> lexicon = Lexicon(words=("the", "cat", "sat"), counts=np.array([3, 2, 1]))
    >>> key, hidden, targets = jax.random.key(0), jnp.ones((2, 4)), jnp.array([0, 2])
"""

from typing import TYPE_CHECKING

from zoo.base.arrays.parameter_sharding import on_mesh as on_mesh
from zoo.heads.adaptive import AdaptiveSoftmax as AdaptiveSoftmax
from zoo.heads.blackout import BlackOut as BlackOut
from zoo.heads.char_lstm import CharLSTM as CharLSTM
from zoo.heads.cnn_softmax import CNNSoftmax as CNNSoftmax
from zoo.heads.distributions import Distribution as Distribution
from zoo.heads.distributions import entropy as entropy
from zoo.heads.distributions import kl_divergence as kl_divergence
from zoo.heads.head import Head as Head
from zoo.heads.hierarchical import HierarchicalSoftmax as HierarchicalSoftmax
from zoo.heads.huffman import HuffmanSoftmax as HuffmanSoftmax
from zoo.heads.importance import ImportanceSampling as ImportanceSampling
from zoo.heads.log_linear import LogLinear as LogLinear
from zoo.heads.mixture import MixtureOfContexts as MixtureOfContexts
from zoo.heads.mixture import MixtureOfSoftmaxes as MixtureOfSoftmaxes
from zoo.heads.nce import NCE as NCE
from zoo.heads.noise import LetterNoise as LetterNoise
from zoo.heads.noise import LogUniformNoise as LogUniformNoise
from zoo.heads.noise import Noise as Noise
from zoo.heads.noise import UniformNoise as UniformNoise
from zoo.heads.noise import UnigramNoise as UnigramNoise
from zoo.heads.sampled_log_linear import SampledLogLinear as SampledLogLinear
from zoo.heads.self_normalised import SelfNormalisedSoftmax as SelfNormalisedSoftmax
from zoo.heads.softmax import Softmax as Softmax
from zoo.heads.split_softmax import SplitSoftmax as SplitSoftmax
from zoo.heads.spread_unknown import SpreadUnknown as SpreadUnknown
from zoo.heads.with_cache import WithCache as WithCache
from zoo.heads.with_expert import WithExpert as WithExpert

if not TYPE_CHECKING:  # type checkers read the imports
    __all__ = sorted(name for name, value in globals().items() if callable(value))
