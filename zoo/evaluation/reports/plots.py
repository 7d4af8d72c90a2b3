"""Plots of figures, in the format of the file's suffix: PNG, PDF or SVG.

Each function takes plain numbers by the name of the run, draws with matplotlib's own objects (no
global state, no display) and writes one file, whole or not at all. Runs keep their colour by their
order. Reports call `check_file` before they compute anything.
"""

import math
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from zoo import lazy
from zoo.errors import UserError, printable
from zoo.evaluation import significance
from zoo.evaluation.perplexity import UNKNOWN
from zoo.evaluation.reports import validations
from zoo.runs import output_files

with lazy.extra():
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.text import Text

# Okabe and Ito (2008): distinguishable with any colour vision; markers without colours.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
MARKERS = "os^Dv<>"
SUFFIXES = (".png", ".pdf", ".svg")
# Format of numbers on logarithmic axes, which matplotlib would write as mathematics.
_PLAIN = "{x:,g}"
# Upright text to the left of the line on a bar, readable on bars of any colour.
_BESIDE: dict[str, Any] = {
    "rotation": 90,
    "ha": "right",
    "va": "bottom",
    "bbox": {"facecolor": "white", "alpha": 0.6, "linewidth": 0, "pad": 0.5},
}
# Fields of a line of metrics.jsonl that reports a validation.
_VALIDATION = {"step": int, "validation_log_perplexity": float, "epoch_training_loss": float}
_GREY: dict[str, Any] = {"cmap": "Greys", "vmin": 0, "vmax": 1, "aspect": "equal"}


def _axes(title, x_label, y_label, width=7.5):
    figure = Figure(figsize=(width, 4.5), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.set(title=title, xlabel=x_label, ylabel=y_label)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="0.9")
    axes.set_axisbelow(True)
    return figure, axes


def check_file(file: str | pathlib.Path):
    """Raises UserError if a picture cannot be written to a file, or its suffix is unknown.

    Args:
      file: the picture that is yet to be computed; its suffix is one of `SUFFIXES`.
    """
    path = pathlib.Path(file)
    if path.suffix.lower() not in SUFFIXES:
        raise UserError(
            f"the picture {path} has a suffix that is not known: give one of {', '.join(SUFFIXES)}."
        )
    output_files.check(path, "the picture")


# Longest name, in characters, for which a legend beside the axes has room.
_LONGEST_LABEL = 30


def _write(figure, axes, file):
    _, labels = axes.get_legend_handles_labels()
    if max(map(len, labels), default=0) <= _LONGEST_LABEL:
        axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    else:  # beside the axes, long names would leave them no room
        figure.legend(frameon=False, loc="outside lower center")
    _save(figure, file)


def _save(figure, file):
    """Writes a picture whole, in the format of its suffix."""
    check_file(file)
    for text in figure.findobj(Text):  # names of runs and words, where "$" is not mathematics
        text.set_parse_math(False)
        text.set_text(printable(text.get_text()))
    kind = pathlib.Path(file).suffix.removeprefix(".").lower()
    output_files.write(file, lambda path: figure.savefig(path, format=kind), "the picture")


def training_curves(
    metrics: Mapping[str, str | pathlib.Path], file: str | pathlib.Path, limit: float | None = None
):
    """Draws validation log-perplexity (solid) and training loss (dashed) of runs against the step.

    The two need not have the same denominator: a training loss is over all that is predicted, with
    the boundaries, and may be sampled.

    Args:
      metrics: the path of each run's metrics.jsonl by its name.
      file: the picture to write.
      limit: a lower bound for any model, nats per token, if it is known.
    """
    figure, axes = _axes("Training", "training step", "nats per token")
    for number, (name, path) in enumerate(metrics.items()):
        lines = validations.read(pathlib.Path(path), _VALIDATION)
        steps = [line["step"] for line in lines]
        colour = COLOURS[number % len(COLOURS)]
        axes.plot(
            steps,
            [float(line["validation_log_perplexity"]) for line in lines],
            color=colour,
            marker=MARKERS[number % len(MARKERS)],
            markersize=4,
            label=f"{name}, validation",
        )
        axes.plot(
            steps,
            [float(line["epoch_training_loss"]) for line in lines],
            color=colour,
            linestyle="--",
            linewidth=1,
            label=f"{name}, training loss",
        )
    if limit is not None:
        axes.axhline(limit, color="black", linestyle=":", label="the language's own limit")
    _write(figure, axes, file)


