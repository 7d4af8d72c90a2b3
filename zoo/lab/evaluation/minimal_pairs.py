"""Minimal pairs: does the model prefer the good sentence to its ungrammatical twin?

Linzen et al., "Assessing the ability of LSTMs to learn syntax-sensitive dependencies" (2016). Files
have the format of CLAMS (Mueller et al. 2020), of BLiMP (Warstadt et al. 2020), of Marvin and
Linzen (2018), or are tables with a header: docs/scoring.md describes each.
"""

import collections
import dataclasses
import functools
import math
import pathlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from zoo.data.vocabulary import Vocabulary
from zoo.errors import UserError, quote
from zoo.lab.evaluation import item_scores, passport, sentence_scores, significance
from zoo.lab.evaluation.figures import PairAccuracy, PairPassport
from zoo.lab.evaluation.passport import Judgement, Metric
from zoo.lab.evaluation.run import Run
from zoo.lab.evaluation.unknown_words import unknown_notes, unknown_share
from zoo.lab.options import Option
from zoo.lexicon import Lexicon
from zoo.sources import files, items
from zoo.sources.tokens import PLAIN, Reading


class Pair(NamedTuple):
    """A good and a bad sentence that differ in a few words."""

    good: list[str]
    bad: list[str]
    texts: tuple[str, str]
    groups: tuple[str, ...] = ()


class Row(NamedTuple):
    """A pair and its scores, a row of the table of pairs."""

    pair: int
    good: str
    bad: str
    # the sum of log p over the words of the good sentence, nats; NaN where the pair is skipped
    log_prob_good: float
    log_prob_bad: float
    difference: float
    # whether the good sentence is strictly more probable; None where the pair is skipped
    right: bool | None
    missing: str
    field: str = ""
    UID: str = ""


COLUMNS = Row._fields[: -len(items.GROUPS)]


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class PairScores:
    """Log-probabilities of the two sentences of n pairs."""

    good: np.ndarray  # float64 [n], log p of the good sentences, nats; NaN where a pair is skipped
    bad: np.ndarray  # float64 [n], log p of the bad sentences, nats; NaN where a pair is skipped
    scored: np.ndarray  # bool [n], whether each pair was scored
    missing: tuple[tuple[str, ...], ...] = ()
    groups: tuple[tuple[str, ...], ...] = ()  # of each pair, see `Pair`; () if there are none
    equal: tuple[int, ...] = ()  # positions of the pairs of equal sentences, which are left out

    def __repr__(self):
        return f"PairScores({self.right:,} of {self.pairs:,} right, {self.skipped:,} skipped)"

    @property
    def pairs(self) -> int:
        """Number of pairs that were scored."""
        return int(self.scored.sum())

    @property
    def skipped(self) -> int:
        """Number of pairs that were skipped because of an out-of-vocabulary word."""
        return len(self.scored) - self.pairs - len(self.equal)

    @property
    def right(self) -> int:
        """Number of pairs whose good sentence is strictly more probable."""
        return int((self.good > self.bad).sum())

    @property
    def commonest_missing(self) -> list[tuple[str, int]]:
        """(word outside the lexicon, number of pairs skipped because of it), by falling number."""
        return collections.Counter(word for words in self.missing for word in words).most_common()

    def select(self, selection: np.ndarray) -> "PairScores":
        """Returns the scores of some of the pairs, by a mask or their positions."""
        places = np.flatnonzero(selection) if selection.dtype == bool else selection
        equal = np.flatnonzero(np.isin(places, self.equal)).tolist()
        scores = self.good[places], self.bad[places], self.scored[places]
        return PairScores(*scores, equal=tuple(equal))

    def answers(self) -> item_scores.Arrays:
        """Returns for each pair whether the good sentence is more probable, for its passport."""
        return item_scores.from_answers(self.good > self.bad, self.scored)

    def figures(self) -> PairAccuracy:
        """Returns all figures, also of each value of `GROUPS`; NaN without pairs."""
        places: dict[str, dict[str, list[int]]] = {name: {} for name in items.GROUPS}
        for place, values in enumerate(self.groups):
            for name, value in zip(items.GROUPS, values, strict=False):
                if value:
                    places[name].setdefault(value, []).append(place)
        with np.errstate(invalid="ignore"):  # two sentences of probability 0 differ by NaN
            differences = self.good[self.scored] - self.bad[self.scored]
        return PairAccuracy(
            accuracy=self.right / self.pairs if self.pairs else math.nan,
            right=self.right,
            pairs=self.pairs,
            skipped=self.skipped,
            mean_difference=float(differences.mean()) if self.pairs else math.nan,
            equal=len(self.equal) or None,
            interval=significance.binomial_interval(self.right, self.pairs),
            groups={
                name: {
                    value: self.select(np.array(rows)).figures() for value, rows in group.items()
                }
                for name, group in places.items()
                if group
            },
        )


