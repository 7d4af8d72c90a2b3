"""Runs side by side: figures of one quantity in columns, runs of one recipe in groups, in order."""

import math
import os
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from zoo.comparison import paired, seeds
from zoo.comparison.paired import Runs
from zoo.errors import UserError
from zoo.evaluation import leakage, records
from zoo.evaluation.perplexity import perplexity_of
from zoo.evaluation.results import (
    Column,
    check_comparable,
    columns_of,
    judged_texts,
    names_of,
    read_results,
)
from zoo.evaluation.run import short_names

Group = tuple[str, ...]


class Ranking(NamedTuple):
    """Perplexities of runs."""

    runs: Mapping[str, dict[Column, dict]]
    columns: Mapping[Column, dict[str, dict]]
    names: Mapping[Column, str]
    ranked: list[Group]
    others: list[Group]
    called: Mapping[Group, str]
    figures: Mapping[tuple[Column, Group], Runs | None]

    @property
    def first(self) -> Column:
        """The column that ranks."""
        return next(iter(self.columns))

    def passports(self, column: Column, group: Group) -> list[dict]:
        """Returns the passports of a group in a column."""
        of_column = self.columns[column]
        return [of_column[name] for name in group if name in of_column]


class Row(NamedTuple):
    """The figures of a group of runs on one text."""

    run: str
    seeds: int
    head: str
    parameters: int
    text: str
    state: str
    over: str
    tokens: int
    log_perplexity: float  # nats per token, the mean of the runs
    # lower end of its 95 % interval by bootstrap over sentences; NaN where the scores of single
    # words were not kept
    low: float
    high: float
    perplexity: float
    seen: bool
    # nats per token above the first row of the text; NaN for that row itself, and where the scores
    # of single words were not kept or are of other tokens
    above: float = math.nan
    above_low: float = math.nan
    above_high: float = math.nan
    p: float = math.nan
    # by Welch's test between seeds; NaN where one of the two has one run
    p_of_seeds: float = math.nan


class Wanted(NamedTuple):
    """Which results are compared."""

    texts: Container[str] | None = None  # the SHA-256 of texts and questions; None for all
    splits: Sequence[str] = ()

    def has(self, split: str, digest: str) -> bool:
        """Whether a result is compared."""
        of_text = self.texts is None or digest in self.texts
        return of_text and (not self.splits or split in self.splits)


ALL = Wanted()


def rank(short: Mapping[str, str], wanted: Wanted = ALL) -> Ranking:
    """Reads, checks and orders the perplexities of runs."""
    runs = {
        short[folder]: {
            column: passport
            for column, passport in results.items()
            if wanted.has(column.split, passport["data"]["sha256"])
        }
        for folder, results in read_results(short).items()
    }
    for folder, name in short.items():
        if not runs[name]:
            there = ", ".join(sorted({split for split, _ in judged_texts(folder)}))
            raise UserError(
                f"{name} has no perplexity on {' or '.join(wanted.splits)}, only on {there}: "
                "evaluate it there, or leave it out."
            )
    columns = columns_of(runs)
    for passports in columns.values():
        (first_name, first), *others = passports.items()
        for name, passport in others:
            check_comparable(first, passport, (first_name, name))
    order = sorted(columns, key=lambda column: _place(columns[column]))
    ranking = columns[order[0]]
    nothing_unseen = not any_unseen(ranking)
    seen = {
        name
        for name in runs
        if nothing_unseen or (name in ranking and leakage.reason(ranking[name]) is not None)
    }
    groups = seeds.grouped([name for name in runs if name not in seen], runs)
    alone: list[Group] = [(name,) for name in runs if name in seen]
    called = seeds.names_of(groups + alone)
    figures = {
        (column, group): seeds.runs_of(group, columns[column], called[group])
        for column in order
        for group in groups + alone
    }
    for rows in (groups, alone):
        rows.sort(key=lambda group: _loss(figures[order[0], group]))
    ordered = {column: columns[column] for column in order}
    return Ranking(runs, ordered, names_of(order), groups, alone, called, figures)


def compare(folders: Iterable[str | os.PathLike[str]]) -> list[Row]:
    """Compares the perplexities of evaluated runs; `zoo compare` prints the same with tests.

    Args:
      folders: of runs, or records of runs (`zoo.evaluation.records`).

    Returns:
      A row for each text and run, those of the lowest log-perplexity first. Runs that differ in
      their seed alone are one row.

    Raises:
      UserError: a run has no perplexities, or their figures are not of the same quantity.
    """
    every = records.expanded([os.fspath(folder) for folder in folders])
    ranking = rank(dict(zip(every, short_names(every), strict=True)))
    rows = []
    for column in ranking.columns:
        groups = [*ranking.ranked, *ranking.others]
        found = {
            group: runs for group in groups if (runs := ranking.figures[column, group]) is not None
        }
        order = sorted(found, key=lambda group: (group in ranking.others, found[group].loss))
        for group in order:
            row = _row(ranking, column, group, found[group])
            rows.append(row._replace(**_above(found[order[0]], found[group])))
    return rows


def _above(lowest: Runs, runs: Runs) -> dict[str, float]:
    """Returns the fields of a row on its difference from the first; {} where it has no test."""
    one, other = lowest.statistics, runs.statistics
    if runs is lowest or not (one and other):
        return {}
    if not np.array_equal(lowest.mean_statistics[:, 1], runs.mean_statistics[:, 1]):
        return {}
    found = paired.difference(lowest, runs)
    if found is None:
        return {}
    low, high = found.interval
    return {
        "above": found.nats,
        "above_low": low,
        "above_high": high,
        "p": found.p,
        "p_of_seeds": found.p_of_seeds,
    }


def _row(ranking, column, group, runs):
    passports = ranking.passports(column, group)
    low, high = runs.interval
    return Row(
        ranking.called[group],
        len(passports),
        passports[0]["head"].partition("(")[0],
        passports[0]["parameters"],
        column.split,
        column.state,
        column.over,
        passports[0]["tokens"],
        runs.loss,
        low,
        high,
        perplexity(runs, passports),
        any(leakage.reason(passport) is not None for passport in passports),
    )


def perplexity(runs: Runs, passports: list[dict]) -> float:
    """Returns the perplexity of a single passport, or exp of the mean loss of several."""
    if len(passports) == 1:
        return float(passports[0]["figures"]["perplexity"])
    return perplexity_of(runs.loss)


def any_unseen(passports: Mapping[str, dict]) -> bool:
    """Whether some run never saw the text, as far as is recorded."""
    return any(leakage.reason(passport) is None for passport in passports.values())


def _place(passports):
    """Returns the sort key of a column: columns of more runs come first.

    Among these come first the texts that some run never saw, in its training or in choosing its
    checkpoint.
    """
    return -len(passports), not any_unseen(passports)


def _loss(runs: Runs | None) -> float:
    """Returns the log-perplexity that ranks runs; infinite if it is missing or not a number."""
    value = runs.loss if runs else math.inf
    return math.inf if math.isnan(value) else value
