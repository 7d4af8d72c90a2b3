"""Decoding: from a step function to words. Only `steps` and `generate` know of models."""

from zoo.decoding.beam import BeamSearch, Hypotheses
from zoo.decoding.ensembles import average, fuse
from zoo.decoding.sampling import feed, force, sample

__all__ = ["BeamSearch", "Hypotheses", "average", "feed", "force", "fuse", "sample"]
