"""Results of runs, read and put in columns: figures of one column are of the same quantity."""

import contextlib
import dataclasses
import json
import os
import pathlib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from zoo.base import strict_json
from zoo.errors import UserError
from zoo.lab.evaluation import figures, item_scores, records
from zoo.lab.evaluation.figures import AccuracyPassport, Passport, PerplexityPassport, Place
from zoo.lab.runs import location
from zoo.lab.runs.workdir import Workdir, check_folders

# A component of the user's own in a recipe.
_USER_COMPONENT = re.compile(r'"component": "(?!zoo[.:])')
P = TypeVar("P", bound=Passport)


class Column(NamedTuple):
    """A column of the table of results."""

    split: str
    state: str
    digest: str
    lexicon: str
    over: str
    changes: tuple[str, ...]
    learns: tuple[str, ...] = ()

    @classmethod
    def from_passport(cls, passport: PerplexityPassport) -> "Column":
        """Returns the column of a result."""
        changes = [change for change in passport.all_changes if change.apart]
        return cls(
            passport.split,
            passport.policies.state,
            passport.data.sha256[:8] if ":" in passport.split else "",
            "" if passport.is_over_strings else passport.lexicon.words[:8],
            passport.normalised_over,
            tuple(change.column for change in changes),
            tuple(change.column for change in changes if change.learns),
        )

    def __str__(self):
        digest = f" [{self.digest}]" if self.digest else ""
        return ", ".join((f"{self.split}{digest}", self.state, *self.changes))


PassportsByColumn = dict[Column, PerplexityPassport]


def names_of(columns: Iterable[Column]) -> dict[Column, str]:
    """Names columns, with lexicon and normalisation where columns of one text and policy differ."""
    columns, names = [*columns], {}
    for column in columns:
        peers = [peer for peer in columns if str(peer) == str(column)]
        names[column] = str(column)
        if column.lexicon and len({peer.lexicon for peer in peers if peer.lexicon}) > 1:
            names[column] += f", lexicon {column.lexicon}"
            peers = [peer for peer in peers if peer.lexicon == column.lexicon]
        if len({peer.over for peer in peers}) > 1:
            names[column] += f", over {column.over}"
    return names


def read_results(folders: Iterable[str | pathlib.Path]) -> dict[Any, PassportsByColumn]:
    """Reads {run: passports of its perplexities by column}, in the order of file names."""
    folders = [*folders]
    check_folders(folders)
    passports_by_folder: dict[Any, PassportsByColumn] = {}
    for folder in folders:
        passports: PassportsByColumn = {}
        for passport in read_passports(folder, PerplexityPassport):
            column = Column.from_passport(passport)
            if column in passports:
                raise _duplicate(folder, column, passports[column], passport)
            passports[column] = passport
        if not passports:
            on_disk = not records.is_record(folder) and not location.is_bucket(folder)
            if on_disk and not os.path.isdir(folder):  # takes a name that is too long
                problem = "is not a folder" if os.path.exists(folder) else "does not exist"
                raise UserError(f"{folder} {problem}: give the folder of an evaluated run.")
            if on_disk and not Workdir(folder).exists():
                raise UserError(f"{folder} is not a run: give a run's folder or FILE.jsonl:RUN.")
            raise UserError(f"{folder} has no results: python -m zoo evaluate {folder} makes them.")
        passports_by_folder[folder] = passports
    return passports_by_folder


@contextlib.contextmanager
def _reading(path):
    """Raises UserError where the content of a file is not a passport."""
    try:
        yield
    except ValueError as error:
        raise UserError(f"{path} is not a result of this zoo ({error}): remove it.") from error


def read_passport(path: pathlib.Path) -> Passport:
    """Reads the passport of a file."""
    content = location.read_bytes(path)
    with _reading(path):
        value = strict_json.loads(content.decode())
        return figures.parse(value, Place(path.name, item_scores.path_of(path)), path)


