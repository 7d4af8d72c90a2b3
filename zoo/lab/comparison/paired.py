"""Tests of the differences between runs that were judged on the same text or questions.

A difference is reported where the tests have p < `significance.LEVEL`. Tests exchange sentences, or
count the questions that one run alone has right: they show how the figures would vary from text to
text, and runs that they do not tell apart are a tie. Only runs of several seeds show how figures
vary from training to training. Where sentences tell two recipes apart and seeds do not, the
difference is undecided: few seeds tell little.
"""

import dataclasses
import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from zoo.lab.evaluation import item_scores, significance
from zoo.lab.evaluation.figures import AccuracyPassport


@dataclasses.dataclass(frozen=True, eq=False)
class GroupLosses:
    """Log-perplexities on one text of runs that differ in their seed alone."""

    name: str
    losses: tuple[float, ...]  # the log-perplexity of each, nats per token
    # of the sentences by each run, float64 [L, 2], see `item_scores.statistics`; () where not all
    # are kept
    statistics: tuple[np.ndarray, ...] = ()
    # the 95 % interval of a single run in a record without its scores; NaN twice without any
    recorded_interval: tuple[float, float] = (math.nan, math.nan)
    passports: Sequence[Any] = ()

    @classmethod
    def from_statistics(
        cls, name: str, losses: tuple[float, ...], statistics: list[np.ndarray], *fields: Any
    ) -> "GroupLosses":
        """Makes a group's losses; drops statistics unless all runs have some, of one shape."""
        complete = len(statistics) == len(losses) and len({part.shape for part in statistics}) == 1
        return cls(name, losses, tuple(statistics) if complete else (), *fields)

    @property
    def loss(self) -> float:
        """The mean log-perplexity of the runs, nats per token."""
        return float(np.mean(self.losses))

    @functools.cached_property
    def mean_statistics(self) -> np.ndarray:
        """Statistics whose figure is the mean of the runs' log-perplexities, [L, 2]."""
        return np.mean(self.statistics, axis=0)

    @functools.cached_property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the loss by bootstrap over sentences, or else the recorded interval;
        NaN twice without either."""
        if not self.statistics:
            return self.recorded_interval
        return item_scores.interval(self.mean_statistics, self.loss)

    @property
    def loss_range(self) -> tuple[float, float]:
        """The least and the greatest log-perplexity of the runs."""
        return min(self.losses), max(self.losses)


def contrasts(names: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Returns the pairs to compare: the first name with each other, and each with its successor."""
    return [*((names[0], name) for name in names[1:]), *itertools.pairwise(names[1:])]


def loss_lines(groups: Sequence[GroupLosses]) -> list[str]:
    """Describes tests between `contrasts` of groups, by rising loss: by sentences, or, if fewer
    than two have saved scores, by seeds."""
    without_scores = [group.name for group in groups if not group.statistics]
    groups = sorted(groups, key=lambda group: group.loss)
    testable = [group for group in groups if group.statistics]
    missing = []
    if without_scores and testable:
        missing = [f"  no scores of single words are kept of {', '.join(without_scores)}"]
    if len(testable) < 2:
        with_seeds = [group for group in groups if len(group.losses) > 1]
        return [_seeds_line(*pair) for pair in contrasts(with_seeds)] + missing
    lines = [_loss_line(*pair) for pair in contrasts(testable)]
    if any(len(group.losses) == 1 for group in testable):
        lines.append("  one seed does not show the noise of training")
    return lines + missing


class Difference(NamedTuple):
    """The difference between two groups of runs, and the tests of it."""

    nats: float
    interval: tuple[float, float]
    sentences: int
    p: float
    p_of_seeds: float  # by Welch's test of the seeds; NaN where a group has one run
    # no sentence differs by more than one step of the rounding of saved scores a token
    is_rounding: bool = False

    @property
    def verdict(self) -> str:
        """ "a tie" if sentences do not tell the groups apart, "undecided" if seeds alone do not, or
        ""."""
        return verdict(self.p, self.p_of_seeds)


def verdict(p: float, p_of_seeds: float = math.nan) -> str:
    """Returns "a tie" if a test does not tell two groups apart, "undecided" if a test of their
    seeds alone does not, or "" if both do."""
    if not p < significance.LEVEL:  # nor is NaN
        return "a tie"
    return "undecided" if p_of_seeds >= significance.LEVEL else ""


def _verdict_line(better, worse, relation, verdict, evidence, gap=""):
    """Describes that a group is below or above another by a gap, or that this is not decided."""
    if verdict:
        return f"  {better} and {worse}: {verdict}{gap and f', {gap} apart'} ({evidence})"
    return f"  {better} is {relation} {worse}{gap and f' by {gap}'} ({evidence})"


