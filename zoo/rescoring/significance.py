"""How sure a figure is: bootstrap intervals, and a paired test of two systems."""

import numpy as np

from zoo.rescoring.metrics import Metric

SAMPLES = 1000


def bootstrap_interval(
    statistics: np.ndarray, metric: Metric, seed: int = 0, samples: int = SAMPLES
) -> tuple[float, float]:
    """The interval of 95 % of the figure, by sentences drawn with replacement (Koehn 2004).

    Args:
      statistics: [L, S], of the hypothesis of each list.
    """
    generator = np.random.default_rng(seed)
    count = len(statistics)
    drawn = generator.multinomial(count, np.full(count, 1 / count), size=samples)
    low, high = np.quantile(metric.figure(drawn @ statistics), (0.025, 0.975))
    return float(low), float(high)


def paired_test(
    one: np.ndarray, other: np.ndarray, metric: Metric, seed: int = 0, samples: int = SAMPLES
) -> float:
    """The probability of as large a difference if the systems were alike, by randomisation.

    Each sample exchanges the two systems' hypotheses of about half of the sentences (Riezler and
    Maxwell 2005); p = (1 + samples with as large a difference) / (1 + samples).

    Args:
      one: statistics [L, S] of a system.
      other: those of another system on the same sentences.
    """
    generator = np.random.default_rng(seed)
    swapped = generator.integers(0, 2, (samples, len(one))).astype(np.float64)
    moved = swapped @ (other - one)
    first = metric.figure(one.sum(0) + moved)
    second = metric.figure(other.sum(0) - moved)
    difference = abs(float(metric.figure(one.sum(0)) - metric.figure(other.sum(0))))
    return (1 + int((np.abs(first - second) >= difference - 1e-9).sum())) / (1 + samples)
