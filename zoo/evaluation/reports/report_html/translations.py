"""BLEU and chrF of translations, as far as the runs have translated."""

import dataclasses
import math
from typing import NamedTuple

from zoo.decoding import BeamSearch
from zoo.errors import UserError
from zoo.evaluation import results, translation_quality
from zoo.evaluation.reports.report_html import elements
from zoo.evaluation.reports.report_html.elements import number, text
from zoo.evaluation.reports.report_html.subjects import Recipe, Subject
from zoo.evaluation.results import OF_TRANSLATIONS, quantity

# Resamples of an interval.
SAMPLES = 1000


class Scored(NamedTuple):
    """Scores of a run's translations."""

    search: str
    passport: dict
    intervals: dict[str, tuple[float, float]]


def section(recipes: list[Recipe]) -> str:
    """Returns a table for each text that was translated, a row for each recipe and search."""
    texts: dict[str, dict[tuple[str, str], list[Scored]]] = {}
    for recipe in recipes:
        for subject in recipe.subjects:
            for place, passport in results.read_translations(subject.path):
                scored = Scored(search_of(passport), passport, _intervals(subject, place, passport))
                rows = texts.setdefault(repr(quantity(passport, OF_TRANSLATIONS)), {})
                rows.setdefault((recipe.name, scored.search), []).append(scored)
    if not texts:
        return elements.missing("no run has translated: python -m zoo translate DIR --bleu does.")
    return "".join(_table(rows) for rows in texts.values())


def _table(rows):
    first = next(iter(rows.values()))[0].passport
    metrics = [*first["figures"]]
    cells = [
        (text(name), text(search), *(cell(metric, scored) for metric in metrics))
        for (name, search), scored in rows.items()
    ]
    split = first["split"].removeprefix("translation-")
    caption = (
        f"{split}: {first['tokens']:,} sentences of {first['data']['path']}, {first['counts']}. In "
        "brackets: 95 % interval by sentences; of several seeds, mean, least and greatest"
    )
    signatures = [f"{metric}: {first['figures'][metric]['signature']}" for metric in metrics]
    return (
        f"<h3>{text(split)}</h3>"
        + elements.table(("recipe", "search", *metrics), cells, caption, words=2)
        + elements.more("Signatures", elements.items(map(text, signatures)))
    )


def cell(metric: str, scored: list[Scored]) -> str:
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
    return shown if math.isnan(ends[0]) else f"{shown} {elements.interval(ends, 2)}"


def search_of(passport: dict) -> str:
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


def _intervals(subject: Subject, place, passport):
    """Computes the intervals of a run's scores; {} without translations and references."""
    if subject.run is None or place.prefix:
        return {}
    split = passport["split"].removeprefix("translation-")
    experiment = subject.run.experiment
    try:
        file = place.scores.parent / place.name
        result = translation_quality.read(file, split)
        corpus = experiment.vocabulary.read(experiment.data.as_written(), split)
        (row,) = translation_quality.compare([subject.name], [result], corpus.sentences, SAMPLES)
    except UserError:
        return {}
    return {metric: one["interval"] for metric, one in row.items() if metric != "run"}
