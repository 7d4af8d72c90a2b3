"""N-best lists as arrays: features and statistics of every hypothesis, in the order of the file."""

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True, eq=False)
class Lists:
    """L lists of N hypotheses in all, of F features and S statistics.

    Attributes:
      ids: of the lists, L.
      names: of the features, F.
      starts: int64 [L + 1]: the hypotheses of list l are rows starts[l] to starts[l + 1].
      features: float64 [N, F].
      statistics: float64 [N, S], of a metric; see `metrics`.
      first: float64 [N], the scores of the system that made the lists, larger is better; None
        without scores. Its best hypothesis is the first of a list in any case.

    Example:
      >>> lists.chosen(np.array([1.0, -3])).tolist()  # the second hypothesis of each list
      [1, 3]
    """

    ids: tuple[str, ...]
    names: tuple[str, ...]
    starts: np.ndarray
    features: np.ndarray
    statistics: np.ndarray
    first: np.ndarray | None = None

    @property
    def sizes(self) -> np.ndarray:
        """Hypotheses of each list, int64 [L]."""
        return np.diff(self.starts)

    @property
    def owners(self) -> np.ndarray:
        """The list of each hypothesis, int64 [N]."""
        return np.repeat(np.arange(len(self.ids)), self.sizes)

    def best(self, scores: np.ndarray) -> np.ndarray:
        """Returns the row of each list with the highest of scores [N], int64 [L]; the first of
        equals."""
        most = np.maximum.reduceat(scores, self.starts[:-1])
        rows = np.where(scores == np.repeat(most, self.sizes), np.arange(len(scores)), len(scores))
        return np.minimum.reduceat(rows, self.starts[:-1])

    def untuned(self) -> np.ndarray:
        """Returns the row of the first system's best hypothesis of each list, int64 [L]."""
        return self.starts[:-1]

    def chosen(self, weights: np.ndarray) -> np.ndarray:
        """Returns the row of the best hypothesis of each list by feature weights [F], int64 [L]."""
        return self.best(self.features @ weights)

    def some(self, lists: np.ndarray) -> "Lists":
        """Returns some of the lists, by number."""
        sizes = self.sizes[lists]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        rows = np.repeat(self.starts[lists] - starts[:-1], sizes) + np.arange(starts[-1])
        return dataclasses.replace(
            self,
            ids=tuple(self.ids[number] for number in lists),
            starts=starts,
            features=self.features[rows],
            statistics=self.statistics[rows],
            first=None if self.first is None else self.first[rows],
        )

    def with_features(self, names: tuple[str, ...]) -> "Lists":
        """Returns the lists with other features [N, F]: 0 where they do not have one.

        Args:
          names: of the F features, in their order.
        """
        features = np.zeros((len(self.features), len(names)))
        for column, name in enumerate(names):
            if name in self.names:
                features[:, column] = self.features[:, self.names.index(name)]
        return dataclasses.replace(self, names=names, features=features)

    def centred(self) -> np.ndarray:
        """Returns the features less their means over the list, [N, F]."""
        sums = np.add.reduceat(self.features, self.starts[:-1], axis=0)
        return self.features - np.repeat(sums / self.sizes[:, None], self.sizes, axis=0)

    def scales(self) -> np.ndarray:
        """Computes the standard deviation of each feature within lists, [F]; 1 for a constant
        feature."""
        deviation = np.sqrt((self.centred() ** 2).mean(0))
        # The deviation of a constant feature is a rounding error.
        least = 1e-12 * np.maximum(1, np.abs(self.features).max(0, initial=0))
        return np.where(deviation > least, deviation, 1.0)

    def padded(self, values: np.ndarray, fill: float) -> np.ndarray:
        """Returns values [N, ...] as [L, most hypotheses of a list, ...], `fill` beyond a list's
        end."""
        shape = (len(self.ids), int(self.sizes.max()), *values.shape[1:])
        array = np.full(shape, fill, values.dtype)
        array[self.owners, np.arange(len(values)) - self.starts[self.owners]] = values
        return array


def first_weights(lists: Lists) -> np.ndarray:
    """Fits weights [F] that score as the first system did, as well as the features allow.

    They are the least-squares fit of its scores on the features, within lists. If its score is a
    weighted sum of the features, as a decoder's is, they are exactly its weights. Without scores
    they are 0.
    """
    if lists.first is None:
        return np.zeros(len(lists.names))
    scores = lists.first[:, None]
    one = dataclasses.replace(lists, features=scores).centred()[:, 0]
    scales = lists.scales()
    weights = np.linalg.lstsq(lists.centred() / scales, one, rcond=1e-10)[0]
    return weights / scales


def unit(weights: np.ndarray) -> np.ndarray:
    """Scales weights [F] to length 1, which does not change any choice; 0 stays 0."""
    return weights / (np.linalg.norm(weights) or 1.0)
