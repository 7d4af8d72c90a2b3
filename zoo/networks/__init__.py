"""Networks: functions with parameters, the building blocks of cores, embeddings and heads."""

from zoo.networks.char_convolution import Convolution

__all__ = ["Convolution"]
