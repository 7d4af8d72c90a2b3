"""Minimum error rate training: exact line searches over n-best lists (Och 2003).

Along a line w + x d every hypothesis has a score that is a line in x, and the best one of a list
changes only where the upper envelope of these lines has a corner. Between two corners of all lists'
envelopes the figure is constant: each of these intervals is evaluated.

F. Och: Minimum Error Rate Training in Statistical Machine Translation, ACL 2003, section 4.
"""

import dataclasses

import numpy as np

from zoo.rescoring.bleu_chrf_wer import Metric
from zoo.rescoring.model_features import Lists, unit


@dataclasses.dataclass(frozen=True)
class Mert:
    """Minimum error rate training, with its settings.

    Attributes:
      starts: number of starts: the given weights, then random ones.
      directions: random directions searched in each round, beside the features' own.
      rounds: greatest number of rounds along all directions; it stops when none improves.
      prior: share of the start's weights in the result, from 0 to 1.

    Example:
      >>> weights = rescoring.Mert(starts=2).tune(lists, metric, np.array([1.0, 0]))
      >>> lists.chosen(weights).tolist()
      [1, 3]
      >>> metric.figure(lists.statistics[lists.chosen(weights)].sum(0)).item()
      0.0
    """

    starts: int = 8
    directions: int = 8
    rounds: int = 30
    prior: float = 0.25

    def tune(self, lists: Lists, metric: Metric, start: np.ndarray, seed: int = 0) -> np.ndarray:
        """Returns the tuned weights, float64 [F].

        They are the mean of the ends of all starts and of the given weights, which have a share of
        `prior`, each scaled to length 1: the best end alone fits these lists more and others less.
        Where this mean has a worse figure than the given weights, the best end is returned, so that
        the figure of these lists never gets worse.

        Args:
          lists: to tune on.
          metric: to tune for.
          start: weights [F].
          seed: of the directions and the other starts.
        """
        scales = lists.scales()
        search = Search.of(dataclasses.replace(lists, features=lists.features / scales), metric)
        ends = []
        for number, generator in enumerate(np.random.default_rng(seed).spawn(self.starts)):
            begin = generator.normal(size=len(start)) if number else start * scales
            ends.append(self._climb(search, begin, generator))
        mean = unit(np.mean([unit(weights) for _, weights in ends], axis=0))
        mixed = (1 - self.prior) * mean + self.prior * unit(start * scales)
        best = max(ends, key=lambda end: end[0])[1]  # the first of equals
        carried = search.value(mixed) >= search.value(start * scales)
        return (mixed if carried else best) / scales

    def _climb(self, search, weights, generator):
        """Searches lines until none improves; returns (figure, weights)."""
        value = search.value(weights)
        for _ in range(self.rounds):
            size = len(weights)
            random = generator.normal(size=(self.directions, size))
            before = value
            for direction in np.concatenate([np.eye(size), random]):
                step, figure = search.best_step(weights, direction)
                if figure > value + 1e-9:
                    weights, value = weights + step * direction, figure
                    norm = np.abs(weights).max()
                    weights = weights / norm if norm else weights
            if value <= before + 1e-9:
                break
        return value, weights


@dataclasses.dataclass(frozen=True, eq=False)
class Search:
    """N-best lists in the arrays of line searches: [L, most, ...], -inf beyond a list's end."""

    lists: Lists
    metric: Metric
    features: np.ndarray
    statistics: np.ndarray
    missing: np.ndarray

    @classmethod
    def of(cls, lists: Lists, metric: Metric) -> "Search":
        """Makes the arrays of lists, for the metric that they are tuned for."""
        return cls(
            lists,
            metric,
            lists.padded(lists.features, 0.0),
            lists.padded(lists.statistics, 0.0),
            lists.padded(np.ones(len(lists.features), bool), False) == 0,
        )

    def value(self, weights: np.ndarray) -> float:
        """Returns the figure of weights [F], larger is better."""
        sums = self.lists.statistics[self.lists.chosen(weights)].sum(0)
        return float(self.metric.sign * self.metric.figure(sums))

    def best_step(self, weights: np.ndarray, direction: np.ndarray) -> tuple[float, float]:
        """Finds the best interval of w + x d; returns (x in its middle, figure), larger is better.

        Of intervals equally good the widest is taken, then the one nearest to x = 0.
        """
        intercepts = np.where(self.missing, -np.inf, self.features @ weights)
        slopes = np.where(self.missing, -np.inf, self.features @ direction)
        first, corners, rows, chosen, left = envelopes(slopes, intercepts)
        lists = np.arange(len(first))
        order = np.argsort(corners, kind="stable")
        changes = self.statistics[rows, chosen] - self.statistics[rows, left]
        sums = self.statistics[lists, first].sum(0) + np.concatenate(
            [np.zeros((1, changes.shape[1])), np.cumsum(changes[order], axis=0)]
        )
        figures = self.metric.sign * self.metric.figure(sums)
        bounds = np.concatenate([[-np.inf], corners[order], [np.inf]])
        steps, widths = _middles(bounds)
        # Corners that coincide leave no interval between them.
        figures = np.where(widths > 0, figures, -np.inf)
        best = max(figures)
        among = np.flatnonzero(figures >= best - 1e-12)
        one = min(among, key=lambda n: (-widths[n], abs(steps[n])))
        return float(steps[one]), float(figures[one])


def envelopes(slopes: np.ndarray, intercepts: np.ndarray):
    """Computes the upper envelopes of the lines a + x b of each row, from x = -inf to inf."""
    rows = np.arange(len(slopes))
    there = np.isfinite(slopes)
    # The least slope is highest far to the left, and of equal ones the highest line everywhere.
    least = np.where(there, slopes, np.inf).min(1, keepdims=True)
    first = np.where(there & (slopes == least), intercepts, -np.inf).argmax(1)
    all_corners: list[tuple[np.ndarray, ...]] = []
    current = first.copy()
    while len(rows):
        slope, height = (x[rows, current[rows], None] for x in (slopes, intercepts))
        later = there[rows] & (slopes[rows] > slope)
        with np.errstate(invalid="ignore", divide="ignore"):
            corners = (height - intercepts[rows]) / (slopes[rows] - slope)
        corners = np.where(later, corners, np.inf)
        nearest = corners.min(1, keepdims=True)
        # Of lines that cross at one corner the steepest is the envelope.
        following = np.where(corners == nearest, slopes[rows], -np.inf).argmax(1)
        going = later.any(1)
        rows = rows[going]
        all_corners.append((nearest[going, 0], rows, following[going], current[rows]))
        current[rows] = following[going]
    return first, *(np.concatenate(part) for part in zip(*all_corners, strict=True))


def _middles(bounds):
    """Returns (a point within each interval, its width) of sorted bounds, -inf and inf at the
    ends."""
    left, right = bounds[:-1], bounds[1:]
    with np.errstate(invalid="ignore"):
        middles = (left + right) / 2
    middles = np.where(np.isinf(left), right - 1, np.where(np.isinf(right), left + 1, middles))
    middles = np.where(np.isinf(left) & np.isinf(right), 0.0, middles)
    return middles, np.where(np.isinf(right) | np.isinf(left), 2.0, right - left)
