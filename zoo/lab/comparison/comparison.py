"""Runs side by side: comparable figures in columns, and the seeds of a recipe in groups.

`zoo compare` prints them (`text_report`), draws them (`bar_plots`, `learning_curves`) and writes
them as a page (`page_report`).
"""

import dataclasses
import functools
import itertools
import json
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

from zoo.errors import UserError
from zoo.lab import table
from zoo.lab.comparison import paired, seeds
from zoo.lab.comparison.paired import GroupLosses
from zoo.lab.evaluation import item_scores, records
from zoo.lab.evaluation.figures import Passport, PerplexityPassport
from zoo.lab.evaluation.perplexity import perplexity_of
from zoo.lab.evaluation.results import (
    Column,
    PassportsByColumn,
    comparable_columns,
    judged_splits,
    names_of,
    quantity,
    read_results,
    recipe_of,
)
from zoo.lab.evaluation.run import Run, short_names
from zoo.lab.table import NATS, PERPLEXITY


class Group(NamedTuple):
    """Runs that differ in their seed alone."""

    name: str
    colour_number: int  # see `plot_style.style`
    runs: tuple[str, ...]

    def select(self, values_by_run: Mapping[str, Any]) -> dict[str, Any]:
        """Returns {run: value} of the group's runs; a run without a value is left out."""
        return {run: values_by_run[run] for run in self.runs if run in values_by_run}


def select_groups(
    groups: Iterable[Group], values_by_run: Mapping[str, Any]
) -> dict[Group, list[Any]]:
    """Returns {group: values of its runs} of {run: value}; a group without any is left out."""
    values = {group: [*group.select(values_by_run).values()] for group in groups}
    return {group: group_values for group, group_values in values.items() if group_values}


@dataclasses.dataclass(frozen=True, eq=False)
class Comparison:
    """The runs of a comparison by name, which are read when first asked for."""

    paths: Mapping[str, str]  # {short name: folder, export, or name in a record}
    load: Callable[[str], Run] = Run.load

    @classmethod
    def from_paths(cls, paths: Iterable[str], labels: Sequence[str] = (), **options) -> Self:
        """Makes a comparison of runs, and of each run in a record; labels, one for each of `groups`
        in their order, rename the runs."""
        run_paths = records.expand(paths)
        comparison = cls(dict(zip(short_names(run_paths), run_paths, strict=True)), **options)
        if not labels:
            return comparison
        names = seeds.label_runs([group.runs for group in comparison.groups], labels)
        return cls({names[run]: path for run, path in comparison.paths.items()}, **options)

    @functools.cached_property
    def results(self) -> dict[str, PassportsByColumn]:
        """{run: {column: passport}} of all runs; raises UserError if a run has no results."""
        results_by_path = read_results(self.paths.values())
        return {name: results_by_path[path] for name, path in self.paths.items()}

    @functools.cached_property
    def available_results(self) -> tuple[dict[str, PassportsByColumn], dict[str, str]]:
        """({run: {column: passport}}, {run: why it has none}), where `results` would raise."""
        return read_each(self.paths, lambda path: read_results([path])[path])

    @functools.cached_property
    def available_runs(self) -> tuple[dict[str, Run], dict[str, str]]:
        """({run: loaded Run}, {run: why it cannot be loaded}); a record cannot."""
        return read_each(self.paths, self._load_run)

    def _load_run(self, path: str) -> Run:
        """Loads a run; raises UserError for a record, which has results alone."""
        if records.is_record(path):
            raise UserError("a record keeps results alone: give the run's folder to see this.")
        return self.load(path)

    @functools.cached_property
    def recipes(self) -> dict[str, dict]:
        """{run: its recipe as a JSON dict}, {} where the recipe is not known."""
        return {name: recipe_of(path) for name, path in self.paths.items()}

    @functools.cached_property
    def groups(self) -> list[Group]:
        """Groups of runs whose recipes differ in the seed alone, ordered by their first runs."""
        return self.make_groups({name: self.run_key(name) for name in self.paths})

    def make_groups(self, keys: Mapping[str, tuple[str, Any]]) -> list[Group]:
        """Makes the groups of {run: its `run_key`}, each with its name and a colour number: its
        output layer's own number where that is free (`seeds.number_recipes`)."""
        groups = seeds.group_by_recipe(keys)
        names = seeds.name_groups(groups)
        heads = [seeds.head_name(self.recipes[runs[0]]) for runs in groups]
        numbers = seeds.number_recipes(names, heads)
        return [Group(*fields) for fields in zip(names, numbers, groups, strict=True)]

    def is_translator(self, run: str) -> bool:
        """Whether a run's recipe is an encoder-decoder's; False if the recipe is not known."""
        return "source_embedding" in (self.recipes[run].get("model") or ())

    def run_key(self, run: str, passport: Passport | None = None) -> tuple[str, Any]:
        """Returns (recipe without seed, as text, or its digest from the passport, or ""; seed)."""
        recipe = self.recipes[run]
        if recipe:
            training = recipe.get("training") or {}
            others = {**recipe, "parallel": None, "training": {**training, "seed": None}}
            # A field that an older recipe lacks was off: 0, False, empty or null.
            set_fields = json.loads(
                json.dumps(others),
                object_hook=lambda fields: {name: value for name, value in fields.items() if value},
            )
            return json.dumps(set_fields, sort_keys=True), training.get("seed")
        recorded = passport and passport.training
        return (recorded.recipe_but_seed or "", recorded.seed) if recorded else ("", None)


