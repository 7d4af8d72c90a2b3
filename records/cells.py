"""Figures of kept runs as cells of a table in Markdown, with a line on where they come from."""

import dataclasses
import datetime
import functools
import json
import pathlib
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from zoo.errors import UserError
from zoo.lab.comparison import comparison
from zoo.lab.comparison.comparison import Group
from zoo.lab.comparison.paired import GroupLosses, format_p
from zoo.lab.evaluation import records, significance
from zoo.lab.evaluation.changes.new_lexicon import NewLexicon
from zoo.lab.evaluation.figures import Passport
from zoo.lab.evaluation.perplexity import perplexity_of
from zoo.lab.evaluation.results import record_passports
from zoo.lab.runs.provenance import machine, revision, versions
from zoo.lab.table import Column, Table

FOLDER = pathlib.Path(__file__).parent
Cell = Callable[[Sequence[str]], str]  # makes the cell of a model from its runs


@functools.cache
def read_records() -> dict[str, tuple[pathlib.Path, records.Record]]:
    """Reads all records: {run: (its file, its record)}."""
    return {
        record.run: (file, record)
        for file in sorted(FOLDER.glob("*.jsonl"))
        for record in records.read(file)
    }


@functools.cache
def results(run: str) -> list[Passport]:
    """Reads all passports of a run of the records."""
    return [*record_passports(*read_records()[run])]


def passports(run: str) -> dict[str, Any]:
    """Returns {split: passport} of a run, over the words that it was trained on.

    Args:
      run: its name in the records; behind " + " the name of the change by which it learned from
        the text that it was judged on.
    """
    name, _, learning = run.partition(" + ")
    by_split = {}
    for passport in results(name):
        changes = passport.all_changes
        is_spread = any(isinstance(change, NewLexicon) and change.spread for change in changes)
        ways = "".join(change.name for change in changes if change.learns)
        if ways == learning and not is_spread:
            by_split[passport.split] = passport
    return by_split


def loss(run: str, split: str) -> float:
    """Returns the nats per token of a run.

    Args:
      run: its name in the records.
      split: the name of the split that it was judged on.
    """
    return passports(run)[split].figures.log_perplexity


def mean(values: Sequence[float], form: str) -> str:
    """Formats the mean of the seeds, with the least and the greatest in brackets if they differ.

    Args:
      values: of the seeds; without any, the text is empty.
      form: of the numbers, such as ".4f".
    """
    if not values:
        return ""
    text = format(statistics.fmean(values), form)
    if min(values) < max(values):
        text += f" ({min(values):{form}}–{max(values):{form}})"
    return text


def origin(names: list[str], test: str = "test", spread: bool = True) -> str:
    """Returns a line on where figures come from.

    Args:
      names: of runs.
      test: the split whose passports are asked.
      spread: whether the line explains the brackets, if there are several seeds.
    """
    tests = [passports(run)[test] for run in names]
    sources = (read_records()[run.partition(" + ")[0]][0] for run in names)
    files = ", ".join(sorted({f"records/{source.name}" for source in sources}))
    seeds = sorted({passport.training.seed for passport in tests})
    revisions = sorted({short_revision(passport.training.made_with.revision) for passport in tests})
    machines = {
        f"{passport.machine.processor}, {passport.machine.cores} cores" for passport in tests
    }
    dates = sorted({passport.date[:10] for passport in tests})
    line = (
        f"From the passports in {files}: seed {', '.join(map(str, seeds))}; revision "
        f"{', '.join(revisions)}; {', '.join(sorted(machines))}; {', '.join(dates)}."
    )
    if spread and len(seeds) > 1:
        line += " In brackets the least and the greatest of the seeds."
    return line


def estimate(sentence_statistics: np.ndarray, figure: Callable) -> tuple[float, float, float]:
    """Computes a figure of statistics [sentences, S], with the ends of its 95 % interval."""
    ends = significance.bootstrap_interval(sentence_statistics, figure)
    return float(figure(sentence_statistics.sum(0))), *ends


def provenance() -> dict:
    """Returns by which code, where and when figures are computed now.

    Raises:
      UserError: by code that was not committed.
    """
    commit = revision()
    if (commit or "dirty").endswith("dirty"):
        raise UserError("the figures would be of code that was not committed: commit it first.")
    return {
        "revision": commit,
        "versions": versions(),
        "machine": dataclasses.asdict(machine()),
        "date": datetime.date.today().isoformat(),
    }


def short_revision(revision: str) -> str:
    """Shortens a revision, and tells whether files had been changed since.

    Args:
      revision: its hash, with "-dirty" behind it if they had.
    """
    return revision[:7] + (", with uncommitted changes" if revision.endswith("-dirty") else "")


def read_json(name: str) -> dict:
    """Reads a file of figures in this folder."""
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


