"""Curves: losses against steps, against a field of the recipe, by length, and of singular values.

Recipes have their colour by their name. See `plot_style` for files and panels.
"""

import pathlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from zoo.comparison import plot_style
from zoo.comparison.comparison import Group
from zoo.comparison.plot_style import colour
from zoo.comparison.seeds import numbers_of

# Fields of an experiment in plain words.
_FIELDS = {"data.train": "sentences of training text"}


class Curve(NamedTuple):
    """Learning curves of the seeds of a recipe."""

    recipe: Group
    # (x, nats per token) of each validation of each seed
    validation: Sequence[Sequence[tuple[float, float]]]
    training: Sequence[Sequence[tuple[float, float]]] = ()


def draw_learning_curves(
    curves: Sequence[Curve],
    file: str | pathlib.Path,
    x_label: str,
    limit: float | None = None,
    title: str = "Learning curves",
):
    """Draws validation log-perplexity of recipes, and their training loss (dashed) if it is given.

    Of several seeds the line is the mean, the shade reaches from the least to the greatest, and
    each seed is a thin line. A training loss need not have the denominator of the validation: it is
    over all that is predicted, with the boundaries, and may be sampled.
    """
    several = any(len(curve.validation) > 1 for curve in curves)
    notes = ["shade: least and greatest of the seeds"] * several
    notes += ["dashed: training loss"] * any(curve.training for curve in curves)
    label = f"validation, {plot_style.NATS}"
    with plot_style.picture(file, [title], x_label, label, "; ".join(notes)) as (axes,):
        for (name, number, _), validation, training in curves:
            _curve(axes, validation, number, label=name)
            _curve(axes, training, number, linestyle="--", linewidth=1, marker="")
        if limit is not None:
            axes.axhline(limit, color="black", linestyle=":", label="the language's own limit")


def mean_curve(seeds: Sequence[Sequence[tuple[float, float]]]) -> np.ndarray:
    """Returns [4, n]: mean x, and mean, least and greatest y of the n-th points of several seeds.

    Seeds that stop early end the curve, for a mean over other seeds would jump.
    """
    count = min(map(len, seeds))
    points = np.array([[*points][:count] for points in seeds], float).reshape(len(seeds), count, 2)
    x, y = points[..., 0], points[..., 1]
    return np.array([x.mean(0), y.mean(0), y.min(0), y.max(0)])


def _curve(axes, seeds, number, **how):
    """Draws the mean of seeds with their range, and each seed as a thin line."""
    if not seeds:
        return
    style = {**plot_style.style(number), **how}
    x, mean, least, greatest = mean_curve(seeds)
    axes.plot(x, mean, **style)
    if len(seeds) > 1:
        axes.fill_between(x, least, greatest, color=colour(number), alpha=0.2, linewidth=0)
        for points in seeds:
            axes.plot(*zip(*points, strict=True), color=colour(number), linewidth=0.7, alpha=0.6)


def sweep(
    field: str,
    panels: Mapping[str, Mapping[Group, Sequence]],
    lines: Mapping[str, Mapping[Group, float]],
    file: str | pathlib.Path,
):
    """Draws log-perplexity against a number of the experiment, a panel for each text."""
    points = [point for panel in panels.values() for curve in panel.values() for point in curve]
    several = any(len(point.runs.losses) > 1 for point in points)
    note = "lines: least and greatest of the seeds" if several else "lines: 95 % interval"
    label = _FIELDS.get(field, field)
    with plot_style.picture(file, [*panels], label, plot_style.NATS, note) as every:
        for axes, (text, curves) in zip(every, panels.items(), strict=True):
            for recipe, curve in curves.items():
                means = np.array([point.runs.loss for point in curve])
                # An interval of one run would not mean the same beside a range of seeds.
                spans = [point.runs.span if several else point.runs.interval for point in curve]
                ends = np.array(spans).T
                xs, style = [point.value for point in curve], plot_style.style(recipe.number)
                axes.errorbar(xs, means, np.abs(ends - means), label=recipe.name, **style)
            for (name, number, _), height in lines.get(text, {}).items():
                axes.axhline(height, color=colour(number), linestyle="--", label=name)
            _scale(axes, [point.value for point in points])


def _scale(axes, values):
    """Makes an axis logarithmic if its numbers span more than a power of ten, with a tick each."""
    if min(values) <= 0 or max(values) <= 10 * min(values):
        return
    axes.set_xscale("log")
    distinct = sorted({*values})
    if len(distinct) <= 8:
        axes.set_xticks(distinct, [f"{value:,g}" for value in distinct], rotation=30)
        axes.minorticks_off()
    else:
        axes.xaxis.set_major_formatter(plot_style.PLAIN)


def by_length(
    spans: Sequence[str],
    counts: Sequence[int],
    curves: Mapping[str, Sequence[tuple[float, tuple[float, float]]]],
    file: str | pathlib.Path,
):
    """Draws BLEU against the length of the source, with the number of sentences and intervals."""
    title, note = "BLEU by the length of the source", "lines: 95 % interval by sentences"
    numbers = numbers_of([*curves])
    with plot_style.picture(file, [title], "source words", "BLEU", note) as (axes,):
        for place, (name, points) in enumerate(curves.items()):
            # Beside each other, lest intervals cover each other.
            xs = [x + (place - (len(curves) - 1) / 2) * 0.06 for x in range(len(spans))]
            scores = np.array([score for score, _ in points])
            ends = np.array([interval for _, interval in points], float).reshape(-1, 2).T
            style = plot_style.style(numbers[place])
            axes.errorbar(xs, scores, np.abs(ends - scores), label=name, **style)
        named = zip(spans, counts, strict=True)
        names = [f"{span}\n{count:,} sentences" for span, count in named]
        axes.set_xticks(range(len(spans)), names)
        axes.set_ylim(bottom=0)
