"""Feature weights tuned on lists with references, and figures before and after tuning."""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np

from zoo.errors import UserError, quote
from zoo.lab.evaluation import significance
from zoo.lab.evaluation.bleu_chrf_wer import Metric
from zoo.lab.evaluation.nbest import NBestList
from zoo.lab.evaluation.references import read_references
from zoo.lab.rescoring.model_features import RANK, Lists, fit_system_weights, normalise
from zoo.lab.table import COUNT, SCORE, Column, Table


def collect_references(
    lists: Sequence[NBestList], files: Sequence[str], path: str
) -> dict[str, tuple[str, ...]]:
    """Returns {list id: references} from files, or else from the lists; UserError for a gap."""
    if files:
        ids = [nbest_list.id for nbest_list in lists]
        columns = [read_references(file, ids) for file in files]
        return {id: tuple(column[id] for column in columns) for id in ids}
    for nbest_list in lists:
        if nbest_list.reference is None:
            raise UserError(
                f"{path}, line {nbest_list.hypotheses[0].line}: the list {nbest_list.id!r} has no "
                "reference: give a file of references."
            )
    return {nbest_list.id: (str(nbest_list.reference),) for nbest_list in lists}


def build_arrays(
    lists: Sequence[NBestList], references: dict[str, tuple[str, ...]], metric: Metric
) -> Lists:
    """Converts n-best lists and {list id: references} to arrays; a missing feature is 0."""
    if not lists:
        raise UserError("the lists to tune on are empty: give a file with lists.")
    hypotheses = [hypothesis for nbest in lists for hypothesis in nbest.hypotheses]
    names = [*dict.fromkeys(name for h in hypotheses for name in h.features)]
    statistics = []
    for nbest in lists:
        list_references = references[nbest.id]
        if len(list_references) > 1 and not metric.multiple_references:
            raise UserError(f"{metric.name} takes one reference of each list: give one file.")
        statistics.append(metric.statistics([h.text for h in nbest.hypotheses], list_references))
    features = [[h.features.get(name, 0.0) for name in names] for h in hypotheses]
    scores = [hypothesis.score for hypothesis in hypotheses]
    return Lists(
        tuple(nbest.id for nbest in lists),
        tuple(names),
        np.cumsum([0, *(len(nbest.hypotheses) for nbest in lists)]),
        np.array(features, np.float64).reshape(len(hypotheses), len(names)),
        np.concatenate(statistics),
        None if None in scores else np.array(scores, np.float64),
    )


def hold_out(lists: Lists, period: int | None) -> dict[str, Lists]:
    """Splits lists into "tuned on" and, with a period N, "held out", which has each N-th list."""
    if period is None:
        return {"tuned on": lists}
    is_held_out = np.arange(len(lists.ids)) % max(1, period) == period - 1
    if is_held_out.all() or not is_held_out.any():
        raise UserError(
            f"--hold-out {period}: give at least 2, and at most the number of lists, "
            f"{len(lists.ids)}."
        )
    rows = {"tuned on": ~is_held_out, "held out": is_held_out}
    return {name: lists.subset(np.flatnonzero(mask)) for name, mask in rows.items()}


def match_features(lists: Lists, tuned: Lists, paths: tuple[str, str], sparse: bool) -> Lists:
    """Returns lists with the features of the tuned lists; raises UserError for other features.

    If `sparse`, a feature that one of them lacks is 0. The error names the paths of both.
    """
    if sparse:  # a feature without a weight counts nothing
        return lists.with_features(tuned.names)
    if {*lists.names} != {*tuned.names}:
        raise UserError(f"{paths[0]} has other features than {paths[1]}: give lists of one system.")
    return lists


def tune(lists: Lists, metric: Metric, method: str, seed: int, start=None) -> np.ndarray:
    """Tunes weights [F] by a method of `METHODS`, from `start` or else `choose_start`; features
    constant within lists get 0."""
    if not lists.names:
        raise UserError(
            "the hypotheses have no features to tune weights for: give lists with features, --run "
            "DIR or --word-count."
        )
    initial = choose_start(lists, metric) if start is None else start
    # A feature that is constant within lists changes no choice: its weight stays exactly 0.
    varies = lists.deviations() > 0
    weights = np.zeros(len(lists.names))
    if varies.any():
        varying_lists = lists.with_features(tuple(np.array(lists.names)[varies].tolist()))
        weights[varies] = METHODS[method]().tune(varying_lists, metric, initial[varies], seed)
    return weights