def read_passports(run: str | pathlib.Path, kind: type[P]) -> Iterator[P]:
    """Reads the passports of a kind among the results of a run, in the order of file names."""
    folder = location.to_path(run)
    passports: Iterable[Passport] = ()
    if records.is_record(run):
        passports = record_passports(records.file_and_run(run)[0], records.record_of(run))
    # os.path.isdir takes a name that is too long, unlike pathlib.
    elif location.is_bucket(folder) or os.path.isdir(folder):
        with location.convert_errors(folder):
            passports = map(read_passport, sorted((folder / "results").glob("*.json")))
    return (passport for passport in passports if isinstance(passport, kind))


def record_passports(file: pathlib.Path, record: records.Record) -> Iterator[Passport]:
    """Yields the passports of a run of a record's file."""
    for name, value in record.results.items():
        origin = f"{file}:{record.run}, {name}"
        with _reading(origin):
            place = Place(name, records.scores_file(file), f"{record.run}/{name}/")
            passport = figures.parse(value, place, origin)
        yield passport


@dataclasses.dataclass(frozen=True)
class _Component:
    component: str | None = None


@dataclasses.dataclass(frozen=True)
class _Model:
    head: _Component | None = None


@dataclasses.dataclass(frozen=True)
class _Training:
    seed: int | None = None


@dataclasses.dataclass(frozen=True)
class _Recipe:
    """Parts of a recipe that comparisons read, each perhaps missing."""

    data: _Component | None = None
    model: _Model | None = None
    training: _Training | None = None


def recipe_of(run: str | pathlib.Path) -> dict:
    """Reads the experiment of a run as JSON, with the digests of the user's modules; {} without."""
    if records.is_record(run):
        recipe = records.record_of(run).experiment
    else:
        with location.convert_errors(run):
            file = Workdir(run).file("experiment.json")
            recipe = strict_json.read(file) if file.exists() else {}
    try:
        strict_json.parse(_Recipe, recipe)
    except ValueError as error:
        raise UserError(
            f"{run} has a recipe that cannot be read ({error}): put back a copy of it."
        ) from error
    if _USER_COMPONENT.search(json.dumps(recipe)):
        for passport in read_passports(run, Passport):
            code = passport.training.made_with
            if code and code.sources:
                sources = (f"{name} [{digest[:8]}]" for name, digest in code.sources.items())
                return {**recipe, "source": ", ".join(sources)}
    return recipe


def judged_splits(folder: str | pathlib.Path) -> set[str]:
    """Returns the splits on which a run has a perplexity."""
    return {passport.split for passport in read_passports(folder, PerplexityPassport)}


def _duplicate(folder, label, first_passport, passport):
    return UserError(
        f"{folder} has two results of {label}: {first_passport.place.name} and "
        f"{passport.place.name}; take the one that is not meant out of its results."
    )


def comparable_columns(
    runs: Mapping[str, PassportsByColumn],
) -> dict[Column, dict[str, PerplexityPassport]]:
    """Returns {column: {run: passport}}, in the order of the runs' results; raises UserError if
    passports of a column are not comparable.

    Runs that were judged on one split, but never alike (under other state policies, on other texts
    of one name, over other words), stand in one column, so that they are refused. In columns of
    their own they would stay apart in silence. Figures of models that learn from the judged text
    always stand apart, in a column whose name tells it.
    """
    columns: dict[Column, dict[str, PerplexityPassport]] = {}
    for name, results in runs.items():
        for column, passport in results.items():
            columns.setdefault(column, {})[name] = passport
    for column in list(columns):
        peers = [key for key in columns if (key.split, key.learns) == (column.split, column.learns)]
        for peer in [key for key in peers if key != column]:
            if column in columns and not _share_column(columns, column, peer):
                columns[column].update(columns.pop(peer))
    for passports in columns.values():
        first_name, first = next(iter(passports.items()))
        for name, passport in passports.items():
            check_comparable(first, passport, (first_name, name))
    return columns


def _share_column(columns, first, second):
    """Whether a run of one column and a run of the other stand together in some column."""
    return any(
        columns[first].keys() & runs.keys() and columns[second].keys() & runs.keys()
        for column, runs in columns.items()
        if column.split == first.split
    )


# ---- comparability of figures: they may be put side by side if their passports are of one quantity

# Fields that must agree before two perplexities may be ranked.
PERPLEXITY_FIELDS = (
    "kind",
    "policies",
    "counts",
    "data.sha256",
    "source.sha256",
    "lexicon.words",
    "normalised_over",
    "changes",
    "tokens",
)
# Fields that must agree before two figures of translations may be ranked. The signature of BLEU
# has the tokenizer.
TRANSLATION_FIELDS = ("kind", "data.sha256", "source.sha256", "policies.lower_case", "tokenizer")