def _grouped_bars(axes, groups, values, label_format, spans=None):
    """Draws bars of {run: {group: value}}, side by side within a group; a missing value leaves a
    gap and an infinite one only its label. `spans` may have the (low, high) ends of a line on each
    bar.

    Returns:
      {run: {group: the middle of its bar}}.
    """
    width, middles = 0.8 / max(len(values), 1), {}
    for number, (name, by_group) in enumerate(values.items()):
        # JSON has infinite numbers as text.
        heights = [float(by_group.get(group, math.nan)) for group in groups]
        drawn = [0 if math.isinf(height) else height for height in heights]
        offset = (number - (len(values) - 1) / 2) * width
        middles[name] = {group: x + offset for x, group in enumerate(groups)}
        lines = None
        if spans is not None:
            ends = np.array([spans[name].get(group, (math.nan,) * 2) for group in groups]).T
            lines = np.abs(ends - drawn)
        bars = axes.bar(
            [*middles[name].values()],
            drawn,
            width * 0.92,
            color=COLOURS[number % len(COLOURS)],
            label=name,
            yerr=lines,
            capsize=2,
        )
        axes.bar_label(
            bars, [_label(height, label_format) for height in heights], fontsize=7, padding=1
        )
    # Long names, such as "gender, attractor", take two lines so that neighbours do not overlap.
    axes.set_xticks(range(len(groups)), [group.replace(", ", ",\n") for group in groups])
    return middles


def _label(height, label_format):
    if math.isnan(height):
        return ""
    return "∞" if math.isinf(height) else label_format(height)


def _groups(values):
    """Returns all groups of all runs, in order of first appearance."""
    return list(dict.fromkeys(group for by_group in values.values() for group in by_group))


def _width(groups, runs):
    return max(7.5, 2.5 + 0.42 * groups * runs)


def _least_count(band):
    """Returns the sort key of a band; the bands of unknown and of unseen words come first."""
    without = {UNKNOWN: -2, "unseen": -1}
    return without[band] if band in without else int(band.rstrip("+").split("-")[0])


def bands(
    rows: dict[str, list[dict]], file: str | pathlib.Path, limit: dict[str, float] | None = None
):
    """Draws log-perplexity of words by how often they were seen in training.

    Args:
      rows: for each run the "bands" of its passport's figures.
      file: the picture to write.
      limit: for each band the language's own log-perplexity, nats per token: a lower bound over all
        bands together, but not within one.
    """
    values = {
        name: {row["band"]: row["log_perplexity"] for row in run} for name, run in rows.items()
    }
    groups = sorted(_groups(values), key=_least_count)
    figure, axes = _axes(
        "Log-perplexity by frequency of the word",
        "occurrences of the word in training",
        "nats per token",
        _width(len(groups), len(values)),
    )
    _grouped_bars(axes, groups, values, "{:.1f}".format)
    if limit:
        columns = [column for column, group in enumerate(groups) if group in limit]
        axes.hlines(
            [limit[groups[column]] for column in columns],
            [column - 0.42 for column in columns],
            [column + 0.42 for column in columns],
            color="black",
            linewidth=2,
            label="the language itself",
        )
    _write(figure, axes, file)


def accuracy(
    counts: Mapping[str, Mapping[str, Sequence[tuple[int, int]]]], file: str | pathlib.Path
):
    """Draws accuracy on minimal pairs by phenomenon, with the number of pairs in each bar.

    The line on a bar is the 95 % interval for as many pairs (Wilson 1927). For several seeds the
    bar is the mean, and each seed is a point.

    Args:
      counts: {run: {phenomenon: (right pairs, pairs) of each seed}}.
      file: the picture to write.
    """
    groups = _groups(counts)
    figure, axes = _axes(
        "Agreement: how often the good sentence is the more probable",
        "phenomenon",
        "accuracy (%), lines: 95 %",
        _width(len(groups), len(counts)),
    )
    means = {
        name: {group: np.mean(seeds, axis=0) for group, seeds in by_group.items() if any(seeds[0])}
        for name, by_group in counts.items()
    }
    shares: dict = {name: {} for name in means}
    spans: dict = {name: {} for name in means}
    for name, by_group in means.items():
        for group, (right, pairs) in by_group.items():
            shares[name][group] = 100 * right / pairs
            spans[name][group] = 100 * np.array(significance.binomial_interval(right, pairs))
    middles = _grouped_bars(axes, groups, shares, "{:.0f}".format, spans)
    for name, by_group in means.items():
        for group, (_, pairs) in by_group.items():
            x, seeds = middles[name][group], counts[name][group]
            axes.text(x, 2, f"of {pairs:,.0f} ", fontsize=7, **_BESIDE)
            if len(seeds) > 1:
                points = [100 * right / pairs for right, pairs in seeds]
                axes.plot([x] * len(seeds), points, "wo", markeredgecolor="black", markersize=3)
    axes.set_ylim(0, 110)
    axes.axhline(50, color="black", linestyle=":", label="chance")
    _write(figure, axes, file)