def read(path: str, reading: Reading = PLAIN) -> list[Pair]:
    """Reads the pairs of a file."""
    file, text = files.read(path)
    split = functools.lru_cache(2)(reading.split)  # a sentence may have many twins
    pairs = []
    for number, row in items.read_pairs(file, text):
        sides = next((names for names in items.SIDES if {*names} <= {*row}), items.SIDES[0])
        good, bad = (row.get(name, "") for name in sides)
        words = split(good), split(bad)
        if not all(words):
            raise UserError(
                f"{file}, line {number}: not a pair of sentences: write words for {sides[0]} and "
                f"for {sides[1]}, as in BLiMP."
            )
        groups = tuple(row.get(name, "") for name in items.GROUPS)
        pairs.append(Pair(*words, (good, bad), groups if any(groups) else ()))
    if not pairs:
        raise UserError(f"{file} has no pairs: give a file with sentences.")
    return pairs


def differing_words(good: list[str], bad: list[str]) -> set[str]:
    """Returns the words that one sentence has more often than the other."""
    first, second = collections.Counter(good), collections.Counter(bad)
    return {*(first - second), *(second - first)}


def score_pairs(run: Run, pairs: Sequence[tuple]) -> PairScores:
    """Scores each sentence of each pair by a run, from an empty state, without the boundary."""
    equal = tuple(number for number, pair in enumerate(pairs) if [*pair[0]] == [*pair[1]])
    missing = tuple(missing_words(pair, run.lexicon, run.experiment.vocabulary) for pair in pairs)
    scored = np.array([not words for words in missing], bool)
    scored[list(equal)] = False
    values = np.full((len(pairs), 2), np.nan)
    if scored.any():
        scored_pairs = [pair for pair, chosen in zip(pairs, scored, strict=True) if chosen]
        sentences = [sentence for pair in scored_pairs for sentence in pair[:2]]
        scores = sentence_scores.score(run, sentences, "the minimal pairs")
        values[scored] = scores.word_log_prob.reshape(-1, 2)
    return PairScores(values[:, 0], values[:, 1], scored, missing, equal=equal)


def missing_words(pair: tuple, lexicon: Lexicon, vocabulary: Vocabulary) -> tuple[str, ...]:
    """Returns the unknown words because of which a pair is skipped: those in which its sentences
    differ, or any where the vocabulary refuses unknown words."""
    if [*pair[0]] == [*pair[1]]:
        return ()
    needed = {*pair[0], *pair[1]} if vocabulary.unknown == "refused" else differing_words(*pair[:2])
    words = dict.fromkeys((*pair[0], *pair[1]))
    return tuple(word for word in words if word in needed and not vocabulary.has(word, lexicon))


