"""Cores: from vectors to hidden states, along time."""

from zoo.cores.core import Core
from zoo.cores.lstm import LSTM
from zoo.cores.ngram import NGram

__all__ = ["LSTM", "Core", "NGram"]