def compare_losses(baseline: GroupLosses, candidate: GroupLosses) -> Difference | None:
    """Tests the candidate's loss minus the baseline's; None without saved scores of the same
    tokens, or if p is NaN."""
    if not (baseline.statistics and candidate.statistics):
        return None
    statistics = baseline.mean_statistics, candidate.mean_statistics
    (first, tokens), (second, other_tokens) = (group.T for group in statistics)
    if not np.array_equal(tokens, other_tokens):
        return None
    p = significance.paired_test(*statistics, item_scores.log_perplexity)
    if math.isnan(p):
        return None
    is_rounding = bool((np.abs(first - second) <= tokens / item_scores.PARTS + 1e-9).all())
    interval = significance.bootstrap_interval(
        np.concatenate(statistics, 1),
        lambda sums: (
            item_scores.log_perplexity(sums[..., 2:]) - item_scores.log_perplexity(sums[..., :2])
        ),
    )
    p_of_seeds = significance.seeds_test(baseline.losses, candidate.losses)
    nats, p = candidate.loss - baseline.loss, 1.0 if is_rounding else p
    return Difference(nats, interval, len(first), p, p_of_seeds, is_rounding)


def _loss_line(lower, higher):
    """Returns the line of the tests of two groups with saved scores, the lower loss first, or why
    they cannot be tested."""
    difference = compare_losses(lower, higher)
    if difference is None:
        tokens = (group.mean_statistics[:, 1] for group in (lower, higher))
        is_infinite = np.array_equal(*tokens)
        reason = "have no finite figures to be tested" if is_infinite else "count other tokens"
        return f"  {lower.name} and {higher.name} {reason}"
    low, high = difference.interval
    evidence = f"{format_p(difference.p)} by {difference.sentences:,} sentences"
    if not math.isnan(difference.p_of_seeds):
        evidence += f", {_describe_seeds(lower.losses, higher.losses).removeprefix('p = ')}"
    if difference.is_rounding:
        evidence = f"the same up to the rounding of saved scores, {evidence}"
    gap = f"{difference.nats:.4f} [{low:z.4f}, {high:z.4f}] nats"
    return _verdict_line(lower.name, higher.name, "below", difference.verdict, evidence, gap)


def format_p(p: float) -> str:
    """Formats a p-value as "p = 0.012", or "p < 0.001"."""
    return f"p = {p:.3f}" if p >= 0.001 else "p < 0.001"


def _describe_seeds(first, second):
    """Describes Welch's test of the figures of two groups' seeds."""
    p = significance.seeds_test(first, second)
    return f"{format_p(p)} by {len(first)} and {len(second)} seeds"


def _seeds_line(lower, higher):
    """Returns the line of Welch's test of two groups' losses, the lower loss first."""
    losses = lower.losses, higher.losses
    evidence, gap = _describe_seeds(*losses), f"{higher.loss - lower.loss:.4f} nats"
    decision = verdict(significance.seeds_test(*losses))
    return _verdict_line(lower.name, higher.name, "below", decision, evidence, gap)


def answer_lines(title: str, passports: Mapping[str, AccuracyPassport]) -> list[str]:
    """Describes McNemar's tests between `contrasts` of runs with the same questions; runs without
    saved answers are left out."""
    texts: dict = {}
    for name, passport in passports.items():
        arrays = item_scores.read(passport)
        if arrays is not None:
            answers = np.asarray(arrays["right"])
            texts.setdefault((passport.data.sha256, len(answers)), {})[name] = answers
    lines = []
    for answers_by_run in texts.values():
        order = sorted(answers_by_run, key=lambda name: -_accuracy(answers_by_run[name]))
        if len(order) > 1:
            lines += [f"{title}, questions that both of two runs were asked:"]
            lines += [_answer_line(pair, answers_by_run) for pair in contrasts(order)]
    return lines


def accuracy_lines(accuracies_by_group: Mapping[str, Sequence[float]]) -> list[str]:
    """Describes Welch's tests between `contrasts` of groups, from {group: accuracies of its seeds};
    groups of one seed are left out."""
    groups = {name: seeds for name, seeds in accuracies_by_group.items() if len(seeds) > 1}
    means = {name: float(np.mean(seeds)) for name, seeds in groups.items()}
    lines = []
    for better, worse in contrasts(sorted(groups, key=lambda name: -means[name])):
        accuracies = groups[better], groups[worse]
        decision = verdict(significance.seeds_test(*accuracies))
        evidence = f"{means[better]:.2%} and {means[worse]:.2%}, {_describe_seeds(*accuracies)}"
        lines.append(_verdict_line(better, worse, "above", decision, evidence))
    return ["of all seeds:", *lines] if lines else []


def _accuracy(answers):
    """Computes the share of right answers among those not skipped; 0 if all were."""
    is_answered = answers != item_scores.SKIPPED
    return float((answers[is_answered] == 1).mean()) if is_answered.any() else 0.0


def _answer_line(names, answers_by_run):
    """Returns the line of McNemar's test of two runs on the questions that both answered."""
    answers = np.stack([answers_by_run[name] for name in names])
    first, second = answers[:, (answers != item_scores.SKIPPED).all(0)] == 1
    first_alone, second_alone = int((first & ~second).sum()), int((second & ~first).sum())
    p = significance.mcnemar_test(first_alone, second_alone)
    evidence = f"{first_alone:,} and {second_alone:,} of {len(first):,} right alone, p = {p:.3g}"
    swapped = p < significance.LEVEL and first_alone < second_alone
    better, worse = names[::-1] if swapped else names
    return _verdict_line(better, worse, "above", verdict(p), evidence)
