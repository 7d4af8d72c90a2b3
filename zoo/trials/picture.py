"""The picture of trials: perplexity against minutes of training, and against parameters."""

import math
import pathlib
from typing import Any

import numpy as np

from zoo import lazy
from zoo.evaluation.perplexity import perplexity_of
from zoo.evaluation.reports import plot_style
from zoo.runs import output_files
from zoo.trials.summary import Row, Summary

with lazy.extra():
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import EngFormatter, LogLocator, MaxNLocator, NullLocator


def draw(summary: Summary, file: pathlib.Path):
    """Draws validation perplexity against minutes, and the judged perplexity against parameters.

    Areas on the left span the seeds. On the right, lines are 95 % intervals over sentences, and
    small points are seeds.
    """
    figure = Figure(figsize=(11, 5), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    curves, points = figure.subplots(1, 2)
    numbers = plot_style.numbers(row.name for row in summary.rows)
    for row in summary.rows:
        style = plot_style.style(numbers[row.name])
        _draw_curve(curves, row, style)
        _draw_point(points, row, style)
    curves.set(
        title="While training",
        xlabel="minutes of training steps",
        ylabel="perplexity on validation; areas: seeds",
    )
    points.set(
        title="Trained",
        xlabel="parameters",
        ylabel=f"perplexity on {summary.split}; lines: 95 %, points: seeds",
    )
    points.xaxis.set_major_formatter(EngFormatter())
    points.set_xlim(0, 1.08 * max(row.parameters for row in summary.rows))
    for axes in (curves, points):
        if axes.has_data():
            axes.set_yscale("log")
            axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            low, high = axes.get_ylim()
            if high < 4 * low:  # too few of these ticks
                axes.yaxis.set_major_locator(MaxNLocator(6))
            axes.yaxis.set_major_formatter("{x:,.6g}")
            axes.yaxis.set_minor_locator(NullLocator())
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", which="both", color="0.92")
        axes.set_axisbelow(True)
    figure.legend(
        *points.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False
    )
    kind = file.suffix.removeprefix(".")
    output_files.write(file, lambda path: figure.savefig(path, format=kind), "the picture")


def _draw_curve(axes, row: Row, style: dict[str, Any]):
    """Draws the validations of a head: the mean of its seeds, and their span."""
    if not row.curve:
        return
    minutes = [point.minutes for point in row.curve]
    means = [perplexity_of(float(np.mean(point.losses))) for point in row.curve]
    axes.plot(minutes, means, markersize=4, **style)
    if len(row.losses) > 1:
        low = [perplexity_of(min(point.losses)) for point in row.curve]
        high = [perplexity_of(max(point.losses)) for point in row.curve]
        axes.fill_between(minutes, low, high, color=style["color"], alpha=0.2, linewidth=0)


def _draw_point(axes, row: Row, style: dict[str, Any]):
    """Draws the final perplexity of a head; an infinite one has its name in the legend alone."""
    if not math.isfinite(row.perplexity):
        axes.plot([], [], label=_label(row), **style)
        return
    low, high = map(perplexity_of, row.interval)
    lines = np.abs(np.array([[low], [high]]) - row.perplexity)
    axes.errorbar(
        [row.parameters], [row.perplexity], yerr=lines, capsize=4, label=_label(row), **style
    )
    if len(row.losses) > 1:
        seeds = [perplexity_of(loss) for loss in row.losses]
        axes.plot([row.parameters] * len(seeds), seeds, "wo", markeredgecolor="black", markersize=3)


def _label(row: Row) -> str:
    """Returns a head's name with the time and memory of a step."""
    memory = "" if row.bytes is None else f", {row.bytes / 1e6:,.0f} MB"
    several = f", {len(row.losses)} seeds" if len(row.losses) > 1 else ", 1 seed"
    return f"{row.name}{several} ({1000 * row.step_seconds:.1f} ms{memory} a step)"
