"""Layers: recurrences, convolutions, embeddings and attention, of which models are built.

Recipes and users name most of them by their doors: `zoo.cores`, `zoo.embeddings`, `zoo.attention`.
"""

from zoo.layers.char_convolution import Convolution

__all__ = ["Convolution"]
