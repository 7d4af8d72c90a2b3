"""Networks: functions with parameters, the building blocks of cores, embeddings and heads."""

from zoo.layers.char_convolution import Convolution

__all__ = ["Convolution"]