def describe(path: str, scores: PairScores) -> str:
    """Formats the figures as a line, with groups and the commonest missing words below it."""
    figures = scores.figures()
    lines = [
        f"{path}: accuracy {figures.accuracy:.2%} {significance.percent(figures.interval)} "
        f"({figures.right:,} of {figures.pairs:,} pairs; {figures.skipped:,} skipped for want of a "
        f"word), mean difference {figures.mean_difference:.3f} nats"
    ]
    for name, groups in figures.groups.items():
        lines.append(f"  by {name}:")
        lines += [
            f"    {value}: {group.accuracy:.2%} ({group.right:,} of {group.pairs:,}; "
            f"{group.skipped:,} skipped)"
            for value, group in groups.items()
        ]
    if scores.equal:
        lines.append(
            f"  pairs of equal sentences, left out: {len(scores.equal):,}, the first is pair "
            f"{scores.equal[0] + 1:,}"
        )
    missing = [f"{word!r} ({count:,})" for word, count in scores.commonest_missing[:10]]
    if missing:
        ellipsis = ", ..." if len(scores.commonest_missing) > 10 else ""
        lines.append(f"  missing words, by pairs: {', '.join(missing)}{ellipsis}")
    return "\n".join(lines)


def rows(pairs: list[Pair], scores: PairScores) -> Iterator[Row]:
    """Yields a row for each pair, in the order of the file."""
    log_probs = scores.good.tolist(), scores.bad.tolist()
    for number, (pair, good, bad, scored, missing) in enumerate(
        zip(pairs, *log_probs, scores.scored.tolist(), scores.missing, strict=True), 1
    ):
        right = good > bad if scored else None
        yield Row(
            number, *pair.texts, good, bad, good - bad, right, " ".join(missing), *pair.groups
        )


def passport_of(
    run: Run, path: str, pairs: Sequence[tuple], scores: PairScores, **figures: Any
) -> PairPassport:
    """Makes the passport of an accuracy on minimal pairs; `figures` are those besides its own."""
    return PairPassport(
        kind="minimal pairs",
        split=f"pairs:{pathlib.PurePath(path).name}",
        figures=dataclasses.replace(scores.figures(), **figures),
        tokens=scores.pairs,
        counts=(
            "pairs whose differing words are in the lexicon; right if the sum of log p over the "
            "words, boundary not counted, is higher for the good sentence"
        ),
        data=passport.data_of(path, [sentence for pair in pairs for sentence in pair[:2]]),
        **passport.sentence_fields(run, [good for good, *_ in pairs]),
    )


def judge(run: Run, paths: Iterable[str]) -> Iterator[Judgement]:
    """Judges a run on the pairs of files; see `score_pairs`."""
    for path in paths:
        pairs = read(path, run.reading)
        scores = score_pairs(run, pairs)
        _check(path, scores)
        scores = dataclasses.replace(scores, groups=tuple(pair.groups for pair in pairs))
        record = passport_of(run, path, pairs, scores)
        sentences = [sentence for pair in pairs for sentence in pair[:2]]
        yield Judgement(
            run,
            record,
            describe(path, scores),
            scores.answers(),
            rows=[*rows(pairs, scores)],
            columns=Row._fields if any(scores.groups) else COLUMNS,
            notes=[*unknown_notes(run, sentences), unknown_share(run, sentences, path)],
            warnings=passport.warnings(record.leak),
        )


def _check(path, scores):
    """Raises UserError where no pair of a file is scored."""
    if not scores.pairs and not scores.skipped:
        raise UserError(
            f"all pairs of {path} have two equal sentences: give pairs of sentences that differ."
        )
    if not scores.pairs:
        raise UserError(
            f"no pair of {path} can be scored, for want of words in the lexicon such as "
            f"{quote([word for word, _ in scores.commonest_missing])}: give sentences of the words "
            "that the run was trained with, or --add-words FILE with these."
        )


class MinimalPairs(Metric):
    """The accuracy on minimal pairs."""

    options = (
        Option(
            "--minimal-pairs FILE ...",
            "minimal pairs in the format of CLAMS, BLiMP, or Marvin and Linzen, instead of splits "
            "unless --split is given",
        ),
    )

    def judge(self, run, arguments):
        return judge(run, arguments.minimal_pairs)