def tune_if_better(
    lists: Lists, metric: Metric, method: str, seed: int, folds: int | None, start=None
) -> tuple[np.ndarray, list[str]]:
    """Tunes weights [F], but returns the start's if cross-validation finds no gain over them.

    Returns (weights, lines of text with the figures of cross-validation). Without `folds` the tuned
    weights are returned in any case.
    """
    if folds is None:
        return tune(lists, metric, method, seed, start), []
    if not 2 <= folds <= len(lists.ids):
        raise UserError(
            f"--folds {folds}: give at least 2, and at most the number of lists, {len(lists.ids)}."
        )
    initial = choose_start(lists, metric) if start is None else start
    validated, at_start = cross_validate(lists, metric, method, seed, initial, folds)
    is_better = metric.sign * (validated - at_start) > 0
    choice = "the tuned weights" if is_better else "the weights at the start"
    line = f"cross-validated: {validated:.2f}, at the start {at_start:.2f}: {choice} are kept"
    return (tune(lists, metric, method, seed, initial) if is_better else initial), [line]


def cross_validate(
    lists: Lists, metric: Metric, method: str, seed: int, start: np.ndarray, folds: int
) -> tuple[float, float]:
    """Returns (figure of held-out folds under weights tuned on the others, figure of `start`)."""
    statistics = np.zeros((len(lists.ids), lists.statistics.shape[1]))
    indices = np.arange(len(lists.ids))
    for fold in range(folds):
        in_fold = indices % folds == fold
        weights = tune(lists.subset(indices[~in_fold]), metric, method, seed, start)
        fold_lists = lists.subset(indices[in_fold])
        statistics[in_fold] = fold_lists.statistics[fold_lists.choose(weights)]
    return float(metric.figure(statistics.sum(0))), metric.sign * evaluate(lists, metric, start)


def evaluate(lists: Lists, metric: Metric, weights: np.ndarray) -> float:
    """Returns the figure of the hypotheses chosen by weights [F], negated if smaller is better."""
    sums = lists.statistics[lists.choose(weights)].sum(0)
    return float(metric.sign * metric.figure(sums))


def choose_start(lists: Lists, metric: Metric) -> np.ndarray:
    """Returns weights [F] to start from, the better of `fit_system_weights` and the rank alone."""
    starts = [fit_system_weights(lists)]
    if RANK in lists.names:
        starts.append(np.array([float(name == RANK) for name in lists.names]))
    return max(starts, key=lambda weights: evaluate(lists, metric, weights))


@dataclasses.dataclass(frozen=True)
class Figure:
    """A figure of some lists with its bootstrap interval of 95 %."""

    value: float
    low: float
    high: float


@dataclasses.dataclass(frozen=True)
class Figures:
    """Figures of three choices from lists: the first hypotheses, by weights, and the oracle's."""

    lists: int
    untuned: Figure
    tuned: Figure
    oracle: Figure
    p: float  # of the paired test, untuned against tuned

    @classmethod
    def from_weights(cls, lists: Lists, metric: Metric, weights: np.ndarray, seed: int = 0) -> Self:
        """Computes the figures of lists, with their intervals and the test of the tuned weights."""
        choices = lists.first_rows(), lists.choose(weights), oracle_rows(lists, metric)
        samples = [lists.statistics[rows] for rows in choices]
        figures = [
            Figure(
                float(metric.figure(statistics.sum(0))),
                *significance.bootstrap_interval(statistics, metric.figure, seed),
            )
            for statistics in samples
        ]
        p = significance.paired_test(samples[0], samples[1], metric.figure, seed)
        untuned, tuned, best = figures
        return cls(len(lists.ids), untuned, tuned, best, p)

    def record(self) -> dict[str, float]:
        """Returns the figures and the number of lists, as JSON for a file of weights."""
        values = {name: getattr(self, name).value for name in ("untuned", "tuned", "oracle")}
        return {"lists": self.lists, **values}


