"""Translations of runs side by side: BLEU and chrF as text, and a page's.

`zoo translate --bleu` keeps the translations and their scores among a run's results.
"""

import math
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from zoo.configuration import fields
from zoo.errors import UserError
from zoo.lab.comparison import html_parts
from zoo.lab.comparison.comparison import Comparison
from zoo.lab.evaluation import results, translation_quality
from zoo.lab.evaluation.figures import TranslationPassport
from zoo.lab.evaluation.records import is_record
from zoo.lab.evaluation.results import TRANSLATION_FIELDS, quantity
from zoo.lab.runs import location
from zoo.lab.runs.workdir import Workdir
from zoo.lab.table import SCORE, Column, Table, escape

_FILES = "translation-*.json"


def is_result_file(path: str) -> bool:
    """Whether a path ends in .json and is not a folder: a result of translations, not a run."""
    return path.endswith(".json") and not os.path.isdir(path)


def find_results(paths: Sequence[str], splits: Sequence[str] = ()) -> dict[str, dict[str, Any]]:
    """Returns {split: {run: result file}} of runs' translations, or of result files as paths.

    Records and missing folders are skipped; without `splits` all are taken.
    """
    files_by_split: dict[str, dict[str, Any]] = {}
    for number, run in enumerate(paths):
        if is_record(run):
            continue
        place = location.to_path(run)
        if is_result_file(run):
            files = [place]
        elif location.is_bucket(place) or os.path.isdir(run):  # a name that is too long, too
            files = sorted((place / "results").glob(_FILES))
        else:
            continue
        file_splits = [file.name.removeprefix("translation-").partition(".")[0] for file in files]
        for file, split in zip(files, file_splits, strict=True):
            if splits and split not in splits:
                continue
            name, is_only = _run_names(paths)[number], file_splits.count(split) == 1
            label = name if is_only else f"{name} ({file.stem.partition('.')[2]})"
            files_by_split.setdefault(split, {})[label] = file
    return files_by_split


def _run_names(paths) -> list[str]:
    """Returns the runs' folder names for a table or picture; whole paths if some are equal or
    empty."""
    # A result is RUN/results/NAME.json; a folder is a run, or was given from within it.
    runs = [
        path.absolute().parent.parent if is_result_file(str(path)) else path
        for path in map(pathlib.Path, paths)
    ]
    names = [run.name for run in runs]
    return names if "" not in names and len({*names}) == len(names) else [*map(str, paths)]


def _read_references(experiment, split):
    """Reads the references of a split as they were written."""
    return experiment.vocabulary.read(experiment.data.as_written(), split)


def score_table(files: Mapping[str, Any], split: str) -> str:
    """Formats scores with their 95 % intervals, and p of differences from the first run."""
    scored_results = [translation_quality.read(file) for file in files.values()]
    first_file = next(iter(files.values()))
    path = first_file if location.is_bucket(first_file) else first_file.absolute()
    corpus = _read_references(Workdir(path.parent.parent).experiment(), split)
    rows = translation_quality.compare([*files], scored_results, corpus.sentences)
    return translation_quality.table(rows, scored_results[0][0])


# ---- the section of the page: a table for each text, a row for each recipe and search


class ScoredTranslation(NamedTuple):
    """A run's passport of its translations, and the intervals of their scores."""

    passport: TranslationPassport
    intervals: dict[str, tuple[float, float]]


def translations_section(comparison: Comparison) -> str:
    """Returns the section of translations' scores, a table for each text."""
    texts: dict[str, dict[tuple[str, str], list[ScoredTranslation]]] = {}
    for recipe in comparison.groups:
        for name, path in recipe.select(comparison.paths).items():
            run = comparison.available_runs[0].get(name)
            for passport in results.read_passports(path, TranslationPassport):
                scored = ScoredTranslation(passport, _score_intervals(run, passport))
                rows = texts.setdefault(repr(quantity(passport, TRANSLATION_FIELDS)), {})
                rows.setdefault((recipe.name, describe_search(passport)), []).append(scored)
    if not texts:
        reason = "no run has translated: python -m zoo translate DIR --bleu does."
        return html_parts.omission(reason)
    return "".join(map(_score_table, texts.values()))


def _score_table(rows):
    """Returns the HTML table of one text, {(recipe, search): translations of its seeds}."""
    first = next(iter(rows.values()))[0].passport
    metrics = [*first.figures]
    columns = [Column("recipe"), Column("search"), *(Column(metric, SCORE) for metric in metrics)]
    cells = [
        (name, search, *(score_cell(metric, scored) for metric in metrics))
        for (name, search), scored in rows.items()
    ]
    split = first.split.removeprefix("translation-")
    caption = (
        f"{split}: {first.tokens:,} sentences of {first.data.path}, {first.counts}. In "
        "brackets: 95 % interval by sentences; of several seeds, mean, least and greatest"
    )
    signatures = [f"{metric}: {first.figures[metric].signature}" for metric in metrics]
    return (
        f"<h3>{escape(split)}</h3>"
        + Table(columns, cells).html(caption)
        + html_parts.collapsible("Signatures", html_parts.bullet_list(map(escape, signatures)))
    )


def score_cell(
    metric: str, translations: list[ScoredTranslation]
) -> tuple[float, float, float] | None:
    """Returns a recipe's score: the mean of its seeds with their range, or with an interval."""
    scores = [
        translation.passport.figures[metric].score
        for translation in translations
        if metric in translation.passport.figures
    ]
    if not scores:
        return None
    ends = translations[0].intervals.get(metric, (math.nan, math.nan))
    if len(scores) > 1:
        ends = min(scores), max(scores)
    return math.fsum(scores) / len(scores), *ends


def describe_search(passport: TranslationPassport) -> str:
    """Describes the search that found translations: "beam 12, length_normalisation 1"."""
    decoding = passport.decoding
    words = [f"beam {decoding.search.beam}"]
    for name in fields.changed_fields(decoding.search):
        value = getattr(decoding.search, name)
        if name != "beam":
            words.append(f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}")
    notes = {
        f"{len(decoding.runs)} runs together": len(decoding.runs) > 1,
        "with a language model": decoding.language_model,
        "unknown words replaced": decoding.unknowns,
    }
    return ", ".join([*words, *(note for note, holds in notes.items() if holds)])


def _score_intervals(run, passport):
    """Computes {metric: 95 % interval} of a run's scores; {} for a record, or without its
    translations or references."""
    place = passport.place
    if run is None or place.prefix:
        return {}
    try:
        result = translation_quality.read(place.scores.parent / place.name)
        corpus = _read_references(run.experiment, passport.split.removeprefix("translation-"))
        (row,) = translation_quality.compare([""], [result], corpus.sentences)
    except UserError:
        return {}
    return {metric: scores["interval"] for metric, scores in row.items() if metric != "run"}
