"""Decoding: from a step function to words. Only `steps` and `generate` know of models."""

from zoo.decoding.sampling import feed, sample

__all__ = ["feed", "sample"]