def provenance_line(program: str, count: str = "", *files: str) -> str:
    """Returns a line on what `provenance` told of figures.

    Args:
      program: the module of records that made them.
      count: the number of lists, sentences or other items behind the figures, with their noun.
      files: the files of figures; none for the program's name with .json.
    """
    files = files or (f"{program}.json",)
    contents = [read_json(file) for file in files]
    revisions = sorted({short_revision(figures["revision"]) for figures in contents})
    machines = sorted(
        {"{processor}, {cores} cores".format(**figures["machine"]) for figures in contents}
    )
    dates = sorted({figures["date"] for figures in contents})
    return (
        f"From {', '.join(f'records/{file}' for file in files)}, by python -m records.{program}: "
        f"{count}revision {', '.join(revisions)}; {', '.join(machines)}; {', '.join(dates)}."
    )


def identity(figures: Any) -> Any:
    """Returns the figures of all of a split's words."""
    return figures


def case(name: str) -> Callable[[Any], Any]:
    """Returns what takes the figures of a case from all figures of questions."""
    return lambda figures: figures.cases[name]


def values(runs: Sequence[str], split: str, figure: Callable[[Any], Any]) -> list:
    """Reads a figure of each run that was judged on a split.

    Args:
      runs: their names in the records.
      split: its name.
      figure: takes the figure from all figures of a passport.
    """
    return [figure(splits[split].figures) for splits in map(passports, runs) if split in splits]


def losses(runs: Sequence[str], split: str, part: Callable[[Any], Any] = identity) -> list[float]:
    """Reads the nats per token of each run; `part` takes some words' figures from a passport's."""
    return values(runs, split, lambda figures: part(figures).log_perplexity)


def nats(split: str, form: str = ".4f", **options) -> Cell:
    """Returns the column of nats per token; `losses` takes the options."""
    return lambda runs: mean(losses(runs, split, **options), form)


def perplexity(split: str, form: str = ".1f", **options) -> Cell:
    """Returns the column of perplexities of the mean nats; `losses` takes the options."""

    def cell(runs):
        by_seed = losses(runs, split, **options)
        return format(perplexity_of(statistics.fmean(by_seed)), form) if by_seed else ""

    return cell


def share(split: str, part: Callable[[Any], Any] = identity) -> Cell:
    """Returns the column of accuracies, percent; `part` takes some questions' figures."""
    return lambda runs: (
        mean(values(runs, split, lambda figures: 100 * part(figures).accuracy), ".1f") + " %"
    )


def interval(split: str) -> Cell:
    """Returns the column of the first seed's interval by sentences."""
    return lambda runs: "{:.3f}–{:.3f}".format(*passports(runs[0])[split].figures.interval)


def parameters(split: str) -> Cell:
    """Returns the column of numbers of parameters."""
    return lambda runs: f"{passports(runs[0])[split].parameters:,}"


def by_model(
    title: str,
    models: Mapping[str, Sequence[str]],
    columns: Sequence[tuple[str, Cell]],
    test: str = "test",
    above: Sequence[list[str]] = (),
) -> str:
    """Makes a table with a row for each model, and the line on its origin.

    Args:
      title: of the column of models.
      models: {model: runs}.
      columns: (title, cell of a model's runs).
      test: see `origin`.
      above: rows to put first.
    """
    rows = [[model, *(cell(runs) for _, cell in columns)] for model, runs in models.items()]
    header = [title, *(name for name, _ in columns)]
    return markdown(header, [*above, *rows], join_runs(models), test)


def figures_of(runs: Sequence[str], split: str) -> GroupLosses:
    """Reads the losses of a model's seeds on a split, with the scores that are kept."""
    group = Group("", 0, tuple(runs))
    return comparison.read_losses([group], {run: passports(run)[split] for run in runs})[group]


def join_runs(models: Mapping[str, Sequence[str]]) -> list[str]:
    """Returns the runs of all models."""
    return [run for runs in models.values() for run in runs]


def p_cell(p: float) -> str:
    """Formats p for a column whose title names it."""
    return format_p(p).removeprefix("p = ").removeprefix("p ")


def markdown(
    header: list[str],
    rows: list[list[str]],
    runs: list[str],
    test: str = "test",
    spread: bool = True,
) -> str:
    """Formats a table and the line on its origin; see `origin`.

    Args:
      header: of the columns.
      rows: their cells.
      runs: the names of the runs.
      test: see `origin`.
      spread: see `origin`.
    """
    return f"{grid(header, rows)}\n{origin(runs, test, spread)}"


def grid(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Formats the lines of a table.

    Args:
      header: of the columns.
      rows: their cells; the last may be missing.
    """
    return Table([*map(Column, header)], rows).markdown()
