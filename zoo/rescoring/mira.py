"""Batch k-best MIRA (Cherry and Foster 2012, section 2.2 and algorithm 1).

In a list, the hope is the hypothesis that is good both by the model and by the metric, the fear is
good by the model and bad by the metric:

    hope = argmax_e w . h(e) + g(e),    fear = argmax_e w . h(e) - g(e)

with features h and the gain g of `metrics`, whose background are decayed statistics of earlier
hopes. Weights move by the smallest step that separates the two by their difference in gain, at most
C:

    w <- w + min(C, loss / |h(hope) - h(fear)|^2) (h(hope) - h(fear))
    loss = g(hope) - g(fear) - w . (h(hope) - h(fear)), where that is positive

Features are divided by their standard deviation within lists before, so that C means the same for
all of them.

C. Cherry, G. Foster: Batch Tuning Strategies for Statistical Machine Translation, NAACL 2012.
"""

import dataclasses

import numpy as np

from zoo.rescoring.bleu_chrf_wer import Metric
from zoo.rescoring.model_features import Lists, unit

_SCALES = 2.0 ** np.arange(-15, 16)


@dataclasses.dataclass(frozen=True)
class Mira:
    """Batch MIRA, with its settings.

    Attributes:
      epochs: passes over the lists.
      steps: the largest step, C, of each start; starts differ in the order of the lists, too.
      decay: factor of the background statistics after each list.
      prior: share of the start's weights in the result, from 0 to 1.

    Example:
      >>> weights = rescoring.Mira(epochs=5).tune(lists, metric, np.array([1.0, 0]))
      >>> lists.chosen(weights).tolist()
      [1, 3]
      >>> metric.figure(lists.statistics[lists.chosen(weights)].sum(0)).item()
      0.0
    """

    epochs: int = 30
    steps: tuple[float, ...] = (0.01, 0.001, 0.1)
    decay: float = 0.999
    prior: float = 0.25

    def tune(self, lists: Lists, metric: Metric, start: np.ndarray, seed: int = 0) -> np.ndarray:
        """Returns the tuned weights, float64 [F].

        Candidates are the start and the mean of the weights over each epoch of each start, unless
        their objective is above the start's. The weights are the mean of the best third of them by
        figure, each at its best scale, and of the start, scaled to the same length, which has a
        share of `prior`: a mean of many fits these lists less than the best candidate alone, and
        other lists better. Where this mean has a worse figure than the start, the best candidate is
        returned, the first of equals, so that neither figure nor objective gets worse.

        Args:
          lists: to tune on.
          metric: to tune for.
          start: weights [F].
          seed: of the orders.
        """
        scales = lists.scales()
        objective = Objective.of(lists, metric)
        scaled = dataclasses.replace(lists, features=lists.features / scales)
        begin = objective.best_scale(start * scales)
        limit = objective.value(begin)
        candidates = [begin]
        generators = np.random.default_rng(seed).spawn(len(self.steps))
        for generator, step in zip(generators, self.steps, strict=True):
            candidates += self._epochs(scaled, metric, begin, step, generator)
        allowed = [w for w in candidates if objective.value(w) <= limit]

        def judge(weights):
            return metric.sign * metric.figure(_sums(scaled, weights))

        figures = np.array([judge(weights) for weights in allowed])
        order = np.argsort(-figures, kind="stable")
        best = allowed[order[0]]
        among = order[: -(-len(order) // 3)]
        mean = np.mean([objective.best_scale(allowed[number]) for number in among], axis=0)
        mixed = (1 - self.prior) * unit(mean) + self.prior * unit(begin)
        carried = objective.value(mixed) <= limit and judge(mixed) >= figures[0]
        return (mixed if carried else best) / scales

    def _epochs(self, lists, metric, weights, step, generator):
        """Yields the mean weights of each epoch."""
        background = np.ones(lists.statistics.shape[1])
        bounds = lists.starts.tolist()
        for _ in range(self.epochs):
            total = np.zeros_like(weights)
            for one in generator.permutation(len(lists.ids)):
                rows = slice(bounds[one], bounds[one + 1])
                features, statistics = lists.features[rows], lists.statistics[rows]
                gains = metric.gain(statistics, background)
                scores = features @ weights
                hope, fear = int((scores + gains).argmax()), int((scores - gains).argmax())
                difference = features[hope] - features[fear]
                loss = gains[hope] - gains[fear] - weights @ difference
                length = difference @ difference
                if loss > 0 and length > 0:
                    weights = weights + min(step, loss / length) * difference
                background = self.decay * background + statistics[hope]
                total += weights
            yield total / len(lists.ids)


@dataclasses.dataclass(frozen=True, eq=False)
class Objective:
    """The mean over lists of a structured hinge loss, with one background for all epochs.

        mean_l max_e (w . h(e) - g(e)) - (w . h(o) - g(o)),    o = argmax_e g(e)

    It bounds the gain that is lost by choosing with w. With the hope in place of the best
    hypothesis o, larger weights would make it 0 for any choice.
    """

    features: np.ndarray  # [L, most, F], in standard deviations
    # [L, most], against decayed statistics of the first system's hypotheses as background; -inf
    # beyond a list's end
    gains: np.ndarray

    @classmethod
    def of(cls, lists: Lists, metric: Metric) -> "Objective":
        """Makes the objective of lists; its background are at most a thousand sentences, as decay
        by 0.999 leaves."""
        background = lists.statistics[lists.untuned()].mean(0) * min(1000, len(lists.ids))
        gains = metric.gain(lists.statistics, background + 1)
        features = lists.padded(lists.features / lists.scales(), 0.0)
        return cls(features, lists.padded(gains, -np.inf))

    def value(self, weights: np.ndarray) -> float:
        """Returns the loss of weights in words, at their best scale.

        Choices do not depend on the scale of weights, and so their loss should not.
        """
        return float(self._of_scales(weights).min())

    def best_scale(self, weights: np.ndarray) -> np.ndarray:
        """Returns the weights times the power of 2 that makes the loss least."""
        return weights * _SCALES[self._of_scales(weights).argmin()]

    def _of_scales(self, weights):
        """Returns the loss at each of the scales."""
        scores = self.features @ weights
        there = np.isfinite(self.gains)
        gains = np.where(there, self.gains, 0)
        rows = np.arange(len(gains))
        best = self.gains.argmax(1)

        def loss(scale):
            fear = np.where(there, scale * scores - gains, -np.inf).max(1)
            return (fear - (scale * scores - gains)[rows, best]).mean()

        return np.array([loss(scale) for scale in _SCALES])


def _sums(lists, weights):
    return lists.statistics[lists.chosen(weights)].sum(0)
