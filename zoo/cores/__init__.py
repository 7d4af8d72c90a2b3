"""Cores: from vectors to hidden states, along time."""

from zoo.cores.core import Core
from zoo.cores.lstm import LSTM

__all__ = ["LSTM", "Core"]
