"""Confidence intervals, and paired tests of two systems on the same text or questions.

Figures of a text are functions of sums over its sentences, such as log-perplexity, a sum of -log p
over a number of tokens: the sentences are resampled, or exchanged between two systems. Accuracies
are of questions that are answered right or wrong.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

SAMPLES = 1000  # of bootstraps
EXCHANGES = 9999  # of paired tests: near 0.05, p is then right to some 0.002
_AT_A_TIME = 100
# Two figures are a tie if their difference has a p of at least this.
LEVEL = 0.05

Figure = Callable[[np.ndarray], np.ndarray]


def bootstrap_interval(
    statistics: np.ndarray, figure: Figure, seed: int = 0, samples: int = SAMPLES
) -> tuple[float, float]:
    """Computes the 95 % interval of a figure by drawing sentences with replacement (Efron 1979; for
    translations Koehn 2004)."""
    count = len(statistics)
    if count < 2 or not np.isfinite(statistics).all():
        return math.nan, math.nan
    generator = np.random.default_rng(seed)
    sums = np.empty((samples, statistics.shape[1]))
    for number in range(samples):
        multiplicities = np.bincount(generator.integers(count, size=count), minlength=count)
        sums[number] = multiplicities @ statistics
    figures = figure(sums)
    if not np.isfinite(figures).all():  # errors, and no word of a reference
        return math.nan, math.nan
    low, high = np.quantile(figures, (0.025, 0.975))
    return float(low), float(high)


def bounds(low: float, high: float) -> str:
    """Formats an interval, to stand behind its figure; empty without one, as of one sentence."""
    return "" if math.isnan(low) else f" [{low:.2f}, {high:.2f}]"


def paired_test(
    first: np.ndarray, second: np.ndarray, figure: Figure, seed: int = 0, samples: int = EXCHANGES
) -> float:
    """Computes the probability of as large a difference of equal systems, by randomisation.

    Each sample exchanges the two systems' sentences with probability 1/2 each (Riezler and Maxwell
    2005); p = (1 + samples with as large a difference) / (1 + samples).
    """
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        return math.nan
    if np.array_equal(first, second):  # whatever the figure is, even without any reference
        return 1.0
    difference = abs(float(figure(first.sum(0))) - float(figure(second.sum(0))))
    if not math.isfinite(difference):
        return math.nan
    generator = np.random.default_rng(seed)
    gains, as_large = second - first, 0
    for start in range(0, samples, _AT_A_TIME):
        shape = min(_AT_A_TIME, samples - start), len(first)
        exchanged = generator.integers(0, 2, shape, dtype=np.int8) @ gains
        differences = np.abs(figure(first.sum(0) + exchanged) - figure(second.sum(0) - exchanged))
        as_large += int((differences >= difference - 1e-9).sum())
    return (1 + as_large) / (1 + samples)


def binomial_interval(right: float, count: float) -> tuple[float, float]:
    """Computes the 95 % interval of a share, `right` of `count` questions (Wilson 1927).

    (c + z^2/2 ± z sqrt(c (n - c)/n + z^2/4)) / (n + z^2) with c = `right`, n = `count` and z the
    0.975 quantile of the normal distribution.
    """
    if not count:
        return math.nan, math.nan
    z = 1.959963984540054
    middle = right + z * z / 2
    reach = z * math.sqrt(right * (count - right) / count + z * z / 4)
    total = count + z * z
    return max(0.0, (middle - reach) / total), min(1.0, (middle + reach) / total)


def percent(interval: tuple[float, float]) -> str:
    """Formats an interval of shares as percents: "[25.5, 36.6]"."""
    low, high = (f"{100 * end:.1f}" for end in interval)
    return f"[{low}, {high}]"


def mcnemar_test(only_first: int, only_second: int) -> float:
    """Computes the probability of as uneven a split of two equal systems, exactly (McNemar 1947).

    If they are alike, each question that one of them alone has right belongs to either with
    probability 1/2: p = min(1, 2 P(X <= min(only_first, only_second))), X binomial of their number
    and 1/2.
    """
    from scipy import stats  # half a second, which few commands need

    count = only_first + only_second
    return float(stats.binomtest(only_first, count).pvalue) if count else 1.0


def seeds_test(first: Sequence[float], second: Sequence[float]) -> float:
    """Computes the probability of as large a difference of means if two groups of seeds were alike,
    by Welch's t-test (1947)."""
    if min(len(first), len(second)) < 2:
        return math.nan
    from scipy import stats  # half a second, which few commands need

    groups = [(np.mean(runs), np.std(runs, ddof=1), len(runs)) for runs in (first, second)]
    if not groups[0][1] + groups[1][1]:
        return float(groups[0][0] == groups[1][0])
    return float(stats.ttest_ind_from_stats(*groups[0], *groups[1], equal_var=False).pvalue)
