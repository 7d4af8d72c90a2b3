"""Perplexity by how often the word occurred in training: often, rarely, never."""

import math

from zoo.evaluation.perplexity import perplexity_of
from zoo.evaluation.reports import bar_plots, plot_style
from zoo.evaluation.reports.kept_pictures import kept_bands
from zoo.evaluation.reports.report_html import charts, elements
from zoo.evaluation.reports.report_html.elements import text
from zoo.evaluation.reports.report_html.subjects import (
    Recipe,
    comparable_groups,
    numbered,
    unjudged,
)

_UNKNOWN = {"unknown": "<unk>: unknown words", "unseen": "never in training"}


def section(recipes: list[Recipe]) -> str:
    """Draws log-perplexity by bands, a chart and a table for each group of comparable results."""
    parts: list[str] = []
    without: list[str] = []
    for group, of_runs in comparable_groups(recipes).items():
        rows_of = {}
        for recipe in recipes:
            passports = [*recipe.of(of_runs).values()]
            if passports:
                rows_of[recipe] = bar_plots.band_bars([kept_bands(one) for one in passports])
                if len(passports) == 1 and passports[0]["place"].read_scores(passports[0]) is None:
                    without.append(recipe.name)
        parts.append(_column(group, rows_of, recipes))
    why = "without the kept scores of words: python -m zoo evaluate keeps them."
    parts.append(
        elements.all_missing((f"{name} (intervals)", why) for name in dict.fromkeys(without))
    )
    parts.append(elements.all_missing(unjudged(recipes)))
    return "".join(parts)


def _column(name, rows_of, recipes):
    chart, table = [], []
    for band in sorted(plot_style.groups(rows_of), key=bar_plots.least_count):
        found = {recipe: bars[band] for recipe, bars in rows_of.items() if band in bars}
        estimates = [
            charts.Estimate(recipe.number, bar.height, bar.interval)
            for recipe, bar in found.items()
        ]
        tokens = [bar.items for bar in found.values()]
        shared = f"{tokens[0]:,.0f}" if len({*tokens}) == 1 else "–"
        chart.append((f"{label(band)} ({shared})" if shared != "–" else label(band), estimates))
        cells = [text(label(band)), shared]
        for recipe in rows_of:
            cells.append(_cell(found[recipe]) if recipe in found else "–")
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
    legend = charts.legend(numbered(recipes), only)
    return (
        f"<h3>{text(name)}</h3>"
        + charts.figure(legend + drawn, caption)
        + elements.table(header, table, f"{name}: perplexity and its interval")
    )


def _cell(bar):
    low, high = map(perplexity_of, bar.interval)
    middle = elements.perplexity(perplexity_of(bar.height))
    if math.isnan(low):
        return middle
    return f"{middle} [{elements.perplexity(low)}, {elements.perplexity(high)}]"


def label(band: str) -> str:
    """Names a band in plain words."""
    if band in _UNKNOWN:
        return _UNKNOWN[band]
    least, _, most = band.rstrip("+").partition("-")
    return f"{int(least):,} to {int(most):,} times" if most else f"{int(least):,} times or more"