def collect_notes(lists: Lists, figures: Figures, metric: Metric, weights: np.ndarray) -> list[str]:
    """Returns notes for the user on lists and features, and on weights that improve nothing."""
    notes: list[str] = []
    if lists.system_scores is not None:
        rows = lists.best_rows(lists.system_scores)
        count = np.count_nonzero(rows != lists.first_rows())
        if count:
            by_score = metric.figure(lists.statistics[rows].sum(0))
            notes.append(
                f"note: in {count:,} of {len(rows):,} lists the first hypothesis does not have the "
                f"highest score: untuned {figures.untuned.value:.2f}, by score {by_score:.2f}"
            )
    constant = [name for name, x in zip(lists.names, lists.deviations(), strict=True) if not x]
    if constant:
        notes.append(f"note: features constant within lists change no choice: {quote(constant)}")
    if len(lists.ids) == 1:
        notes.append("note: one list has no interval: give several lists")
    note = "the lists' first hypotheses are better than any choice by these features that was found"
    if not weights.any():
        note = (
            "no weights were found that choose better than the lists' first hypotheses, and all "
            "are 0"
        )
    elif metric.sign * (figures.tuned.value - figures.untuned.value) >= -1e-9:
        return notes
    return [*notes, f"note: {note}: --rank adds their order as a feature."]


def format_table(parts: Iterable[tuple[str, Figures]], metric: Metric) -> list[str]:
    """Formats (name of a part, figures) as the lines of a table."""

    rows = []
    for name, figures in parts:
        # Errors without a word of a reference have no rate.
        cells = [
            (figure.value if np.isfinite(figure.value) else None, figure.low, figure.high)
            for figure in (figures.untuned, figures.tuned, figures.oracle)
        ]
        rows.append((name, figures.lists, *cells, figures.p))
    columns = [Column(metric.name + metric.unit), Column("lists", COUNT)]
    columns += [Column(selection, SCORE) for selection in ("untuned", "tuned", "oracle")]
    return [*Table([*columns, Column("p", ".3f")], rows).text()]


def oracle_rows(lists: Lists, metric: Metric, passes: int = 10) -> np.ndarray:
    """Chooses a row of each list, int64 [L], so that the figure of all lists together is best."""
    # For the word error rate this is the oracle. BLEU and chrF of a corpus are not sums over
    # sentences: there each list in turn takes the hypothesis that improves the whole most, until no
    # single exchange improves it. The figure is then a close lower bound of the oracle's.
    background = lists.statistics[lists.first_rows()].sum(0)
    rows = lists.best_rows(metric.gain(lists.statistics, background))
    totals = lists.statistics[rows].sum(0)
    bounds = lists.starts.tolist()
    for _ in range(passes):
        improved = False
        for index, start in enumerate(bounds[:-1]):
            other_totals = totals - lists.statistics[rows[index]]
            statistics = lists.statistics[start : bounds[index + 1]]
            figures = metric.sign * metric.figure(other_totals + statistics)
            best = start + int(figures.argmax())
            if figures[best - start] > figures[rows[index] - start] + 1e-12:
                totals, rows[index], improved = other_totals + lists.statistics[best], best, True
        if not improved:
            break
    return rows


# ----------- minimum error rate training: exact line searches over n-best lists (Och 2003)
# Along a line w + x d every hypothesis has a score that is a line in x, and the best one of a list
# changes only where the upper envelope of these lines has a corner. Between two corners of all
# lists' envelopes the figure is constant: each of these intervals is evaluated.
#
# F. Och: Minimum Error Rate Training in Statistical Machine Translation, ACL 2003, section 4.


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
      >>> lists.choose(weights).tolist()
      [1, 3]
      >>> metric.figure(lists.statistics[lists.choose(weights)].sum(0)).item()
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
        scaled = dataclasses.replace(lists, features=lists.features / scales)
        search = Search(scaled, metric)
        ends = []
        for number, generator in enumerate(np.random.default_rng(seed).spawn(self.starts)):
            initial = generator.normal(size=len(start)) if number else start * scales
            ends.append(self._climb(search, initial, generator))
        mean = normalise(np.mean([normalise(weights) for _, weights in ends], axis=0))
        mixed = (1 - self.prior) * mean + self.prior * normalise(start * scales)
        best = max(ends, key=lambda end: end[0])[1]  # the first of equals
        value, start_value = (evaluate(scaled, metric, w) for w in (mixed, start * scales))
        return (mixed if value >= start_value else best) / scales

    def _climb(self, search, weights, generator):
        """Searches along lines until none improves the figure; returns (figure, weights)."""
        value = evaluate(search.lists, search.metric, weights)
        for _ in range(self.rounds):
            size = len(weights)
            random_directions = generator.normal(size=(self.directions, size))
            previous_value = value
            for direction in np.concatenate([np.eye(size), random_directions]):
                step, figure = search.best_step(weights, direction)
                if figure > value + 1e-9:
                    weights, value = weights + step * direction, figure
                    norm = np.abs(weights).max()
                    weights = weights / norm if norm else weights
            if value <= previous_value + 1e-9:
                break
        return value, weights


