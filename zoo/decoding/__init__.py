"""Decoding: from a step function to words. Nothing here knows what a model is."""

from zoo.decoding.sampling import feed, sample

__all__ = ["feed", "sample"]
