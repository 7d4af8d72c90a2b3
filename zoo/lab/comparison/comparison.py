"""Runs side by side: comparable figures in columns, and the seeds of a recipe in groups.

`zoo compare` prints them (`text_report`), draws them (`bar_plots`, `learning_curves`,
`sweep`) and writes them as a page (`page_report`).
"""

import dataclasses
import functools
import math
import os
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from zoo.errors import UserError
from zoo.lab.comparison import paired, seeds
from zoo.lab.comparison.paired import GroupLosses
from zoo.lab.evaluation import item_scores, leakage, records
from zoo.lab.evaluation.perplexity import perplexity_of
from zoo.lab.evaluation.results import (
    Column,
    check_comparable,
    columns_of,
    judged_texts,
    names_of,
    quantity,
    read_results,
    recipe_of,
)
from zoo.lab.evaluation.run import Run, short_names


class Group(NamedTuple):
    """Runs that differ in their seed alone."""

    name: str
    number: int  # of its colour and its mark
    runs: tuple[str, ...]

    def select(self, of_runs: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the part of {run: value} that belongs to its runs."""
        return {run: of_runs[run] for run in self.runs if run in of_runs}


@dataclasses.dataclass(frozen=True, eq=False)
class Comparison:
    paths: Mapping[str, str]  # {short name: folder, export, or name in a record}
    load: Callable[[str], Run] = Run.load

    @classmethod
    def from_paths(
        cls, workdirs: Iterable[str], labels: Sequence[str] = (), **how: Any
    ) -> "Comparison":
        """Names runs, by labels of their recipes if any; a record stands for all of its runs."""
        every = records.expand(workdirs)
        runs = cls(dict(zip(short_names(every), every, strict=True)), **how)
        if not labels:
            return runs
        names = seeds.label_runs([group.runs for group in runs.groups], labels)
        return cls({names[run]: path for run, path in runs.paths.items()}, **how)

    @functools.cached_property
    def results(self) -> dict[str, dict[Column, dict]]:
        """{run: {column: passport}}; raises UserError where a run has none."""
        found = read_results(self.paths.values())
        return {name: found[path] for name, path in self.paths.items()}

    @functools.cached_property
    def available_results(self) -> tuple[dict[str, dict[Column, dict]], dict[str, str]]:
        """(The results of the runs that have any, {run: why it has none})."""
        return _read_each(self.paths, lambda path: read_results([path])[path])

    @functools.cached_property
    def available_runs(self) -> tuple[dict[str, Run], dict[str, str]]:
        """(The recipe, words and parameters of the runs, {run: why they cannot be read})."""
        return _read_each(self.paths, self._load_run)

    def _load_run(self, path: str) -> Run:
        if records.is_record(path):
            raise UserError("a record keeps results alone: give the run's folder to see this.")
        return self.load(path)

    @functools.cached_property
    def recipes(self) -> dict[str, dict]:
        """{run: its experiment as JSON, {} where it is not known}."""
        return {name: recipe_of(path) for name, path in self.paths.items()}

    @functools.cached_property
    def groups(self) -> list[Group]:
        groups = seeds.group_by_recipe({name: self.run_key(name) for name in self.paths})
        return self.make_groups(groups, seeds.name_groups(groups))

    def make_groups(self, groups: Sequence[tuple[str, ...]], names: Sequence[str]) -> list[Group]:
        """Gives groups of runs their names and numbers; a head has its number in every picture."""
        heads = [seeds.head_name(self.recipes[runs[0]]) for runs in groups]
        numbers = seeds.number_recipes(names, heads)
        return [Group(*one) for one in zip(names, numbers, groups, strict=True)]

    def is_translator(self, run: str) -> bool:
        """Whether a run is an encoder-decoder."""
        return "source_embedding" in (self.recipes[run].get("model") or ())

    def run_key(self, run: str, passport: dict | None = None) -> tuple[str, Any]:
        """Returns (the recipe of a run but for its seed, "" if it is not known; the seed)."""
        recipe = self.recipes[run]
        return seeds.recipe_key(recipe) if recipe else seeds.passport_key(passport or {})


def _read_each(paths, read):
    """Reads all paths; returns ({name: value}, {name: why it cannot be read})."""
    found, left_out = {}, {}
    for name, path in paths.items():
        try:
            found[name] = read(path)
        except UserError as error:
            left_out[name] = str(error)
    return found, left_out


def comparable_columns(runs: Mapping[str, dict[Column, dict]]) -> dict[Column, dict[str, dict]]:
    """Returns {column: {run: passport}}, whose figures are of one quantity each."""
    found = columns_of({**runs})
    for passports in found.values():
        (first_name, first), *others = passports.items()
        for name, passport in others:
            check_comparable(first, passport, (first_name, name))
    return found


def read_losses(group: Group, passports: Mapping[str, dict]) -> GroupLosses | None:
    """Returns a group's figures on one text, with the scores that are kept; None without any."""
    there = [*group.select(passports).values()]
    if not there:
        return None
    losses = tuple(float(passport["figures"]["log_perplexity"]) for passport in there)
    kept = [passport["place"].read_scores(passport) for passport in there]
    statistics = tuple(item_scores.statistics(arrays) for arrays in kept if arrays is not None)
    alike = len({one.shape for one in statistics}) == 1
    whole = len(statistics) == len(there) and alike
    recorded = there[0]["figures"].get("interval") if len(there) == 1 else None
    low, high = map(float, recorded or (math.nan, math.nan))
    return GroupLosses(group.name, losses, statistics if whole else (), (low, high))


class TextFilter(NamedTuple):
    texts: Container[str] | None = None  # the SHA-256 of texts and questions; None for all
    splits: Sequence[str] = ()

    def accepts(self, split: str, digest: str) -> bool:
        of_text = self.texts is None or digest in self.texts
        return of_text and (not self.splits or split in self.splits)


ALL_TEXTS = TextFilter()


class Ranking(NamedTuple):
    """Perplexities of runs, those of the lowest on the first column first."""

    runs: Mapping[str, dict[Column, dict]]
    columns: Mapping[Column, dict[str, dict]]
    names: Mapping[Column, str]
    ranked: list[Group]
    unranked: list[Group]
    losses: Mapping[tuple[Column, Group], GroupLosses | None]

    @property
    def ranking_column(self) -> Column:
        """The column that ranks."""
        return next(iter(self.columns))

    def passports(self, column: Column, group: Group) -> list[dict]:
        return [*group.select(self.columns[column]).values()]


def rank(comparison: Comparison, wanted: TextFilter = ALL_TEXTS) -> Ranking:
    """Orders the perplexities of runs; a run that has seen the text stands apart."""
    runs = {
        name: {
            column: passport
            for column, passport in results.items()
            if wanted.accepts(column.split, passport["data"]["sha256"])
        }
        for name, results in comparison.results.items()
    }
    for name, path in comparison.paths.items():
        if not runs[name]:
            there = ", ".join(sorted({split for split, _ in judged_texts(path)}))
            raise UserError(
                f"{name} has no perplexity on {' or '.join(wanted.splits)}, only on {there}: "
                "evaluate it there, or leave it out."
            )
    found = comparable_columns(runs)
    # Columns of more runs come first, and of these the texts that some run never saw.
    order = sorted(found, key=lambda one: (-len(found[one]), not any_unseen(found[one])))
    first = found[order[0]]
    nothing_unseen = not any_unseen(first)
    seen = {
        name
        for name in runs
        if nothing_unseen or (name in first and leakage.reason(first[name]) is not None)
    }
    keys = {
        name: comparison.run_key(name, next(iter(results.values())))
        for name, results in runs.items()
        if name not in seen
    }
    count = len(groups := seeds.group_by_recipe(keys))
    groups += [(name,) for name in runs if name in seen]
    every = comparison.make_groups(groups, seeds.name_groups(groups))
    losses = {
        (column, group): read_losses(group, found[column]) for column in order for group in every
    }
    ranked, others = (
        sorted(some, key=lambda group: _ranking_loss(losses[order[0], group]))
        for some in (every[:count], every[count:])
    )
    ordered = {column: found[column] for column in order}
    return Ranking(runs, ordered, names_of(order), ranked, others, losses)


def any_unseen(passports: Mapping[str, dict]) -> bool:
    """Whether some run never saw the text, as far as is recorded."""
    return any(leakage.reason(passport) is None for passport in passports.values())


def _ranking_loss(runs: GroupLosses | None) -> float:
    """Returns the log-perplexity that ranks runs; infinite if it is missing or not a number."""
    value = runs.loss if runs else math.inf
    return math.inf if math.isnan(value) else value


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
    text_seen: bool
    # nats per token above the first row of the text; NaN for that row itself, and where the scores
    # of single words were not kept or are of other tokens
    above: float = math.nan
    above_low: float = math.nan
    above_high: float = math.nan
    p: float = math.nan
    # by Welch's test between seeds; NaN where one of the two has one run
    p_of_seeds: float = math.nan


def compare(folders: Iterable[str | os.PathLike[str]]) -> list[Row]:
    """Compares the perplexities of evaluated runs; `zoo compare` prints the same with tests.

    Args:
      folders: of runs, or records of runs (`zoo.lab.evaluation.records`).

    Returns:
      A row for each text and run, those of the lowest log-perplexity first. Runs that differ in
      their seed alone are one row.

    Raises:
      UserError: a run has no perplexities, or their figures are not of the same quantity.
    """
    ranking = rank(Comparison.from_paths(os.fspath(folder) for folder in folders))
    rows = []
    for column in ranking.columns:
        groups = [*ranking.ranked, *ranking.unranked]
        found = {group: runs for group in groups if (runs := ranking.losses[column, group])}
        order = sorted(found, key=lambda group: (group in ranking.unranked, found[group].loss))
        for group in order:
            row = make_row(found[group], ranking.passports(column, group))
            first = found[order[0]]
            if group != order[0] and (test := paired.compare_losses(first, found[group])):
                low, high = test.interval
                row = row._replace(above=test.nats, above_low=low, above_high=high)
                row = row._replace(p=test.p, p_of_seeds=test.p_of_seeds)
            rows.append(row)
    return rows


def make_row(runs: GroupLosses, passports: list[dict]) -> Row:
    """Returns the figures of a group of runs, without its difference from another."""
    first = passports[0]
    perplexity = perplexity_of(runs.loss)  # of the mean loss of several
    return Row(
        runs.name,
        len(passports),
        first["head"].partition("(")[0],
        first["parameters"],
        first["split"],
        first["policies"]["state"],
        first["normalised_over"],
        first["tokens"],
        runs.loss,
        *runs.interval,
        perplexity if len(passports) > 1 else float(first["figures"]["perplexity"]),
        any(leakage.reason(passport) is not None for passport in passports),
    )


def merge_reasons(recipes: Iterable[Group], why: Mapping[str, str]) -> list[tuple[str, str]]:
    """Returns (run, or recipe if none of its runs is there, why) of the runs that are left out."""
    found = []
    for recipe in recipes:
        missing = [*recipe.select(why).items()]
        none = len(missing) == len(recipe.runs)
        found += [(recipe.name, missing[0][1])] if none else missing
    return found


def list_unjudged(comparison: Comparison) -> list[tuple[str, str]]:
    """Returns (run or recipe, why) of those without any perplexity."""
    return merge_reasons(comparison.groups, comparison.available_results[1])


def group_by_text(comparison: Comparison) -> dict[str, dict[str, dict]]:
    """Groups perplexities of one quantity: {name of the text: {run: passport}}."""
    found: dict = {}
    called = {run: group.name for group in comparison.groups for run in group.runs}
    for run in called:
        for column, passport in comparison.available_results[0].get(run, {}).items():
            key = column.split, repr(quantity(passport))
            found.setdefault(key, {})[run] = column, passport
    shown = names_of({column: None for one in found.values() for column, _ in one.values()})
    choices: list[tuple[str, ...]] = []
    for of_runs in found.values():
        column, _ = next(iter(of_runs.values()))
        of_recipes = [*dict.fromkeys(called[run] for run in of_runs)]
        runs = "; ".join(of_recipes[:3]) + "; ..." * (len(of_recipes) > 3)
        names = column.split, f"{column.split} ({runs})", f"{shown[column]} ({runs})"
        choices.append((*names, f"{shown[column]} ({'; '.join(of_runs)})"))
    named_texts = {}
    for choice, of_runs in zip(choices, found.values(), strict=True):
        others = [other for other in choices if other is not choice]
        free = [name for name in choice if not any(name in other for other in others)]
        passports = {run: passport for run, (_, passport) in of_runs.items()}
        named_texts[(free or choice[-1:])[0]] = passports
    return named_texts