def read_each(
    paths: Mapping[str, Any], read: Callable[[Any], Any]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Reads each path of {name: path}; returns ({name: value}, {name: message of its
    UserError})."""
    values, reasons = {}, {}
    for name, path in paths.items():
        try:
            values[name] = read(path)
        except UserError as error:
            reasons[name] = str(error)
    return values, reasons


def read_losses(
    groups: Iterable[Group], passports_by_run: Mapping[str, PerplexityPassport]
) -> dict[Group, GroupLosses]:
    """Reads the losses and saved scores of groups from {run: passport} of one text; a group without
    any passport is left out."""
    losses_by_group = {}
    for group, passports in select_groups(groups, passports_by_run).items():
        losses = tuple(passport.figures.log_perplexity for passport in passports)
        scores = map(item_scores.read, passports)
        statistics = [item_scores.statistics(arrays) for arrays in scores if arrays is not None]
        recorded = passports[0].figures.interval if len(passports) == 1 else None
        interval = recorded or (math.nan, math.nan)
        losses_by_group[group] = GroupLosses.from_statistics(
            group.name, losses, statistics, interval, passports
        )
    return losses_by_group


class Ranking(NamedTuple):
    """Groups of runs in the order of their perplexity on the first column, and the losses of those
    that were judged on each column."""

    runs: Mapping[str, PassportsByColumn]
    columns: Mapping[Column, dict[str, PerplexityPassport]]
    names: Mapping[Column, str]
    ranked: list[Group]
    unranked: list[Group]
    losses: Mapping[Column, Mapping[Group, GroupLosses]]


def rank(comparison: Comparison, splits: Sequence[str] = ()) -> Ranking:
    """Ranks groups of runs by perplexity on one text: of most runs, and if possible unseen by some.

    Runs that have seen this text stay unranked, each alone. Raises UserError if a run has no figure
    on the splits, () for all, or if figures are not comparable.
    """
    results_by_run = {
        name: {
            column: passport
            for column, passport in results.items()
            if not splits or column.split in splits
        }
        for name, results in comparison.results.items()
    }
    for name, path in comparison.paths.items():
        if not results_by_run[name]:
            judged = ", ".join(sorted(judged_splits(path)))
            raise UserError(
                f"{name} has no perplexity on {' or '.join(splits)}, only on {judged}: evaluate it "
                "there, or leave it out."
            )
    columns = comparable_columns(results_by_run)
    order = order_texts(columns)
    seen_runs = {name for name, passport in columns[order[0]].items() if passport.leak}
    if len(seen_runs) == len(columns[order[0]]):
        seen_runs = {*results_by_run}
    keys = dict.fromkeys(results_by_run, ("", None))
    for name in results_by_run.keys() - seen_runs:
        keys[name] = comparison.run_key(name, next(iter(results_by_run[name].values())))
    groups = comparison.make_groups(keys)
    losses = {text: read_losses(groups, columns[text]) for text in order}
    loss = {group: group_losses.loss for group, group_losses in losses[order[0]].items()}
    groups.sort(key=lambda group: (math.isnan(loss.get(group, math.nan)), loss.get(group)))
    ranked = [group for group in groups if group.runs[0] not in seen_runs]
    unranked = [group for group in groups if group.runs[0] in seen_runs]
    ordered = {column: columns[column] for column in order}
    return Ranking(results_by_run, ordered, names_of(order), ranked, unranked, losses)


def order_texts(runs_by_text: Mapping[Any, Mapping[str, Passport]]) -> list[Any]:
    """Orders texts, {(split, ...): {run: passport}}, as every report shows them.

    Those of more runs come first, and of these the texts that some run never saw; then tests of the
    recipe, texts of --data, and texts for training.
    """

    order = {}
    for text, passports in runs_by_text.items():
        is_test = re.search(r"(^|[.-])test[^.:]*$", text[0])
        is_for_training = re.search(r"(^|[.:-])(train|validation)$", text[0])
        kind = 2 if is_for_training else 0 if is_test else 1
        is_seen = all(passport.leak for passport in passports.values())
        order[text] = -len(passports), is_seen, kind
    return sorted(order, key=order.__getitem__)


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
    for losses_by_group in ranking.losses.values():
        order = sorted(
            losses_by_group.items(), key=lambda pair: (pair[0] in ranking.unranked, pair[1].loss)
        )
        _, lowest = order[0]
        for _, losses in order:
            passports = losses.passports
            first = passports[0]
            row = Row(
                losses.name,
                len(passports),
                first.head_name,
                first.parameters,
                first.split,
                first.policies.state,
                first.normalised_over,
                first.tokens,
                losses.loss,
                *losses.interval,
                perplexity_of(losses.loss),  # of the mean loss of several
                any(passport.leak for passport in passports),
            )
            test = None if losses is lowest else paired.compare_losses(lowest, losses)
            if test:
                row = row._replace(above=test.nats, p=test.p, p_of_seeds=test.p_of_seeds)
                row = row._replace(above_low=test.interval[0], above_high=test.interval[1])
            rows.append(row)
    return rows


# Marks figures of text that a run has seen.
NOT_RANKED = "!"
FIGURES = (
    table.Column("nats", NATS),
    *(table.Column(header, NATS, joined=True) for header in ("seeds", "95 %")),
    table.Column("perplexity", PERPLEXITY, joined=True),
)


def figure_cells(group: Group, losses: GroupLosses | None) -> list[Any]:
    """Returns the cells of a group's losses in the columns `FIGURES`; the range of seeds stands
    there if there are several."""
    if losses is None:
        return [None] * len(FIGURES)
    count = len(losses.losses)
    nats: float | str = losses.loss
    perplexity: float | str = perplexity_of(losses.loss)
    if count < len(group.runs):
        nats = f"{losses.loss:{NATS}} ({count} of {len(group.runs)} seeds)"
    if any(passport.leak for passport in losses.passports):
        perplexity = f"{perplexity:{PERPLEXITY}} {NOT_RANKED}"
    return [nats, losses.loss_range if count > 1 else None, losses.interval, perplexity]


def merge_reasons(recipes: Iterable[Group], reasons: Mapping[str, str]) -> list[tuple[str, str]]:
    """Lists (run, reason) of {run: reason}; a recipe whose runs are all in it is one entry, with
    the first reason."""
    entries = []
    for recipe in recipes:
        missing = [*recipe.select(reasons).items()]
        entries += missing if len(missing) < len(recipe.runs) else [(recipe.name, missing[0][1])]
    return entries


def list_unjudged(comparison: Comparison) -> list[tuple[str, str]]:
    """Lists (run or whole recipe, reason) of the runs without any perplexity."""
    return merge_reasons(comparison.groups, comparison.available_results[1])


def group_by_text(comparison: Comparison) -> dict[str, dict[str, PerplexityPassport]]:
    """Groups runs' passports by comparable text, {name of the text: {run: passport}}; names that
    several texts would have are followed by the runs."""
    texts: dict[tuple[str, str], dict[str, PerplexityPassport]] = {}
    columns: dict[tuple[str, str], Column] = {}
    results, _ = comparison.available_results
    for run in itertools.chain.from_iterable(group.runs for group in comparison.groups):
        for column, passport in results.get(run, {}).items():
            text = column.split, repr(quantity(passport))
            texts.setdefault(text, {})[run] = passport
            columns.setdefault(text, column)
    names = names_of(dict.fromkeys(columns.values()))
    titles = [names[column] for column in columns.values()]
    named_texts = {}
    for text in order_texts(texts):
        title = names[columns[text]]
        name = title if titles.count(title) == 1 else f"{title} ({'; '.join(texts[text])})"
        named_texts[name] = texts[text]
    return named_texts
