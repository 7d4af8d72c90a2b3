"""Heads: from a hidden state to a distribution over words.

The examples of the heads begin with

    >>> import jax
    >>> import jax.numpy as jnp
    >>> import numpy as np
    >>> from zoo import heads
    >>> from zoo.lexicon import Lexicon, with_features
    >>> lexicon = Lexicon(words=("the", "cat", "sat"), counts=np.array([3, 2, 1]))
    >>> key, hidden, targets = jax.random.key(0), jnp.ones((2, 4)), jnp.array([0, 2])
"""

from zoo.heads.adaptive import AdaptiveSoftmax
from zoo.heads.blackout import BlackOut
from zoo.heads.char_lstm import CharLSTM
from zoo.heads.cnn_softmax import CNNSoftmax
from zoo.heads.distributions import Distribution, entropy, kl_divergence
from zoo.heads.head import Head
from zoo.heads.hierarchical import HierarchicalSoftmax
from zoo.heads.huffman import HuffmanSoftmax
from zoo.heads.importance import ImportanceSampling
from zoo.heads.letter_noise import LetterNoise
from zoo.heads.log_linear import LogLinear
from zoo.heads.mixture import MixtureOfContexts, MixtureOfSoftmaxes
from zoo.heads.nce import NCE
from zoo.heads.noise import LogUniformNoise, Noise, UniformNoise, UnigramNoise
from zoo.heads.sampled_log_linear import SampledLogLinear
from zoo.heads.self_normalised import SelfNormalisedSoftmax
from zoo.heads.softmax import Softmax
from zoo.heads.spread_unknown import SpreadUnknown
from zoo.heads.with_expert import WithExpert

__all__ = [
    "NCE",
    "AdaptiveSoftmax",
    "BlackOut",
    "CNNSoftmax",
    "CharLSTM",
    "Distribution",
    "Head",
    "HierarchicalSoftmax",
    "HuffmanSoftmax",
    "ImportanceSampling",
    "LetterNoise",
    "LogLinear",
    "LogUniformNoise",
    "MixtureOfContexts",
    "MixtureOfSoftmaxes",
    "Noise",
    "SampledLogLinear",
    "SelfNormalisedSoftmax",
    "Softmax",
    "SpreadUnknown",
    "UniformNoise",
    "UnigramNoise",
    "WithExpert",
    "entropy",
    "kl_divergence",
]
