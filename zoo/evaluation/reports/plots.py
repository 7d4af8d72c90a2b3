"""Plots of figures, in the format of the file's suffix: PNG, PDF or SVG.

Each function takes plain numbers by the name of the recipe, draws with matplotlib's own objects (no
display) and writes one file, whole or not at all. Recipes keep their colour by their order. Counts
stand under every bar, or in it where they differ between recipes, and bars of few items are
hatched. Reports call `plot_style.check_file` before they compute anything.
"""

import math
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from zoo import lazy
from zoo.evaluation import significance
from zoo.evaluation.perplexity import UNKNOWN
from zoo.evaluation.reports import plot_style, validations
from zoo.evaluation.reports.plot_style import colour, marker

with lazy.extra():
    from matplotlib.axes import Axes

# A bar of fewer items is hatched: its interval spans a third of the axis and more.
FEW = 30
NATS = "nats per token"
_GREY: dict[str, Any] = {"cmap": "Greys", "vmin": 0, "vmax": 1, "aspect": "equal"}
# Text within bars of any colour.
_ON_BAR = {"facecolor": "white", "alpha": 0.85, "linewidth": 0, "pad": 1.5}
_HATCHED: dict[str, Any] = {"hatch": "///", "edgecolor": "white", "alpha": 0.6}


class Bar(NamedTuple):
    """A bar with its interval.

    Attributes:
      height: a mean over seeds, or a single figure; NaN for a gap, inf for the text "∞" alone.
      interval: (low, high), NaN twice without one.
      items: number of pairs or tokens that the figure is of.
      seeds: the figure of each seed, points on the bar; () for a single run.
    """

    height: float
    interval: tuple[float, float]
    items: float
    seeds: tuple[float, ...] = ()


class Curve(NamedTuple):
    """Learning curves of the seeds of a recipe.

    Attributes:
      name: of the recipe.
      validation: (x, nats per token) of each validation of each seed.
      training: the same of the training loss, or ().
    """

    name: str
    validation: Sequence[Sequence[tuple[float, float]]]
    training: Sequence[Sequence[tuple[float, float]]] = ()


