"""Feature weights tuned on lists with references, and figures before and after tuning."""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from zoo.errors import UserError
from zoo.evaluation import significance
from zoo.rescoring.bleu_chrf_wer import Metric
from zoo.rescoring.mert import Mert
from zoo.rescoring.mira import Mira
from zoo.rescoring.model_features import RANK, Lists, first_weights
from zoo.sources.nbest import NBestList

# {value of --method: how weights are tuned}. A method is a file, and a line here.
METHODS: dict[str, Any] = {"mira": Mira, "mert": Mert}


def arrays(
    lists: Sequence[NBestList], references: dict[str, tuple[str, ...]], metric: Metric
) -> Lists:
    """Returns lists as arrays."""
    if not lists:
        raise UserError("the lists to tune on are empty: give a file with lists.")
    names = [*dict.fromkeys(name for one in lists for h in one.hypotheses for name in h.features)]
    statistics = []
    for one in lists:
        wanted = references[one.id]
        if len(wanted) > 1 and not metric.many:
            raise UserError(f"{metric.name} takes one reference of each list: give one file.")
        statistics.append(metric.statistics([h.text for h in one.hypotheses], wanted))
    hypotheses = [hypothesis for one in lists for hypothesis in one.hypotheses]
    features = [[h.features.get(name, 0.0) for name in names] for h in hypotheses]
    scores = [hypothesis.score for hypothesis in hypotheses]
    return Lists(
        tuple(one.id for one in lists),
        tuple(names),
        np.cumsum([0, *(len(one.hypotheses) for one in lists)]),
        np.array(features, np.float64).reshape(len(hypotheses), len(names)),
        np.concatenate(statistics),
        None if None in scores else np.array(scores, np.float64),
    )


def tune(lists: Lists, metric: Metric, method: str, seed: int, start=None) -> np.ndarray:
    """Tunes weights [F] by a method of `METHODS`, from `start` or from `first_start`."""
    if not lists.names:
        raise UserError(
            "the hypotheses have no features to tune weights for: give lists with features, --run "
            "DIR or --word-count."
        )
    begin = first_start(lists, metric) if start is None else start
    return METHODS[method]().tune(lists, metric, begin, seed)


def cross_validate(
    lists: Lists, metric: Metric, method: str, seed: int, start: np.ndarray, folds: int
) -> tuple[float, float]:
    """Evaluates tuning on lists that it has not seen: a safeguard against overfitting few lists.

    Each N-th list is evaluated with weights that were tuned on the others.
    """
    statistics = np.zeros((len(lists.ids), lists.statistics.shape[1]))
    numbers = np.arange(len(lists.ids))
    for fold in range(folds):
        judged = numbers % folds == fold
        weights = tune(lists.some(numbers[~judged]), metric, method, seed, start)
        part = lists.some(numbers[judged])
        statistics[judged] = part.statistics[part.chosen(weights)]
    by_start = lists.statistics[lists.chosen(start)].sum(0)
    return float(metric.figure(statistics.sum(0))), float(metric.figure(by_start))


def first_start(lists: Lists, metric: Metric) -> np.ndarray:
    """Returns the weights where tuning starts by default: they choose as the first system did.

    They are the better of `first_weights` and, if there is a feature "rank", this feature alone.
    """
    starts = [first_weights(lists)]
    if RANK in lists.names:
        starts.append(np.array([float(name == RANK) for name in lists.names]))
    figures = [metric.figure(lists.statistics[lists.chosen(w)].sum(0)) for w in starts]
    return starts[int(np.argmax(metric.sign * np.array(figures)))]


@dataclasses.dataclass(frozen=True)
class Figure:
    """A figure of some lists with its bootstrap interval of 95 %."""

    value: float
    low: float
    high: float


@dataclasses.dataclass(frozen=True)
class Figures:
    """Figures of three choices from lists: the first system's, by weights, and the oracle's.

    p is the paired test's, of the first system's choice against the choice by weights.
    """

    lists: int
    untuned: Figure
    tuned: Figure
    oracle: Figure
    p: float

    @classmethod
    def of(cls, lists: Lists, metric: Metric, weights: np.ndarray, seed: int = 0) -> "Figures":
        """Computes the figures of lists by weights [F]."""
        chosen = [
            lists.statistics[rows]
            for rows in (lists.untuned(), lists.chosen(weights), choose(lists, metric))
        ]
        figures = [
            Figure(
                float(metric.figure(statistics.sum(0))),
                *significance.bootstrap_interval(statistics, metric.figure, seed),
            )
            for statistics in chosen
        ]
        p = significance.paired_test(chosen[0], chosen[1], metric.figure, seed)
        untuned, tuned, best = figures
        return cls(len(lists.ids), untuned, tuned, best, p)


def notes(figures: Figures, metric: Metric, weights: np.ndarray) -> list[str]:
    """Returns a warning if tuned weights choose worse than the lists' own order, or keep it."""
    if not weights.any():
        return [
            "note: no weights were found that choose better than the lists' first hypotheses, and "
            "all are 0: --rank adds their order as a feature."
        ]
    if metric.sign * (figures.tuned.value - figures.untuned.value) >= -1e-9:
        return []
    return [
        "note: the lists' first hypotheses are better than any choice by these features that was "
        "found: --rank adds their order as a feature."
    ]


def table(parts: Iterable[tuple[str, Figures]], metric: Metric) -> list[str]:
    """Returns the figures of parts side by side, as lines of text."""

    def cell(figure):
        return f"{figure.value:.2f} [{figure.low:.2f}, {figure.high:.2f}]"

    rows = [(metric.name + metric.unit, "lists", "untuned", "tuned", "oracle", "p")]
    for name, figures in parts:
        cells = map(cell, (figures.untuned, figures.tuned, figures.oracle))
        rows.append((name, str(figures.lists), *cells, f"{figures.p:.3f}"))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def choose(lists: Lists, metric: Metric, passes: int = 10) -> np.ndarray:
    """Chooses a hypothesis of each list so that their figure together is best; returns rows, int64
    [L].

    For the word error rate this is the oracle. BLEU and chrF of a corpus are not sums over
    sentences: there each list in turn takes the hypothesis that improves the whole most, until no
    single exchange improves it. The figure is then a close lower bound of the oracle's.
    """
    background = lists.statistics[lists.untuned()].sum(0)
    rows = lists.best(metric.gain(lists.statistics, background))
    totals = lists.statistics[rows].sum(0)
    for _ in range(passes):
        changed = False
        for one, (start, stop) in enumerate(
            zip(lists.starts[:-1].tolist(), lists.starts[1:].tolist(), strict=True)
        ):
            others = totals - lists.statistics[rows[one]]
            figures = metric.sign * metric.figure(others + lists.statistics[start:stop])
            best = start + int(figures.argmax())
            if figures[best - start] > figures[rows[one] - start] + 1e-12:
                totals, rows[one], changed = others + lists.statistics[best], best, True
        if not changed:
            break
    return rows
