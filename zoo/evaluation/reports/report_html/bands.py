"""Perplexity by how often the word occurred in training: often, rarely, never."""

import math

from zoo.errors import UserError
from zoo.evaluation import kept_words
from zoo.evaluation.perplexity import perplexity_of
from zoo.evaluation.reports.report_html import charts, elements
from zoo.evaluation.reports.report_html.elements import text
from zoo.evaluation.reports.report_html.subjects import (
    Subject,
    comparable_groups,
    unjudged,
)

_UNKNOWN = {"unknown": "<unk>: unknown words", "unseen": "never in training"}


def section(subjects: list[Subject]) -> str:
    """Draws log-perplexity by bands, a chart and a table for each group of comparable results.

    Args:
      subjects: the runs.
    """
    parts: list[str] = []
    left_out: list[tuple[str, str]] = []
    by_name = {one.name: one for one in subjects}
    for group, of_runs in comparable_groups(subjects).items():
        rows_of = {}
        for name, passport in of_runs.items():
            rows_of[name], why = rows(by_name[name], passport)
            if why:
                left_out.append((f"{name} (intervals)", why))
        parts.append(_column(group, rows_of, by_name))
    parts.append(elements.all_missing(left_out))
    parts.append(elements.all_missing(unjudged(subjects)))
    return "".join(parts)


def rows(subject: Subject, passport: dict) -> tuple[list[dict], str]:
    """Returns the figures of bands, with intervals where the scores are kept, and why not.

    Args:
      subject: the run.
      passport: of its perplexity.

    Returns:
      (rows as `kept_words.bands` gives them, "" or the reason why the intervals are NaN).
    """
    try:
        if subject.run is None:
            raise UserError(subject.no_run)
        arrays = passport["place"].read_scores(passport)
        return kept_words.bands(subject.run, kept_words.read(subject.run, passport, arrays)), ""
    except UserError as error:
        none = (math.nan, math.nan)
        return [{**row, "interval": none} for row in passport["figures"].get("bands", [])], str(
            error
        )


def _column(name, rows_of, by_name):
    bands = dict.fromkeys(row["band"] for rows in rows_of.values() for row in rows)
    numbers = {run: by_name[run].number for run in rows_of}
    chart, table = [], []
    for band in sorted(bands, key=_least_count):
        found = {run: row for run, rows in rows_of.items() for row in rows if row["band"] == band}
        estimates = [
            charts.Estimate(numbers[run], float(row["log_perplexity"]), row["interval"])
            for run, row in found.items()
        ]
        chart.append((label(band), estimates))
        tokens = [row["tokens"] for row in found.values()]
        cells = [text(label(band)), f"{tokens[0]:,}" if len({*tokens}) == 1 else "–"]
        for run in rows_of:
            row = found.get(run)
            cells.append("–" if row is None else _cell(row))
        table.append(cells)
    drawn = charts.intervals(
        chart,
        "nats per token",
        f"Log-perplexity of {name} by how often the word occurred in training; the table has the "
        "numbers.",
    )
    header = ("occurrences in training", "tokens", *(f"{run}: perplexity" for run in rows_of))
    caption = "Line: 95 % interval by bootstrap over sentences. Further left is better."
    only = {*numbers.values()}
    legend = charts.legend([one.name for one in by_name.values()], only)
    return (
        f"<h3>{text(name)}</h3>"
        + charts.figure(legend + drawn, caption)
        + elements.table(header, table, f"{name}: perplexity and its 95 % interval")
    )


def _cell(row):
    low, high = map(perplexity_of, row["interval"])
    middle = elements.perplexity(float(row["perplexity"]))
    if math.isnan(low):
        return middle
    return f"{middle} [{elements.perplexity(low)}, {elements.perplexity(high)}]"


def label(band: str) -> str:
    """Names a band in plain words.

    Args:
      band: its name in passports: "unknown", "unseen", "1-9", "10000+".
    """
    if band in _UNKNOWN:
        return _UNKNOWN[band]
    least, _, most = band.rstrip("+").partition("-")
    return f"{int(least):,} to {int(most):,} times" if most else f"{int(least):,} times or more"


def _least_count(band):
    """Returns the sort key of a band; unknown and unseen words come first."""
    return [*_UNKNOWN].index(band) - 2 if band in _UNKNOWN else int(band.rstrip("+").split("-")[0])
