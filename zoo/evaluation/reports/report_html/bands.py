"""Perplexity by how often the word occurred in training: often, rarely, never."""

import math

import numpy as np

from zoo.evaluation import item_scores
from zoo.evaluation.perplexity import perplexity_of
from zoo.evaluation.reports.report_html import charts, elements
from zoo.evaluation.reports.report_html.elements import text
from zoo.evaluation.reports.report_html.subjects import (
    Recipe,
    comparable_groups,
    unjudged,
)

_UNKNOWN = {"unknown": "<unk>: unknown words", "unseen": "never in training"}
_NONE = (math.nan, math.nan)


def section(recipes: list[Recipe]) -> str:
    """Draws log-perplexity by bands, a chart and a table for each group of comparable results."""
    parts: list[str] = []
    without: list[str] = []
    for group, of_runs in comparable_groups(recipes).items():
        rows_of = {}
        for recipe in recipes:
            passports = [*recipe.of(of_runs).values()]
            if passports:
                rows_of[recipe] = rows(passports)
                without += [recipe.name] * any(row["interval"] == _NONE for row in rows_of[recipe])
        parts.append(_column(group, rows_of, recipes))
    why = "without the kept scores of words: python -m zoo evaluate keeps them."
    parts.append(
        elements.all_missing((f"{name} (intervals)", why) for name in dict.fromkeys(without))
    )
    parts.append(elements.all_missing(unjudged(recipes)))
    return "".join(parts)


def rows(passports: list[dict]) -> list[dict]:
    """Returns the figures of bands: means over seeds, with their intervals.

    The interval is the 95 % interval by bootstrap over sentences of a single run, NaN twice if the
    scores of its words are not kept; of several seeds it reaches from the least to the greatest.
    """
    of_seeds = [
        {row["band"]: row for row in passport["figures"].get("bands", [])} for passport in passports
    ]
    arrays = passports[0]["place"].read_scores(passports[0])
    intervals = item_scores.band_intervals(arrays) if arrays is not None else {}
    found = []
    for band in dict.fromkeys(band for of_seed in of_seeds for band in of_seed):
        here = [of_seed[band] for of_seed in of_seeds if band in of_seed]
        losses = [float(row["log_perplexity"]) for row in here]
        ends = (min(losses), max(losses)) if len(passports) > 1 else intervals.get(band, _NONE)
        mean = float(np.mean(losses))
        figures = {"log_perplexity": mean, "perplexity": perplexity_of(mean), "interval": ends}
        found.append({**here[0], **figures})
    return found


def _column(name, rows_of, recipes):
    bands = dict.fromkeys(row["band"] for rows in rows_of.values() for row in rows)
    chart, table = [], []
    for band in sorted(bands, key=_least_count):
        found = {
            recipe: row for recipe, rows in rows_of.items() for row in rows if row["band"] == band
        }
        estimates = [
            charts.Estimate(recipe.number, row["log_perplexity"], row["interval"])
            for recipe, row in found.items()
        ]
        tokens = [row["tokens"] for row in found.values()]
        shared = f"{tokens[0]:,}" if len({*tokens}) == 1 else "–"
        chart.append((f"{label(band)} ({shared})" if shared != "–" else label(band), estimates))
        cells = [text(label(band)), shared]
        for recipe in rows_of:
            row = found.get(recipe)
            cells.append("–" if row is None else _cell(row))
        table.append(cells)
    drawn = charts.intervals(
        chart,
        "nats per token",
        f"Log-perplexity of {name} by how often the word occurred in training; the table has the "
        "numbers.",
    )
    header = (
        "occurrences in training",
        "tokens",
        *(f"{recipe.name}: perplexity" for recipe in rows_of),
    )
    caption = (
        "In brackets: tokens. Line: 95 % interval by bootstrap over sentences; of several seeds, "
        "the least and the greatest. Further left is better."
    )
    only = {recipe.number for recipe in rows_of}
    legend = charts.legend([recipe.name for recipe in recipes], only)
    return (
        f"<h3>{text(name)}</h3>"
        + charts.figure(legend + drawn, caption)
        + elements.table(header, table, f"{name}: perplexity and its interval")
    )


def _cell(row):
    low, high = map(perplexity_of, row["interval"])
    middle = elements.perplexity(float(row["perplexity"]))
    if math.isnan(low):
        return middle
    return f"{middle} [{elements.perplexity(low)}, {elements.perplexity(high)}]"


def label(band: str) -> str:
    """Names a band in plain words."""
    if band in _UNKNOWN:
        return _UNKNOWN[band]
    least, _, most = band.rstrip("+").partition("-")
    return f"{int(least):,} to {int(most):,} times" if most else f"{int(least):,} times or more"


def _least_count(band):
    """Returns the sort key of a band; unknown and unseen words come first."""
    return [*_UNKNOWN].index(band) - 2 if band in _UNKNOWN else int(band.rstrip("+").split("-")[0])
