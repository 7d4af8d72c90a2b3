"""Distributions of noise words; `zoo.losses.noise_sampling` draws from them."""

import dataclasses
from typing import Any, ClassVar

import numpy as np

from zoo.errors import UserError, check_least, field_name
from zoo.losses import value_checks

MOST_POWER = 10.0  # the largest exponent of counts: their powers stay within float64


def check_power(noise):
    """Raises UserError if the exponent of counts is negative or far too large."""
    if not 0 <= noise.power <= MOST_POWER:
        where = field_name(noise, "power")
        raise UserError(f"{where} is {noise.power}: give a number from 0 to {MOST_POWER:g}.")


class Noise:
    """Base class of distributions of noise words. Subclasses are frozen dataclasses."""

    # Subclasses are dataclasses.
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

    def probabilities(self, counts: np.ndarray) -> np.ndarray:
        """Computes q of each word; every subclass overrides it.

        Args:
          counts: occurrences of each word in training, [V].

        Returns:
          float64 [V], which sum to one.
        """
        raise TypeError(f"{type(self).__name__} has no method probabilities, which its use needs")


@dataclasses.dataclass(frozen=True)
class UniformNoise(Noise):
    """q(v) = 1 / V.

    Example:
      >>> heads.UniformNoise().probabilities(np.array([3, 1])).tolist()
      [0.5, 0.5]
    """

    def probabilities(self, counts: np.ndarray) -> np.ndarray:
        """Returns 1 / V for each word, float64 [V]."""
        return np.full(len(counts), 1 / len(counts))


@dataclasses.dataclass(frozen=True)
class LogUniformNoise(Noise):
    """q(r) = log((r + 2) / (r + 1)) / log(V + 1) for the word of frequency rank r = 0, 1, ...

    Zipf's law without counts; words of equal count rank in the order of the lexicon.

    Example:
      >>> heads.LogUniformNoise().probabilities(np.array([3, 1])).round(2).tolist()
      [0.63, 0.37]
    """

    def probabilities(self, counts: np.ndarray) -> np.ndarray:
        """Computes q by frequency rank, float64 [V]."""
        ranks = np.arange(len(counts), dtype=np.float64)
        q = np.empty(len(counts))
        order = np.argsort(-np.asarray(counts, np.float64), kind="stable")
        q[order] = np.log1p(1 / (ranks + 1)) / np.log1p(len(counts))
        return q


@dataclasses.dataclass(frozen=True)
class UnigramNoise(Noise):
    """q(v) proportional to (n(v) + smoothing)^power, n(v) the occurrences in training.

    Attributes:
      power: 1 for the unigram distribution, 0 for the uniform distribution; Mikolov et al. (2013)
        use 0.75.
      smoothing: occurrences added to each word, at least 0. A word without mass would never be
        drawn, and its correction would be infinite.

    Example:
      >>> heads.UnigramNoise(smoothing=0.0).probabilities(np.array([3, 1])).tolist()
      [0.75, 0.25]
    """

    power: float = 1.0
    smoothing: float = 1.0

    def __post_init__(self):
        check_least(self, smoothing=0)
        check_power(self)

    def probabilities(self, counts: np.ndarray) -> np.ndarray:
        """Computes q from the counts, float64 [V].

        Raises:
          UserError: a word would have no mass.
        """
        value_checks.check_least(0, "occurrences, at least 0", counts=counts)
        counts = np.asarray(counts, np.float64) + self.smoothing
        if not counts.all():
            raise UserError(
                "the unigram noise gives no mass to a word without occurrences in training: set "
                "smoothing of UnigramNoise above 0."
            )
        mass = counts**self.power
        return mass / mass.sum()