def quantity(passport: Passport, fields: tuple[str, ...] = PERPLEXITY_FIELDS) -> dict[str, Any]:
    """Returns {field: value} of the fields that must agree, each policy a field of its own."""
    values = {}
    for field in fields:
        value: Any = passport
        for name in field.split("."):
            value = None if value is None else getattr(value, name)  # of no source
        if dataclasses.is_dataclass(value):
            values.update({f"{field}.{name}": item for name, item in vars(value).items()})
        else:
            values[field] = value
    if "changes" in values:
        values["changes"] = [change.label for change in passport.all_changes if change.apart]
    if "lexicon.words" in values and isinstance(passport, PerplexityPassport):
        values["lexicon.words"] = None if passport.is_over_strings else values["lexicon.words"]
    return values


def check_comparable(
    first_passport: Passport,
    second_passport: Passport,
    names: tuple[Any, Any],
    fields: tuple[str, ...] = PERPLEXITY_FIELDS,
    verb: str = "evaluate",
):
    """Raises UserError for the first field in which two passports are not of the same quantity."""
    first, second = quantity(first_passport, fields), quantity(second_passport, fields)
    differing = [field for field in first | second if first.get(field) != second.get(field)]
    if "policies.fused" in differing and first.get("data.sha256") == second.get("data.sha256"):
        # The hash is of words as they were read: the text has no fused form read in two ways.
        for values in (first, second):
            values["policies.fused"] = None
            if "counts" in values:  # of which words, and of which marks
                values["counts"] = values["counts"].partition("; ")[2]
    for field in first | second:
        if first.get(field) != second.get(field):
            remedy = f"{verb} both alike"
            if field == "data.sha256":
                remedy = f"{verb} both on one text"
                if verb == "evaluate":
                    remedy += ", or choose a text that both have by zoo compare --split"
            raise UserError(
                f"{names[0]} and {names[1]} cannot be compared on {first_passport.split}, "
                f"because {field} differs: {first.get(field)!r} against {second.get(field)!r}; "
                f"{remedy}."
            )


# ------------- accuracies of runs by their questions, and by the options of the evaluation


class Questions(NamedTuple):
    """Questions that were answered with the same options."""

    split: str
    digest: str
    # what the evaluation changed; () for the first result of each run
    options: tuple[str, ...] = ()

    def __str__(self):
        return ", ".join((self.split, *self.options))


def read_answers(
    folders: Iterable[str | pathlib.Path],
) -> dict[Questions, dict[Any, AccuracyPassport]]:
    """Reads the accuracies of runs by their questions, {questions: {run: passport}}.

    Of the results of a run on the same questions, the one of fewest options stands under no option,
    whichever it has, so that a model that was trained under a grammar is compared with a free one.
    Each of the others stands under its options, beside every run's result under the same.
    """
    folders = [*folders]
    check_folders(folders)
    by_questions: dict[tuple[str, str], dict] = {}  # {questions: {run: {options: passport}}}
    for folder in folders:
        for passport in read_passports(folder, AccuracyPassport):
            titles = tuple(change.title for change in passport.all_changes)
            questions = Questions(passport.split, passport.data.sha256, titles)
            by_run = by_questions.setdefault(questions[:2], {})
            by_options = by_run.setdefault(folder, {})
            if questions.options in by_options:
                raise _duplicate(folder, questions, by_options[questions.options], passport)
            by_options[questions.options] = passport
    accuracies = {}
    for (split, digest), by_run in by_questions.items():
        fewest = {run: min(results, key=len) for run, results in by_run.items()}
        choices = {options for results in by_run.values() for options in results}
        accuracies[Questions(split, digest)] = {run: by_run[run][fewest[run]] for run in by_run}
        for options in sorted(choices, key=lambda options: (len(options), options)):
            same_options = {
                run: results[options] for run, results in by_run.items() if options in results
            }
            if any(fewest[run] != options for run in same_options):
                accuracies[Questions(split, digest, options)] = same_options
    return accuracies
