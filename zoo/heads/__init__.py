"""Heads: from a hidden state to a distribution over words."""

from zoo.heads.head import Head
from zoo.heads.log_linear import LogLinear
from zoo.heads.softmax import Softmax

__all__ = ["Head", "LogLinear", "Softmax"]