def spectra(values: dict[str, np.ndarray], file: str | pathlib.Path):
    """Draws singular values of log-probability matrices, largest first, on a logarithmic scale.

    Args:
      values: of each run, divided by the largest.
      file: the picture to write.
    """
    figure, axes = _axes(
        "Singular values of the log-probability matrix", "rank", "divided by the largest"
    )
    for number, (name, of_run) in enumerate(values.items()):
        colour = COLOURS[number % len(COLOURS)]
        axes.plot(range(1, len(of_run) + 1), of_run, color=colour, label=name)
    # Smaller values are rounding of float32.
    axes.set(yscale="log", ylim=(1e-8, 1.5))
    axes.yaxis.set_major_formatter(_PLAIN)
    _write(figure, axes, file)


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
    size = [1.8 + 0.32 * max(len(words), 3) for words in (source, target)]
    figure = Figure(figsize=(size[0] + 0.8, size[1]), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    shape = (max(len(target), 1), max(len(source), 1))
    greatest = 1 if label == "weight" else float(np.max(weights, initial=0)) or 1
    image = axes.imshow(
        np.reshape(weights, shape) if np.size(weights) else np.zeros(shape),
        **{**_GREY, "vmax": greatest},
    )
    axes.set_xticks(range(len(source)), [*source], rotation=90)
    axes.set_yticks(range(len(target)), [*target])
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    figure.colorbar(image, label=label, shrink=0.8)
    _save(figure, file)


def by_length(spans: Sequence[str], curves: dict[str, list[float]], file: str | pathlib.Path):
    """Draws BLEU against the length of the source.

    Args:
      spans: of lengths, from the shortest.
      curves: by name, the BLEU of each span, percent.
      file: the picture to write.
    """
    figure, axes = _axes("BLEU by the length of the source", "source words", "BLEU")
    for number, (name, scores) in enumerate(curves.items()):
        colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
        axes.plot(range(len(spans)), scores, color=colour, marker=marker, label=name)
    axes.set_xticks(range(len(spans)), [*spans])
    axes.set_ylim(bottom=0)
    _write(figure, axes, file)


def sweep(
    field: str,
    curves: dict[str, list],
    lines: dict[str, float],
    file: str | pathlib.Path,
):
    """Draws log-perplexity against a number of the experiment.

    Args:
      field: its name.
      curves: by name, the points (see zoo.evaluation.reports.sweep.Point); a point of several runs
        has a bar from the least to the greatest.
      lines: by name, the log-perplexity of runs without the number, nats per token.
      file: the picture to write.
    """
    figure, axes = _axes(f"Log-perplexity by {field}", field, "nats per token")
    for number, (name, points) in enumerate(curves.items()):
        colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
        means = np.array([point.mean for point in points])
        ends = np.array([(min(point.losses), max(point.losses)) for point in points]).T
        axes.errorbar(
            [point.value for point in points],
            means,
            yerr=np.abs(ends - means[None]),
            color=colour,
            marker=marker,
            markersize=4,
            capsize=3,
            label=name,
        )
    for number, (name, height) in enumerate(lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        axes.axhline(height, color=colour, linestyle="--", linewidth=1, label=name)
    numbers = [point.value for points in curves.values() for point in points]
    if min(numbers) > 0 and max(numbers) > 20 * min(numbers):
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(_PLAIN)
    _write(figure, axes, file)
