"""The runs of a report, and their recipes: whatever folders, exports and records have."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import NamedTuple

from zoo.comparison import plot_style, seeds
from zoo.errors import UserError
from zoo.evaluation import records, results
from zoo.evaluation.results import Column, quantity, recipe_of
from zoo.evaluation.run import Run, short_names
from zoo.runs.workdir import Workdir


@dataclasses.dataclass(frozen=True, eq=False)
class Subject:
    """A run of a report."""

    name: str
    path: str
    number: int
    run: Run | None  # its recipe, words and parameters; None where they cannot be read
    no_run: str
    columns: dict[Column, dict]
    no_columns: str

    def text_name(self, split: str | None) -> str:
        """Returns the split whose first sentences are shown."""
        assert self.run is not None
        splits = self.run.experiment.data.splits()
        tests = [name for name in splits if name not in ("train", "validation")]
        return split or (tests or ["validation"])[0]


class Recipe(NamedTuple):
    """Runs of a report that differ in their seed alone."""

    name: str
    number: int
    subjects: tuple[Subject, ...]

    def of(self, of_runs: dict[str, dict]) -> dict[str, dict]:
        """Returns the part of {run: passport} that belongs to its runs."""
        return {one.name: of_runs[one.name] for one in self.subjects if one.name in of_runs}


def recipes_of(subjects: list[Subject], labels: Sequence[str] = ()) -> list[Recipe]:
    """Groups the runs of a report by their recipes, in the order of their first runs."""
    by_name = {one.name: one for one in subjects}
    groups = seeds.grouped_by_recipe({one.name: one.path for one in subjects})
    names = seeds.names_of(groups, labels)
    numbers = plot_style.numbers(names.values())
    return [
        Recipe(names[group], numbers[names[group]], tuple(by_name[name] for name in group))
        for group in groups
    ]


def numbered(recipes: list[Recipe]) -> dict[int, str]:
    """Returns {number: name} of recipes, by which they have colours and marks."""
    return {recipe.number: recipe.name for recipe in recipes}


def labelled(subjects: list[Subject], labels: Sequence[str]) -> list[Subject]:
    """Returns the runs under the labels of their recipes; as they are without labels."""
    groups = seeds.grouped_by_recipe({one.name: one.path for one in subjects})
    names = seeds.labelled(groups, labels)
    return [dataclasses.replace(one, name=names[one.name]) for one in subjects]


def subjects_of(recipes: list[Recipe]) -> list[Subject]:
    """Returns the runs of recipes."""
    return [subject for recipe in recipes for subject in recipe.subjects]


def translate(subjects: Sequence[Subject]) -> bool:
    """Returns whether any of the runs is an encoder-decoder."""
    return any("source_embedding" in recipe_of(one.path).get("model", ()) for one in subjects)


def read(paths: list[str], load: Callable[[str], Run] = Run.load) -> list[Subject]:
    """Reads the runs of a report."""
    paths = records.expanded(paths)
    named = zip(short_names(paths), paths, strict=True)
    return [_subject(name, path, number, load) for number, (name, path) in enumerate(named)]


def _subject(name, path, number, load):
    run, no_run = None, "a record keeps results alone: give the run's folder to see this."
    if records.is_record(path):
        records.record_of(path)
    else:
        Workdir(path).experiment()
        try:
            run = load(path)
        except UserError as error:
            no_run = str(error)
    columns, no_columns = {}, ""
    try:
        columns = results.read_results([path])[path]
    except UserError as error:
        no_columns = str(error)
    return Subject(name, path, number, run, no_run, columns, no_columns)


def comparable_groups(recipes: list[Recipe]) -> dict[str, dict[str, dict]]:
    """Groups perplexities of one quantity: {name of the text: {run: passport}}.

    Where several groups are of one split, the first recipes are in the name; where this is not
    enough, the policy is.
    """
    groups: dict = {}
    called = {one.name: recipe.name for recipe in recipes for one in recipe.subjects}
    for subject in subjects_of(recipes):
        for column, passport in subject.columns.items():
            key = column.split, repr(quantity(passport))
            groups.setdefault(key, {})[subject.name] = column, passport
    shown = results.names_of(
        {column: None for one in groups.values() for column, _ in one.values()}
    )
    choices: list[tuple[str, ...]] = []
    for of_runs in groups.values():
        column, _ = next(iter(of_runs.values()))
        of_recipes = [*dict.fromkeys(called[run] for run in of_runs)]
        runs = "; ".join(of_recipes[:3]) + "; ..." * (len(of_recipes) > 3)
        names = column.split, f"{column.split} ({runs})", f"{shown[column]} ({runs})"
        choices.append((*names, f"{shown[column]} ({'; '.join(of_runs)})"))
    named = {}
    for choice, of_runs in zip(choices, groups.values(), strict=True):
        others = [other for other in choices if other is not choice]
        free = [name for name in choice if not any(name in other for other in others)]
        named[(free or choice[-1:])[0]] = {run: passport for run, (_, passport) in of_runs.items()}
    return named


def unjudged(recipes: list[Recipe]) -> list[tuple[str, str]]:
    """Returns (run or recipe, why) of those without any perplexity."""
    found = []
    for recipe in recipes:
        missing = [(one.name, one.no_columns) for one in recipe.subjects if not one.columns]
        none = len(missing) == len(recipe.subjects)
        found += [(recipe.name, missing[0][1])] if none else missing
    return found


def title(recipes: list[Recipe]) -> str:
    """Returns the title of a report."""
    names = [recipe.name for recipe in recipes]
    shown = "; ".join(names[:4]) + f" and {len(names) - 4} more" * (len(names) > 4)
    return f"Report: {shown}"
