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


@dataclasses.dataclass(frozen=True, eq=False)
class GroupLosses:
    """Runs that differ in their seed at most, on one text."""

    name: str
    losses: tuple[float, ...]  # the log-perplexity of each, nats per token
    # of the sentences by each run, float64 [L, 2], see `item_scores.statistics`; () where not all
    # are kept
    statistics: tuple[np.ndarray, ...] = ()
    # the 95 % interval of a single run in a record without its scores; NaN twice without any
    recorded_interval: tuple[float, float] = (math.nan, math.nan)

    @property
    def loss(self) -> float:
        return float(np.mean(self.losses))

    @functools.cached_property
    def mean_statistics(self) -> np.ndarray:
        """Statistics whose figure is the mean of the runs' log-perplexities, [L, 2]."""
        return np.mean(self.statistics, axis=0)

    @functools.cached_property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the loss by bootstrap over sentences; NaN twice without any."""
        if not self.statistics:
            return self.recorded_interval
        return item_scores.interval(self.mean_statistics, self.loss)

    @property
    def loss_range(self) -> tuple[float, float]:
        return min(self.losses), max(self.losses)

    def format_spread(self) -> str:
        """Formats the range of several seeds, or the interval of a single run; "" without one."""
        low, high = self.loss_range
        if len(self.losses) > 1:
            return f" ({low:.4f} to {high:.4f} of {len(self.losses)})"
        low, high = self.interval
        return "" if math.isnan(low) else f" [{low:.4f}, {high:.4f}]"


def contrasts(names: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Returns the pairs to compare: the first name with each other, and each with its successor."""
    first = [(names[0], name) for name in names[1:]]
    return first + list(itertools.pairwise(names[1:]))


def loss_lines(groups: Sequence[GroupLosses]) -> list[str]:
    """Returns a line for each of the `contrasts` of runs with kept scores, by rising loss."""
    kept = sorted((runs for runs in groups if runs.statistics), key=lambda runs: runs.loss)
    without = [runs.name for runs in groups if not runs.statistics]
    missing = [f"  no scores of single words are kept of {', '.join(without)}"]
    missing *= bool(without and kept)
    if len(kept) < 2:
        several = [runs for runs in groups if len(runs.losses) > 1]
        several.sort(key=lambda runs: runs.loss)
        if len(several) < 2:
            return missing
        return [_seeds_line(one, other) for one, other in contrasts(several)] + missing
    lines = [_loss_line(one, other) for one, other in contrasts(kept)]
    single = any(len(runs.losses) == 1 for runs in kept)
    return lines + ["  one seed does not show the noise of training"] * single + missing


class Difference(NamedTuple):
    """The difference between two groups of runs, and the tests of it."""

    nats: float
    interval: tuple[float, float]
    sentences: int
    p: float
    p_of_seeds: float  # by Welch's test of the seeds; NaN where a group has one run

    @property
    def is_tie(self) -> bool:
        """Whether sentences do not tell the groups apart."""
        return self.p >= significance.LEVEL

    @property
    def is_undecided(self) -> bool:
        """Whether sentences tell the groups apart, and seeds do not."""
        # NaN, of a single seed, is not above the level.
        return not self.is_tie and self.p_of_seeds >= significance.LEVEL


def compare_losses(one: GroupLosses, other: GroupLosses) -> Difference | None:
    if not (one.statistics and other.statistics and same_token_counts(one, other)):
        return None
    statistics = one.mean_statistics, other.mean_statistics
    p = significance.paired_test(*statistics, item_scores.log_perplexity)
    if math.isnan(p):
        return None
    return Difference(
        other.loss - one.loss,
        significance.bootstrap_interval(np.concatenate(statistics, 1), _loss_difference),
        len(statistics[0]),
        1.0 if _same_up_to_rounding(one, other) else p,
        significance.seeds_test([*one.losses], [*other.losses]),
    )


def _same_up_to_rounding(one: GroupLosses, other: GroupLosses) -> bool:
    """Whether no sentence differs by more than one step of the rounding of saved scores a token."""
    (first, tokens), (second, _) = one.mean_statistics.T, other.mean_statistics.T
    return bool((np.abs(first - second) <= tokens / item_scores.PARTS + 1e-9).all())


def same_token_counts(one: GroupLosses, other: GroupLosses) -> bool:
    """Whether the kept scores of two groups count as many tokens in each sentence."""
    return np.array_equal(one.mean_statistics[:, 1], other.mean_statistics[:, 1])