class Search:
    """Line searches over n-best lists, in arrays [L, longest list, ...]."""

    def __init__(self, lists: Lists, metric: Metric):
        """Pads features and statistics to [L, longest list, ...]; `missing` marks the padding."""
        self.lists, self.metric = lists, metric
        self.features = lists.padded(lists.features, 0.0)
        self.statistics = lists.padded(lists.statistics, 0.0)
        self.missing = lists.padded(np.ones(len(lists.features), bool), False) == 0

    def best_step(self, weights: np.ndarray, direction: np.ndarray) -> tuple[float, float]:
        """Finds the x for which weights w + x d are best; returns (x, figure, larger is better)."""
        intercepts = np.where(self.missing, -np.inf, self.features @ weights)
        slopes = np.where(self.missing, -np.inf, self.features @ direction)
        first, corners, rows, following, previous = envelopes(slopes, intercepts)
        lists = np.arange(len(first))
        order = np.argsort(corners, kind="stable")
        changes = self.statistics[rows, following] - self.statistics[rows, previous]
        sums = self.statistics[lists, first].sum(0) + np.concatenate(
            [np.zeros((1, changes.shape[1])), np.cumsum(changes[order], axis=0)]
        )
        figures = self.metric.sign * self.metric.figure(sums)
        bounds = np.concatenate([[-np.inf], corners[order], [np.inf]])
        steps, widths = _middles(bounds)
        # Corners that coincide leave no interval between them.
        figures = np.where(widths > 0, figures, -np.inf)
        candidates = np.flatnonzero(figures >= max(figures) - 1e-12)
        # Of intervals equally good the widest, then the one nearest to x = 0.
        widest = min(candidates, key=lambda n: (-widths[n], abs(steps[n])))
        return float(steps[widest]), float(figures[widest])


def envelopes(slopes: np.ndarray, intercepts: np.ndarray):
    """Computes the upper envelope of the lines a + x b of each list, from x = -inf to inf.

    Slopes b and intercepts a are [L, longest list], -inf beyond a list's end. Returns the highest
    line at x = -inf of each list, and of each corner its x, list, the line after it and the line
    before it.
    """
    rows = np.arange(len(slopes))
    is_present = np.isfinite(slopes)
    # The least slope is highest far to the left, and of equal ones the highest line everywhere.
    lowest_slope = np.where(is_present, slopes, np.inf).min(1, keepdims=True)
    first = np.where(is_present & (slopes == lowest_slope), intercepts, -np.inf).argmax(1)
    all_corners: list[tuple[np.ndarray, ...]] = []
    current = first.copy()
    while len(rows):
        slope, height = (x[rows, current[rows], None] for x in (slopes, intercepts))
        is_steeper = is_present[rows] & (slopes[rows] > slope)
        with np.errstate(invalid="ignore", divide="ignore"):
            corners = (height - intercepts[rows]) / (slopes[rows] - slope)
        corners = np.where(is_steeper, corners, np.inf)
        nearest = corners.min(1, keepdims=True)
        # Of lines that cross at one corner the steepest is the envelope.
        following = np.where(corners == nearest, slopes[rows], -np.inf).argmax(1)
        continues = is_steeper.any(1)
        rows = rows[continues]
        all_corners.append((nearest[continues, 0], rows, following[continues], current[rows]))
        current[rows] = following[continues]
    return first, *(np.concatenate(part) for part in zip(*all_corners, strict=True))


def _middles(bounds):
    """Returns (a point within, width) of intervals between sorted bounds; infinite widths are 2."""
    lower, upper = bounds[:-1], bounds[1:]
    with np.errstate(invalid="ignore"):
        middles = (lower + upper) / 2
    middles = np.where(np.isinf(lower), upper - 1, np.where(np.isinf(upper), lower + 1, middles))
    middles = np.where(np.isinf(lower) & np.isinf(upper), 0.0, middles)
    return middles, np.where(np.isinf(upper) | np.isinf(lower), 2.0, upper - lower)


