"""Networks: functions with parameters, of which cores, embeddings and heads are built."""

from zoo.networks.char_convolution import Convolution

__all__ = ["Convolution"]