def _loss_line(one, other):
    if not same_token_counts(one, other):
        return f"  {one.name} and {other.name} count other tokens"
    found = compare_losses(one, other)
    if found is None:
        return f"  {one.name} and {other.name} have no finite figures to be tested"
    low, high = found.interval
    how = f"{format_p(found.p)} by {found.sentences:,} sentences"
    if not math.isnan(found.p_of_seeds):
        seeds = f"{len(one.losses)} and {len(other.losses)} seeds"
        how += f", {format_p(found.p_of_seeds).removeprefix('p = ')} by {seeds}"
    how = "the same up to the rounding of saved scores, " * _same_up_to_rounding(one, other) + how
    between = f"{found.nats:.4f} [{low:z.4f}, {high:z.4f}] nats"
    return _loss_verdict(one, other, between, how, found.is_tie, found.is_undecided)


def _loss_verdict(one, other, between, how, is_tie, is_undecided=False):
    """Tells that one group is below another, unless they are a tie or undecided."""
    if is_tie or is_undecided:
        verdict = "undecided" if is_undecided else "a tie"
        return f"  {one.name} and {other.name}: {verdict}, {between} apart ({how})"
    return f"  {one.name} is below {other.name} by {between} ({how})"


def format_p(p: float) -> str:
    """Formats a p to three decimals. A thousand random exchanges give 1 / 1,001 at least."""
    return f"p = {p:.3f}" if p >= 0.001 else "p < 0.001"


def _seeds_line(one, other):
    p = significance.seeds_test([*one.losses], [*other.losses])
    how = f"{format_p(p)} by {len(one.losses)} and {len(other.losses)} seeds"
    return _loss_verdict(
        one, other, f"{other.loss - one.loss:.4f} nats", how, not p < significance.LEVEL
    )


def _loss_difference(sums):
    return item_scores.log_perplexity(sums[..., 2:]) - item_scores.log_perplexity(sums[..., :2])


def answer_lines(
    title: str, of_runs: Mapping[str, tuple[dict, item_scores.Arrays | None]]
) -> list[str]:
    """Returns the lines of McNemar's exact test for runs that answered the same questions."""
    texts: dict = {}
    for name, (record, arrays) in of_runs.items():
        if arrays is not None:
            answers = np.asarray(arrays["right"])
            texts.setdefault((record["data"]["sha256"], len(answers)), {})[name] = answers
    lines = []
    for answers_of in texts.values():
        order = sorted(answers_of, key=lambda name: -_accuracy(answers_of[name]))
        if len(order) > 1:
            lines += [f"{title}, questions that both of two runs were asked:"]
            lines += [
                _answer_line(pair, [answers_of[name] for name in pair]) for pair in contrasts(order)
            ]
    return lines


def accuracy_lines(of_groups: Mapping[str, Sequence[float]]) -> list[str]:
    """Returns the lines of Welch's test of accuracies by seeds, of groups of two runs or more."""
    several = {name: shares for name, shares in of_groups.items() if len(shares) > 1}
    means = {name: float(np.mean(shares)) for name, shares in several.items()}
    order = sorted(several, key=lambda name: -means[name])
    if len(order) < 2:
        return []
    lines = [_accuracy_line(pair, means, several) for pair in contrasts(order)]
    return ["of all seeds:", *lines]


def _accuracy_line(names, means, several):
    one, other = names
    p = significance.seeds_test([*several[one]], [*several[other]])
    how = f"{means[one]:.2%} and {means[other]:.2%}, {format_p(p)} by {len(several[one])} and "
    how += f"{len(several[other])} seeds"
    return _accuracy_verdict(one, other, how, p)


def _accuracy_verdict(better, worse, how, p):
    """Tells that the answers of one are right more often, unless they are a tie."""
    if not p < significance.LEVEL:  # nor is NaN
        return f"  {better} and {worse}: a tie ({how})"
    return f"  {better} is above {worse} ({how})"


def _accuracy(answers):
    asked = answers != item_scores.SKIPPED
    return float((answers[asked] == 1).mean()) if asked.any() else 0.0


def _answer_line(names, answers):
    both = (answers[0] != item_scores.SKIPPED) & (answers[1] != item_scores.SKIPPED)
    one, other = (of_run[both] == 1 for of_run in answers)
    alone = int((one & ~other).sum()), int((other & ~one).sum())
    p = significance.mcnemar_test(*alone)
    how = f"{alone[0]:,} and {alone[1]:,} of {int(both.sum()):,} right alone, p = {p:.3g}"
    turned = p < significance.LEVEL and alone[0] < alone[1]
    better, worse = names[::-1] if turned else names
    return _accuracy_verdict(better, worse, how, p)