def learning_curves(
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

    Args:
      curves: of each recipe.
      file: the picture to write.
      x_label: name of the horizontal axis.
      limit: a lower bound for any model, nats per token, if it is known.
      title: of the picture.
    """
    several = any(len(curve.validation) > 1 for curve in curves)
    notes = ["shade: least and greatest of the seeds"] * several
    notes += ["dashed: training loss"] * any(curve.training for curve in curves)
    label = f"validation, {NATS}"
    with plot_style.picture(file, [title], x_label, label, "; ".join(notes)) as (axes,):
        for number, curve in enumerate(curves):
            _curve(axes, curve.validation, number, label=curve.name)
            _curve(axes, curve.training, number, linestyle="--", linewidth=1, marker="")
        if limit is not None:
            axes.axhline(limit, color="black", linestyle=":", label="the language's own limit")


def _curve(axes, seeds, number, **how):
    """Draws the mean of seeds with their range, and each seed as a thin line."""
    if not seeds:
        return
    style = {"color": colour(number), "marker": marker(number), **how}
    x, mean, least, greatest = validations.mean_curve(seeds)
    axes.plot(x, mean, **style)
    if len(seeds) > 1:
        axes.fill_between(x, least, greatest, color=colour(number), alpha=0.2, linewidth=0)
        for points in seeds:
            axes.plot(*zip(*points, strict=True), color=colour(number), linewidth=0.7, alpha=0.6)


def _draw_bars(axes: Axes, groups: Sequence[str], bars, numbers: Mapping[str, int]) -> bool:
    """Draws bars of {recipe: {group: Bar}}, side by side within a group.

    Returns:
      Whether a bar is of `FEW` items.
    """
    width, any_few = 0.8 / max(len(bars), 1), False
    for place, (name, by_group) in enumerate(bars.items()):
        there = {x: by_group[group] for x, group in enumerate(groups) if group in by_group}
        if not there:
            continue
        offset = (place - (len(bars) - 1) / 2) * width
        xs = [x + offset for x in there]
        heights = [0 if math.isinf(bar.height) else bar.height for bar in there.values()]
        ends = np.array([bar.interval for bar in there.values()], float).reshape(-1, 2).T
        drawn = axes.bar(xs, heights, width * 0.92, color=colour(numbers[name]), label=name)
        axes.errorbar(xs, heights, np.abs(ends - heights), fmt="none", ecolor="black")
        for x, patch, bar in zip(xs, drawn.patches, there.values(), strict=True):
            if bar.items < FEW:
                patch.set(**_HATCHED)
                any_few = True
            if len(bar.seeds) > 1:
                points = [x] * len(bar.seeds)
                axes.plot(points, bar.seeds, "wo", markeredgecolor="black", markersize=4.5)
    return any_few


def _name_bars(axes, groups, bars, unit, value_format):
    """Writes the value of each bar at its foot, and its count below the group or beside it.

    At the foot a value meets neither its interval nor the line of chance.
    """
    width = 0.8 / max(len(bars), 1)
    names = []
    for x, group in enumerate(groups):
        here = {name: by_group[group] for name, by_group in bars.items() if group in by_group}
        counts = {bar.items for bar in here.values()}
        shared = f"\n{counts.pop():,.0f} {unit}" if len(counts) == 1 else ""
        names.append(f"{group}{shared}")
        for place, name in enumerate(bars):
            if name not in here or math.isnan(here[name].height):
                continue
            bar = here[name]
            value = "∞" if math.isinf(bar.height) else value_format(bar.height)
            axes.annotate(
                value if shared else f"{value}\nof {bar.items:,.0f}",
                (x + (place - (len(bars) - 1) / 2) * width, 0),
                xytext=(0, 5),
                textcoords="offset points",
                ha="center",
                fontsize=11 if shared else 9,
                bbox=_ON_BAR,
            )
    axes.set_xticks(range(len(groups)), names)
    axes.tick_params(axis="x", length=0)


def _mark_few(axes, unit):
    """Adds the meaning of hatched bars to the legend."""
    label = f"hatched: fewer than {FEW} {unit}"
    axes.fill_between([], [], facecolor="0.5", label=label, **_HATCHED)


def _groups(values):
    """Returns all groups of all recipes, in order of first appearance."""
    return list(dict.fromkeys(group for by_group in values.values() for group in by_group))


def _width(groups, recipes):
    """Returns the inches that bars with their texts need."""
    return max(plot_style.WIDTH, 1.8 + groups * max(1.15, 0.45 * recipes + 0.3))


def _numbers(names):
    return {name: number for number, name in enumerate(names)}


def least_count(band: str) -> int:
    """Returns the sort key of a band; the bands of unknown and of unseen words come first.

    Args:
      band: its name in passports.
    """
    without = {UNKNOWN: -2, "unseen": -1}
    return without[band] if band in without else int(band.rstrip("+").split("-")[0])


def band_bars(seeds: Sequence[Sequence[dict]]) -> dict[str, Bar]:
    """Returns {band: its bar} of the seeds of a recipe.

    The interval of several seeds reaches from the least to the greatest.

    Args:
      seeds: of each seed the "bands" of its passport's figures; each may have an "interval".
    """
    bars = {}
    for band in dict.fromkeys(row["band"] for rows in seeds for row in rows):
        found = [row for rows in seeds for row in rows if row["band"] == band]
        losses = tuple(float(row["log_perplexity"]) for row in found)  # JSON has inf as text
        interval = found[0].get("interval", (math.nan, math.nan))
        if len(losses) > 1:
            interval = min(losses), max(losses)
        tokens = float(np.mean([row["tokens"] for row in found]))
        bars[band] = Bar(float(np.mean(losses)), interval, tokens, losses[1:] and losses)
    return bars


def bands(
    rows: Mapping[str, Sequence[Sequence[dict]]],
    file: str | pathlib.Path,
    limit: Mapping[str, float] | None = None,
    title: str = "Log-perplexity by frequency of the word",
):
    """Draws log-perplexity of words by how often they were seen in training.

    Args:
      rows: for each recipe, of each seed the "bands" of its passport's figures; each may have an
        "interval".
      file: the picture to write.
      limit: for each band the language's own log-perplexity, nats per token: a lower bound over all
        bands together, but not within one.
      title: of the picture.
    """
    bars = {name: band_bars(seeds) for name, seeds in rows.items()}
    groups = sorted(_groups(bars), key=least_count)
    several = any(bar.seeds for of_recipe in bars.values() for bar in of_recipe.values())
    note = "lines: 95 % interval by sentences" + (
        "; of several seeds, least and greatest" if several else ""
    )
    width = _width(len(groups), len(bars))
    label = "occurrences of the word in training"
    with plot_style.picture(file, [title], label, NATS, note, width) as (axes,):
        few = _draw_bars(axes, groups, bars, _numbers(bars))
        _name_bars(axes, groups, bars, "tokens", "{:.1f}".format)
        if few:
            _mark_few(axes, "tokens")
        if limit:
            columns = [column for column, group in enumerate(groups) if group in limit]
            axes.hlines(
                [limit[groups[column]] for column in columns],
                [column - 0.42 for column in columns],
                [column + 0.42 for column in columns],
                color="black",
                label="the language itself",
            )


def accuracy_bar(seeds: Sequence[tuple[int, int]]) -> Bar:
    """Returns the bar of an accuracy in percent, the mean of seeds.

    Its interval is the 95 % interval for as many pairs as one seed was asked (Wilson 1927).

    Args:
      seeds: (right pairs, pairs) of each seed.
    """
    right, pairs = np.mean(seeds, axis=0)
    low, high = significance.binomial_interval(right, pairs)
    shares = tuple(100 * one / of for one, of in seeds)
    return Bar(100 * right / pairs, (100 * low, 100 * high), pairs, shares[1:] and shares)


def accuracy(
    counts: Mapping[str, Mapping[str, Sequence[tuple[int, int]]]],
    file: str | pathlib.Path,
    x_label: str = "",
    title: str = "accuracy on pairs (%)",
):
    """Draws accuracy on minimal pairs, a panel for each phenomenon and in it a group for each case.

    The line on a bar is the 95 % interval for as many pairs (Wilson 1927). For several seeds the
    bar is the mean, and each seed is a point.

    Args:
      counts: {recipe: {"phenomenon, case": (right pairs, pairs) of each seed}}.
      file: the picture to write.
      x_label: what the cases of a phenomenon are.
      title: of the vertical axis.
    """
    bars: dict[str, dict[str, dict[str, Bar]]] = {}
    for name in _groups(counts):
        phenomenon, _, case = name.partition(", ")
        for recipe, by_case in counts.items():
            of_recipe = bars.setdefault(phenomenon, {}).setdefault(recipe, {})
            if any(pairs for _, pairs in by_case.get(name, ())):
                of_recipe[case or "all"] = accuracy_bar(by_case[name])
    cases = {phenomenon: _groups(panel) for phenomenon, panel in bars.items()}
    shown = {phenomenon: max(1, len(groups)) for phenomenon, groups in cases.items()}
    note = "lines: 95 % interval" + "; points: seeds" * any(
        bar.seeds for panel in bars.values() for of in panel.values() for bar in of.values()
    )
    width = _width(sum(shown.values()), len(counts))
    with plot_style.picture(file, shown, x_label, title, note, width) as every:
        few = False
        for axes, (phenomenon, panel) in zip(every, bars.items(), strict=True):
            few |= _draw_bars(axes, cases[phenomenon], panel, _numbers(counts))
            axes.axhline(50, color="black", linestyle=":", zorder=0.5, label="chance")
            _name_bars(axes, cases[phenomenon], panel, "pairs", "{:.0f}".format)
        if few:
            _mark_few(every[-1], "pairs")
        every[0].set_ylim(0, 102)


def spectra(values: Mapping[str, np.ndarray], file: str | pathlib.Path, contexts: int):
    """Draws singular values of log-probability matrices, largest first, on a logarithmic scale.

    Args:
      values: of each run, divided by the largest.
      file: the picture to write.
      contexts: rows of the matrices.
    """
    title = "Singular values of the log-probability matrix"
    label = f"number of the singular value, of {contexts:,} contexts"
    with plot_style.picture(file, [title], label, "divided by the largest") as (axes,):
        for number, (name, of_run) in enumerate(values.items()):
            axes.plot(range(1, len(of_run) + 1), of_run, color=colour(number), label=name)
        # Smaller values are rounding of float32.
        axes.set(yscale="log", ylim=(1e-8, 1.5))
        axes.yaxis.set_major_formatter(plot_style.PLAIN)


def attention(
    source: Sequence[str],
    target: Sequence[str],
    weights: np.ndarray,
    file: str | pathlib.Path,
    label: str = "weight",
):
    """Draws how much each word of a translation attends to, or depends on, each source word.

    Args:
      source: words.
      target: words.
      weights: [T, S], weights from 0 to 1, or other numbers from 0 on, the greatest drawn darkest.
      file: the picture to write.
      label: the name of the numbers.
    """
    width, height = (1.8 + 0.36 * max(len(words), 3) for words in (source, target))
    shape = (max(len(target), 1), max(len(source), 1))
    greatest = 1 if label == "weight" else float(np.max(weights, initial=0)) or 1
    with plot_style.matrix(file, width + 0.8, height) as (figure, axes):
        image = axes.imshow(
            np.reshape(weights, shape) if np.size(weights) else np.zeros(shape),
            **{**_GREY, "vmax": greatest},
        )
        axes.set_xticks(range(len(source)), [*source], rotation=90)
        axes.set_yticks(range(len(target)), [*target])
        axes.xaxis.tick_top()
        axes.tick_params(length=0)
        figure.colorbar(image, label=label, shrink=0.8)


def by_length(
    spans: Sequence[str],
    counts: Sequence[int],
    curves: Mapping[str, Sequence[tuple[float, tuple[float, float]]]],
    file: str | pathlib.Path,
):
    """Draws BLEU against the length of the source, with the number of sentences and intervals.

    Args:
      spans: of lengths, from the shortest.
      counts: sentences of each span.
      curves: by name, (BLEU, its interval) of each span, percent.
      file: the picture to write.
    """
    title, note = "BLEU by the length of the source", "lines: 95 % interval by sentences"
    with plot_style.picture(file, [title], "source words", "BLEU", note) as (axes,):
        for number, (name, points) in enumerate(curves.items()):
            # Beside each other, lest intervals cover each other.
            xs = [x + (number - (len(curves) - 1) / 2) * 0.06 for x in range(len(spans))]
            scores = np.array([score for score, _ in points])
            ends = np.array([interval for _, interval in points], float).reshape(-1, 2).T
            style: Any = {"color": colour(number), "marker": marker(number), "label": name}
            axes.errorbar(xs, scores, np.abs(ends - scores), **style)
        named = zip(spans, counts, strict=True)
        names = [f"{span}\n{count:,} sentences" for span, count in named]
        axes.set_xticks(range(len(spans)), names)
        axes.set_ylim(bottom=0)


# Fields of an experiment in plain words.
_FIELDS = {"data.train": "sentences of training text"}


def sweep(
    field: str,
    panels: Mapping[str, Mapping[str, Sequence]],
    lines: Mapping[str, Mapping[str, float]],
    file: str | pathlib.Path,
):
    """Draws log-perplexity against a number of the experiment, a panel for each text.

    Args:
      field: its name.
      panels: {text: {recipe: its points (see zoo.evaluation.reports.sweep.Point)}}. The line of a
        point reaches from the least to the greatest of its runs; where all points are of one run,
        it is the interval.
      lines: {text: {recipe: the log-perplexity of runs without the number, nats per token}}.
      file: the picture to write.
    """
    numbers = _numbers(_groups(panels))
    points = [point for panel in panels.values() for curve in panel.values() for point in curve]
    several = any(len(point.losses) > 1 for point in points)
    note = "lines: least and greatest of the seeds" if several else "lines: 95 % interval"
    label = _FIELDS.get(field, field)
    with plot_style.picture(file, [*panels], label, NATS, note) as every:
        for axes, (text, curves) in zip(every, panels.items(), strict=True):
            for name, curve in curves.items():
                means = np.array([point.mean for point in curve])
                # An interval of one run would not mean the same beside a range of seeds.
                spans = [point.span if several else point.interval for point in curve]
                ends = np.array(spans).T
                style: Any = {"color": colour(numbers[name]), "marker": marker(numbers[name])}
                xs = [point.value for point in curve]
                axes.errorbar(xs, means, np.abs(ends - means), label=name, **style)
            for number, (name, height) in enumerate(lines.get(text, {}).items(), len(numbers)):
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
