"""Translations of runs side by side: BLEU and chrF as text, by length of the source, and a page's.

`zoo translate --bleu` keeps the translations and their scores among a run's results.
"""

import dataclasses
import math
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from zoo.decoding import BeamSearch
from zoo.errors import UserError
from zoo.lab.comparison import html_parts
from zoo.lab.comparison.comparison import Comparison
from zoo.lab.comparison.html_parts import escape, number
from zoo.lab.comparison.seeds import number_recipes
from zoo.lab.evaluation import results, translation_quality
from zoo.lab.evaluation.records import is_record
from zoo.lab.evaluation.results import TRANSLATION_FIELDS, quantity
from zoo.lab.runs import location, output_files
from zoo.lab.runs.workdir import Workdir

_FILES = "translation-*.json"
# Words of a source sentence that are one group of --by length.
_LENGTHS = 5


def is_result_file(path: str) -> bool:
    """Whether a path names a result of translations rather than a run's folder."""
    return path.endswith(".json") and not os.path.isdir(path)


def find_results(given: Sequence[str], splits: Sequence[str] = ()) -> dict[str, dict[str, Any]]:
    """Returns {split: {name: file}} of the results of translations that runs keep, or that are
    named."""
    of_splits: dict[str, dict[str, Any]] = {}
    for name, run in zip(_run_names(given), given, strict=True):
        if is_record(run):
            continue
        place = location.to_path(run)
        if is_result_file(run):
            files = [place]
        elif location.is_bucket(place) or os.path.isdir(run):  # a name that is too long, too
            files = sorted((place / "results").glob(_FILES))
        else:
            continue
        there = [file.name.removeprefix("translation-").partition(".")[0] for file in files]
        for file, split in zip(files, there, strict=True):
            if splits and split not in splits:
                continue
            alone = there.count(split) == 1
            called = name if alone else f"{name} ({file.stem.partition('.')[2]})"
            of_splits.setdefault(split, {})[called] = file
    return of_splits


def _run_names(given) -> list[str]:
    """Returns the runs' folder names for a table or picture; whole paths where two are equal."""
    # A result is RUN/results/NAME.json; a folder is a run, or was given from within it.
    runs = [
        path.absolute().parent.parent if is_result_file(str(path)) else path
        for path in map(pathlib.Path, given)
    ]
    names = [run.name for run in runs]
    return names if "" not in names and len({*names}) == len(names) else [*map(str, given)]


def _read_results(of_runs, split):
    """Returns (results of translations, the experiment of the first, the text they translate)."""
    read = [translation_quality.read(file) for file in of_runs.values()]
    first = next(iter(of_runs.values()))
    whole = first if location.is_bucket(first) else first.absolute()
    experiment = Workdir(whole.parent.parent).experiment()
    return read, experiment, _read_references(experiment, split)


def _read_references(experiment, split):
    return experiment.vocabulary.read(experiment.data.as_written(), split)


def score_table(of_runs: Mapping[str, Any], split: str) -> str:
    """Formats scores with their 95 % intervals, and p of differences from the first run."""
    read, _, corpus = _read_results(of_runs, split)
    rows = translation_quality.compare([*of_runs], read, corpus.sentences)
    return translation_quality.table(rows, read[0][0])


def report_by_length(given: Sequence[str], split: str, picture: str | None = None):
    """Prints BLEU by the length of the source sentence, and draws it if a picture is named."""
    if picture:
        from zoo.lab.comparison import plot_style  # matplotlib, which tables do not need

        plot_style.check_file(picture)
    every = find_results(given, [])
    of_runs = every.get(split)
    if not of_runs:
        only = f", only of {', '.join(every)}" if every else ""
        raise UserError(
            f"no run has translations of {split}{only}: python -m zoo translate DIR --bleu --split "
            f"{split} makes them."
        )
    names = [*of_runs]
    read, experiment, corpus = _read_results(of_runs, split)
    translation_quality.check_results(names, read, corpus.sentences)
    lengths = [len(words) for words in experiment.source_corpus(corpus).sentences]
    rows = translation_quality.by_length(read, corpus.sentences, lengths, _LENGTHS)
    signature = read[0][0]["figures"]["BLEU"]["signature"]
    output_files.show(translation_quality.length_table(names, rows), signature)
    if picture:
        draw_by_length(names, rows, picture)