# ----------------- batch k-best MIRA (Cherry and Foster 2012, section 2.2 and algorithm 1)
# Hope, fear and the step of the weights: docs/rescoring.md has the equations. Features are divided
# by their standard deviation within lists before, so that C means the same for all of them.
#
# C. Cherry, G. Foster: Batch Tuning Strategies for Statistical Machine Translation, NAACL 2012.

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
      >>> lists.choose(weights).tolist()
      [1, 3]
      >>> metric.figure(lists.statistics[lists.choose(weights)].sum(0)).item()
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
        objective = Objective(lists, metric)
        scaled = dataclasses.replace(lists, features=lists.features / scales)
        initial = objective.best_scale(start * scales)
        limit = objective.value(initial)
        candidates = [initial]
        generators = np.random.default_rng(seed).spawn(len(self.steps))
        for generator, step in zip(generators, self.steps, strict=True):
            candidates += self._epochs(scaled, metric, initial, step, generator)
        allowed = [w for w in candidates if objective.value(w) <= limit]
        figures = np.array([evaluate(scaled, metric, weights) for weights in allowed])
        order = np.argsort(-figures, kind="stable")
        best = allowed[order[0]]
        top = order[: -(-len(order) // 3)]
        mean = np.mean([objective.best_scale(allowed[number]) for number in top], axis=0)
        mixed = (1 - self.prior) * normalise(mean) + self.prior * normalise(initial)
        improves = objective.value(mixed) <= limit and evaluate(scaled, metric, mixed) >= figures[0]
        return (mixed if improves else best) / scales

    def _epochs(self, lists, metric, weights, step, generator):
        """Yields the mean of the weights over each epoch, while MIRA updates them list by list."""
        background = np.ones(lists.statistics.shape[1])
        bounds = lists.starts.tolist()
        for _ in range(self.epochs):
            total = np.zeros_like(weights)
            for index in generator.permutation(len(lists.ids)):
                rows = slice(bounds[index], bounds[index + 1])
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


class Objective:
    """The mean over lists of a structured hinge loss, with one background for all epochs.

        mean_l max_e (w . h(e) - g(e)) - (w . h(o) - g(o)),    o = argmax_e g(e)

    It bounds the gain that is lost by choosing with w. With the hope in place of the best
    hypothesis o, larger weights would make it 0 for any choice.
    """

    def __init__(self, lists: Lists, metric: Metric):
        # Of the first system's hypotheses at most a thousand, as decay by 0.999 leaves.
        """Computes the gain of each hypothesis over the background of the first hypotheses."""
        background = lists.statistics[lists.first_rows()].mean(0) * min(1000, len(lists.ids))
        gains = metric.gain(lists.statistics, background + 1)
        # [L, longest list, F], in standard deviations; [L, longest list], -inf beyond a list's end
        self.features = lists.padded(lists.features / lists.scales(), 0.0)
        self.gains = lists.padded(gains, -np.inf)

    def value(self, weights: np.ndarray) -> float:
        """Returns the loss of weights at the scale in `_SCALES` that makes it least."""
        return float(self._losses_by_scale(weights).min())

    def best_scale(self, weights: np.ndarray) -> np.ndarray:
        """Multiplies weights by the power of 2 that makes the loss least."""
        return weights * _SCALES[self._losses_by_scale(weights).argmin()]

    def _losses_by_scale(self, weights):
        """Returns the loss of weights times each of `_SCALES`."""
        scores = self.features @ weights
        is_present = np.isfinite(self.gains)
        gains = np.where(is_present, self.gains, 0)
        rows = np.arange(len(gains))
        best = self.gains.argmax(1)

        def loss(scale):
            """Returns the mean hinge loss of the weights times a scale."""
            fear = np.where(is_present, scale * scores - gains, -np.inf).max(1)
            return (fear - (scale * scores - gains)[rows, best]).mean()

        return np.array([loss(scale) for scale in _SCALES])


# {value of --method: how weights are tuned}. A method is a class above, or a file, and a line here.
METHODS: dict[str, Any] = {"mira": Mira, "mert": Mert}
