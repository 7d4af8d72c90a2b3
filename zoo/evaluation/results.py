"""Results of runs, read and put in columns: figures of one column are of the same quantity."""

import contextlib
import json
import os
import pathlib
from collections.abc import Iterable
from typing import Any, NamedTuple

from zoo.errors import UserError
from zoo.evaluation import kept_scores, old_passports
from zoo.evaluation.comparable import quantity
from zoo.runs.workdir import check_folders

# Kinds of passports whose figures are accuracies of questions.
ANSWERS = ("minimal pairs", "exact match")


class Column(NamedTuple):
    """What stands in one column of the table.

    Attributes:
      split: the name of the text.
      state: the policy.
      digest: the start of the text's hash where the text was given by path, since one name may
        stand for several texts there; else "".
      lexicon: the start of the digest of the words.
      over: what probabilities are normalised over.
      constraint: the grammar that forbade words and the start of its digest; "" without one.
    """

    split: str
    state: str
    digest: str
    lexicon: str
    over: str
    constraint: str

    @classmethod
    def of(cls, passport: dict) -> "Column":
        """The column of a result."""
        split, constraint = passport["split"], passport["constraint"]
        digest = passport["data"]["sha256"][:8] if ":" in split else ""
        grammar = ""
        if constraint:
            name = pathlib.PurePath(constraint["grammar"]).name
            grammar = f"{name} [{constraint['digest'][:8]}]"
        return cls(
            split,
            passport["policies"]["state"],
            digest,
            passport["lexicon"]["words"][:8],
            passport["normalised_over"],
            grammar,
        )

    def __str__(self):
        digest = f" [{self.digest}]" if self.digest else ""
        grammar = f"constrained by {self.constraint}" if self.constraint else ""
        return ", ".join(filter(None, (f"{self.split}{digest}", self.state, grammar)))


def names_of(columns: Iterable[Column]) -> dict[Column, str]:
    """A name for each column, with its lexicon, and what it is normalised over, where another one
    of the same text and policy has others."""
    columns, names = [*columns], {}
    for column in columns:
        alike = [other for other in columns if str(other) == str(column)]
        names[column] = str(column)
        if len({other.lexicon for other in alike}) > 1:
            names[column] += f", lexicon {column.lexicon}"
            alike = [other for other in alike if other.lexicon == column.lexicon]
        if len({other.over for other in alike}) > 1:
            names[column] += f", over {column.over}"
    return names


def read_results(folders: Iterable[str | pathlib.Path]) -> dict[Any, dict[Column, dict]]:
    """{run: the passports of its perplexities by their columns}, in the order of file names.

    Fields that older results have not are derived; see `zoo.evaluation.old_passports`.

    Raises:
      UserError: a run has none or is given twice, a file cannot be read, or two of one run are of
        one column.
    """
    folders = [*folders]
    check_folders(folders)
    passports = {folder: _read(pathlib.Path(folder)) for folder in folders}
    every = [passport for of_run in passports.values() for passport in of_run.values()]
    old_passports.align_words(every)
    return {folder: _in_columns(folder, of_run) for folder, of_run in passports.items()}


def _read(folder):
    """{path: passport} of the perplexities in a run's results."""
    passports = {}
    for path, passport in _of_kinds(folder, ("perplexity",)):
        with _reading(path):
            passport = old_passports.completed(passport, path)
            Column.of(passport)
            quantity(passport)
        passports[path] = passport
    if not passports:
        raise UserError(f"{folder} has no results: python -m zoo evaluate {folder} makes them.")
    return passports


@contextlib.contextmanager
def _reading(path):
    """UserError where what is read from a file is no passport."""
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise UserError(f"{path} is not a result of this zoo ({error!r}): remove it.") from error


def _of_kinds(folder, kinds):
    """(path, passport) of the results of some kinds."""
    if not os.path.isdir(folder):  # which pathlib does not ask of a name that is too long
        return
    for path in sorted((folder / "results").glob("*.json")):
        with _reading(path):
            passport = json.loads(path.read_text(encoding="utf-8"))
            chosen = passport["kind"] in kinds
        if chosen:
            yield path, passport


def has_losses(folder: str | pathlib.Path) -> bool:
    """Whether a run has a perplexity among its results."""
    return any(True for _ in _of_kinds(pathlib.Path(folder), ("perplexity",)))


def read_answers(
    folders: Iterable[str | pathlib.Path],
) -> dict[tuple[str, str], dict[Any, tuple[dict, kept_scores.Arrays | None]]]:
    """{(split, hash of the questions): {run: (passport, its answers, None if they were not kept)}}
    of the accuracies of runs.

    Raises:
      UserError: a file cannot be read, or a run is given twice.
    """
    folders = [*folders]
    check_folders(folders)
    answers: dict = {}
    for folder in folders:
        for path, passport in _of_kinds(pathlib.Path(folder), ANSWERS):
            with _reading(path):
                questions = passport["split"], passport["data"]["sha256"]
                float(passport["figures"]["accuracy"]), int(passport["figures"]["right"])
            answers.setdefault(questions, {})[folder] = passport, kept_scores.read(path, passport)
    return answers


def _in_columns(folder, passports):
    """{column: passport}; "file" of each, which no file has, is where it was read from."""
    of_columns = {}
    names: dict = {}
    for path, passport in passports.items():
        column = Column.of(passport)
        if column in of_columns:
            raise UserError(
                f"{folder} has two results of {column}: {names[column]} and {path.name}; take the "
                "one that is not meant out of its results."
            )
        of_columns[column], names[column] = {**passport, "file": path}, path.name
    return of_columns


def columns_of(runs: dict[str, dict[Column, dict]]) -> dict[Column, dict[str, dict]]:
    """{column: {run: passport}}, in the order of the runs' results.

    Runs that were judged on one split, but never alike (under other state policies, on other texts
    of one name, over other words), stand in one column, so that the check refuses them rather than
    letting them stand apart in silence.
    """
    columns: dict[Column, dict[str, dict]] = {}
    for name, results in runs.items():
        for column, passport in results.items():
            columns.setdefault(column, {})[name] = passport
    for column in list(columns):
        for other in [key for key in columns if key.split == column.split and key != column]:
            if column in columns and not _meet(columns, column, other):
                columns[column].update(columns.pop(other))
    return columns


def _meet(columns, one, other):
    """Whether a run of one column and a run of the other stand together in some column."""
    return any(
        columns[one].keys() & there.keys() and columns[other].keys() & there.keys()
        for column, there in columns.items()
        if column.split == one.split
    )