def draw_by_length(
    names: Sequence[str], rows: Sequence[translation_quality.LengthBucket], file: str | pathlib.Path
):
    """Draws BLEU against the length of the source, with the number of sentences and intervals."""
    from zoo.lab.comparison import plot_style

    title, note = "BLEU by the length of the source", "lines: 95 % interval by sentences"
    numbers = number_recipes(names)
    with plot_style.picture(file, [title], "source words", "BLEU", note) as (axes,):
        for place, name in enumerate(names):
            # Beside each other, lest intervals cover each other.
            xs = [x + (place - (len(names) - 1) / 2) * 0.06 for x in range(len(rows))]
            of_run = np.array([row.scores[place] for row in rows])
            ends = np.array([row.intervals[place] for row in rows], float).reshape(-1, 2).T
            style = plot_style.style(numbers[place])
            axes.errorbar(xs, of_run, np.abs(ends - of_run), label=name, **style)
        ticks = [f"{row.shortest}-{row.longest}\n{row.sentences:,} sentences" for row in rows]
        axes.set_xticks(range(len(rows)), ticks)
        axes.set_ylim(bottom=0)


# ---- the section of the page: a table for each text, a row for each recipe and search


class ScoredTranslation(NamedTuple):
    passport: dict
    intervals: dict[str, tuple[float, float]]


def translations_section(runs: Comparison) -> str:
    """Returns a table for each text that was translated, a row for each recipe and search."""
    texts: dict[str, dict[tuple[str, str], list[ScoredTranslation]]] = {}
    for recipe in runs.groups:
        for name, path in recipe.select(runs.paths).items():
            run = runs.available_runs[0].get(name)
            for place, passport in results.read_passports(path, ("translation",)):
                scored = ScoredTranslation(passport, _score_intervals(run, place, passport))
                rows = texts.setdefault(repr(quantity(passport, TRANSLATION_FIELDS)), {})
                rows.setdefault((recipe.name, describe_search(passport)), []).append(scored)
    if not texts:
        return html_parts.omission(
            "no run has translated: python -m zoo translate DIR --bleu does."
        )
    return "".join(map(_score_table, texts.values()))


def _score_table(rows):
    first = next(iter(rows.values()))[0].passport
    metrics = [*first["figures"]]
    cells = [
        (escape(name), escape(search), *(format_score(metric, scored) for metric in metrics))
        for (name, search), scored in rows.items()
    ]
    split = first["split"].removeprefix("translation-")
    caption = (
        f"{split}: {first['tokens']:,} sentences of {first['data']['path']}, {first['counts']}. In "
        "brackets: 95 % interval by sentences; of several seeds, mean, least and greatest"
    )
    signatures = [f"{metric}: {first['figures'][metric]['signature']}" for metric in metrics]
    return (
        f"<h3>{escape(split)}</h3>"
        + html_parts.table(("recipe", "search", *metrics), cells, caption, words=2)
        + html_parts.collapsible("Signatures", html_parts.bullet_list(map(escape, signatures)))
    )


def format_score(metric: str, scored: list[ScoredTranslation]) -> str:
    """Formats a recipe's score: the mean of its seeds with their range, or with an interval."""
    scores = [
        float(one.passport["figures"][metric]["score"])
        for one in scored
        if metric in one.passport["figures"]
    ]
    if not scores:
        return "–"
    ends = scored[0].intervals.get(metric, (math.nan, math.nan))
    if len(scores) > 1:
        ends = min(scores), max(scores)
    shown = number(math.fsum(scores) / len(scores), 2)
    return shown if math.isnan(ends[0]) else f"{shown} {html_parts.interval(ends, 2)}"


def describe_search(passport: dict) -> str:
    """Describes the search that found translations: "beam 12, length_normalisation 1"."""
    how = passport.get("decoding") or {}
    search = how.get("search") or {}
    usual = {field.name: field.default for field in dataclasses.fields(BeamSearch)}
    words = [f"beam {search.get('beam', '–')}"]
    words += [
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in search.items()
        if name != "beam" and value != usual.get(name)
    ]
    runs = how.get("runs") or ()
    words += [f"{len(runs)} runs together"] * (len(runs) > 1)
    words += ["with a language model"] * bool(how.get("language_model"))
    words += ["unknown words replaced"] * bool(how.get("unknowns"))
    return ", ".join(words)


def _score_intervals(run, place, passport):
    """Computes the intervals of a run's scores; {} without translations and references."""
    if run is None or place.prefix:
        return {}
    split = passport["split"].removeprefix("translation-")
    try:
        result = translation_quality.read(place.scores.parent / place.name)
        corpus = _read_references(run.experiment, split)
        (row,) = translation_quality.compare([""], [result], corpus.sentences)
    except UserError:
        return {}
    return {metric: one["interval"] for metric, one in row.items() if metric != "run"}
