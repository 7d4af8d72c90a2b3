"""Figures in groups, with their intervals: by frequency of words, and accuracies by kind of pair.

Pictures of bars are made here, and charts of the page in `charts`. In a picture counts stand under
every bar, or in it where they differ between recipes, and bars of few items are hatched.
"""

import math
import pathlib
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from zoo.base import lazy
from zoo.errors import UserError
from zoo.lab.comparison import plot_style
from zoo.lab.comparison.comparison import Comparison, Group, order_texts
from zoo.lab.evaluation import agreement, item_scores, significance
from zoo.lab.evaluation.figures import (
    AccuracyPassport,
    PairAccuracy,
    PairPassport,
    PerplexityPassport,
)
from zoo.lab.evaluation.perplexity import UNKNOWN, Band
from zoo.lab.evaluation.results import comparable_columns, names_of, read_answers
from zoo.lab.runs import output_files
from zoo.lab.table import NATS, PERCENT, Column, Table

with lazy.extra():
    from matplotlib.axes import Axes

# A bar of fewer items is hatched: its interval spans a third of the axis and more.
HATCHED_BELOW = 30
# Text within bars of any colour.
_ON_BAR = {"facecolor": "white", "alpha": 0.85, "linewidth": 0, "pad": 1.5}
# Intervals, with white below: they are seen on dark bars, however short.
_LINES: tuple[dict[str, Any], ...] = (
    {"ecolor": "white", "elinewidth": 4, "capsize": 4, "capthick": 3},
    {"ecolor": "black"},
)
# Unknown words would look like the easiest ones.
_UNCOUNTED = {UNKNOWN: "<unk>: unknown words", "unseen": "never in training"}
_HATCHED: dict[str, Any] = {"hatch": "///", "edgecolor": "white", "alpha": 0.6}


class Bar(NamedTuple):
    """The height of a bar, its interval, and the number of items behind it."""

    # a mean over seeds, or a single figure; NaN for a gap, inf for the text "∞" alone
    height: float
    interval: tuple[float, float]  # (low, high), NaN twice without one
    items: float
    seeds: tuple[float, ...] = ()  # the figure of each seed, points on the bar; () for a single run


Bars = dict[Group, dict[str, Bar]]


def band_bars(rows_by_seed: Sequence[Sequence[tuple[Band, tuple[float, float]]]]) -> dict[str, Bar]:
    """Makes {band: Bar} from the bands and intervals of each seed of a recipe: mean losses, with
    the range of several seeds as the interval."""
    bars = {}
    for name in dict.fromkeys(band.band for rows in rows_by_seed for band, _ in rows):
        band_rows = [row for rows in rows_by_seed for row in rows if row[0].band == name]
        losses = tuple(band.log_perplexity for band, _ in band_rows)
        interval = band_rows[0][1]
        if len(losses) > 1:
            interval = min(losses), max(losses)
        tokens = float(np.mean([band.tokens for band, _ in band_rows]))
        # A mean of equal seeds is rounded, and may leave their range.
        mean = min(max(float(np.mean(losses)), min(losses)), max(losses))
        bars[name] = Bar(mean, interval, tokens, losses[1:] and losses)
    return bars


def band_sort_key(band: str) -> int:
    """Returns the least count of a band, to sort by: unknown and unseen words come first."""
    return [*_UNCOUNTED].index(band) - 2 if band in _UNCOUNTED else band_ends(band)[0]


def band_ends(band: str) -> list[int]:
    """Returns the least and, if there is one, the greatest count of a band such as "1-9"."""
    return [*map(int, band.rstrip("+").split("-"))]


def band_label(band: str) -> str:
    """Describes a frequency band in words: "1-9" is "1 to 9 times"."""
    if band in _UNCOUNTED:
        return _UNCOUNTED[band]
    low, *high = band_ends(band)
    return f"{low:,} to {high[0]:,} times" if high else f"{low:,} times or more"


def read_bands(passport: PerplexityPassport) -> list[tuple[Band, tuple[float, float]]]:
    """Returns the frequency bands of a passport, with intervals where its word scores are saved."""
    return item_scores.band_intervals(passport.figures.bands, item_scores.read(passport))


def case_counts(figures_by_case: Mapping[str, PairAccuracy]) -> dict[str, tuple[int, int]]:
    """Returns (right, pairs) of each kind of pair."""
    return {name: (figures.right, figures.pairs) for name, figures in figures_by_case.items()}


def passport_counts(passport: AccuracyPassport) -> dict[str, tuple[int, int]]:
    """Returns (right, pairs) of each kind of pair of a passport, "all" last."""
    figures = passport.figures
    counts = case_counts(figures.by_case()) if isinstance(figures, PairAccuracy) else {}
    counts.pop("all", None)
    return {**counts, "all": (figures.right, passport.tokens)}


def accuracy_bar(seed_counts: Sequence[Sequence[int]]) -> Bar:
    """Makes the bar of an accuracy in percent from [right, pairs] of each seed; height and interval
    are of the mean counts."""
    right, pairs = np.mean(seed_counts, axis=0)
    low, high = significance.binomial_interval(right, pairs)
    shares = tuple(100 * (correct / total) for correct, total in seed_counts)
    return Bar(100 * (right / pairs), (100 * low, 100 * high), pairs, shares[1:] and shares)


def accuracy_bars(
    counts_by_run: Mapping[str, Mapping[str, tuple[int, int]]], recipes: Sequence[Group]
) -> Bars:
    """Makes {recipe: {kind: Bar}} from {run: {kind of pair: (right, pairs)}}, without kinds of no
    pairs."""
    kinds = dict.fromkeys(kind for by_kind in counts_by_run.values() for kind in by_kind)
    bars: Bars = {recipe: {} for recipe in recipes}
    for recipe, recipe_bars in bars.items():
        seeds = recipe.select(counts_by_run).values()
        for kind in kinds:
            counts = [by_kind[kind] for by_kind in seeds if kind in by_kind and by_kind[kind][1]]
            if counts:
                recipe_bars[kind] = accuracy_bar(counts)
    return bars


# ---- pictures


def _draw_bars(axes: Axes, groups: Sequence[str], bars):
    """Draws {recipe: {group: Bar}} side by side, group n at x = n."""
    width = 0.8 / max(len(bars), 1)
    for index, (recipe, by_group) in enumerate(bars.items()):
        bars_by_x = {x: by_group[group] for x, group in enumerate(groups) if group in by_group}
        if not bars_by_x:
            continue
        xs = [x + (index - (len(bars) - 1) / 2) * width for x in bars_by_x]
        ys = [0 if math.isinf(bar.height) else bar.height for bar in bars_by_x.values()]
        ends = np.array([bar.interval for bar in bars_by_x.values()], float).reshape(-1, 2).T
        container = axes.bar(
            xs, ys, width * 0.92, color=plot_style.colour(recipe.colour_number), label=recipe.name
        )
        for style in _LINES:
            axes.errorbar(xs, ys, np.abs(ends - ys), fmt="none", **style)
        for x, patch, bar in zip(xs, container.patches, bars_by_x.values(), strict=True):
            if bar.items < HATCHED_BELOW:
                patch.set(**_HATCHED)
            if len(bar.seeds) > 1:
                points = [x] * len(bar.seeds)
                axes.plot(points, bar.seeds, "wo", markeredgecolor="black", markersize=4.5)


def _label_bars(axes, groups, bars, unit, value_format):
    """Writes values at the feet of bars, and their counts: below a group whose bars have the same
    count, else beside each value; the legend tells what hatching means."""
    width = 0.8 / max(len(bars), 1)
    names = []
    for x, group in enumerate(groups):
        row = {recipe: by_group[group] for recipe, by_group in bars.items() if group in by_group}
        counts = {bar.items for bar in row.values()}
        shared = f"\n{counts.pop():,.0f} {unit}" if len(counts) == 1 else ""
        names.append(textwrap.fill(_UNCOUNTED.get(group, group), 13) + shared)
        for index, recipe in enumerate(bars):
            if recipe not in row or math.isnan(row[recipe].height):
                continue
            bar = row[recipe]
            value = "∞" if math.isinf(bar.height) else value_format(bar.height)
            axes.annotate(
                value if shared else f"{value}\nof {bar.items:,.0f}",
                (x + (index - (len(bars) - 1) / 2) * width, 0),
                xytext=(0, 5),
                textcoords="offset points",
                ha="center",
                fontsize=11 if shared else 9,
                bbox=_ON_BAR,
            )
    axes.set_xticks(range(len(groups)), names)
    axes.tick_params(axis="x", length=0)
    if any(bar.items < HATCHED_BELOW for by_group in bars.values() for bar in by_group.values()):
        label = f"hatched: fewer than {HATCHED_BELOW} {unit}"
        axes.fill_between([], [], facecolor="0.5", label=label, **_HATCHED)


def _picture_width(groups: int, recipes: int) -> float:
    """Returns the width in inches that a picture of so many groups of bars needs."""
    return max(plot_style.WIDTH, 1.8 + groups * max(1.15, 0.45 * recipes + 0.3))


def draw_bands(
    bars: Bars,
    file: str | pathlib.Path,
    title: str,
    limit: Mapping[str, float] | None = None,
):
    """Draws bars of frequency bands into a file, and `limit` {band: the language's own loss}, as
    lines."""
    groups = sorted(plot_style.group_names(bars), key=band_sort_key)
    note = "lines: 95 % interval by sentences"
    if any(bar.seeds for recipe_bars in bars.values() for bar in recipe_bars.values()):
        note += "; of several seeds, least and greatest"
    width = _picture_width(len(groups), len(bars))
    label = "occurrences of the word in training"
    with plot_style.picture(file, [title], label, plot_style.NATS, note, width) as (axes,):
        _draw_bars(axes, groups, bars)
        _label_bars(axes, groups, bars, "tokens", "{:.1f}".format)
        if limit:
            columns = [column for column, group in enumerate(groups) if group in limit]
            axes.hlines(
                [limit[groups[column]] for column in columns],
                [column - 0.42 for column in columns],
                [column + 0.42 for column in columns],
                color="black",
                label="the language itself",
            )


def draw_accuracy(bars: Bars, file: str | pathlib.Path, title: str = ""):
    """Draws bars of the kinds "phenomenon, case" into a file, with a panel for each phenomenon."""
    panels: dict[str, Bars] = {}
    kinds = plot_style.group_names(bars)
    for kind in kinds:
        phenomenon, _, case = kind.partition(", ")
        for recipe, by_kind in bars.items():
            case_bars = panels.setdefault(phenomenon, {}).setdefault(recipe, {})
            if kind in by_kind:
                case_bars[case or "all"] = by_kind[kind]
    cases = {phenomenon: plot_style.group_names(panel) for phenomenon, panel in panels.items()}
    ratios = {phenomenon: len(groups) for phenomenon, groups in cases.items()}
    has_seeds = any(bar.seeds for by_kind in bars.values() for bar in by_kind.values())
    note = "lines: 95 % interval; points: seeds" if has_seeds else "lines: 95 % interval"
    width = _picture_width(sum(ratios.values()), len(bars))
    by_distance = all(kind.rpartition(", ")[2] in _DISTANCES for kind in kinds)
    label = "distance in words" if by_distance else ""
    with plot_style.picture(file, ratios, label, "accuracy on pairs (%)", note, width) as panes:
        for axes, (phenomenon, panel) in zip(panes, panels.items(), strict=True):
            _draw_bars(axes, cases[phenomenon], panel)
            axes.axhline(50, color="black", linestyle=":", zorder=0.5, label="chance")
            _label_bars(axes, cases[phenomenon], panel, "pairs", "{:.0f}".format)
        panes[0].set_ylim(0, 102)
        panes[0].figure.suptitle(title)


# ---- the bands and the accuracies on agreement pairs that runs keep among their results

_DISTANCES = {*agreement.DISTANCES, "all"}


def plot_bands(
    workdirs: Sequence[str],
    file: str | pathlib.Path,
    split: str | None = None,
    labels: Sequence[str] = (),
    limit: Mapping[str, float] | None = None,
):
    """Prints and draws log-perplexity by frequency band on a text that all runs were judged on.

    Without `split` a test is preferred; for `limit` see `draw_bands`. Raises UserError without such
    a text, or if a run has seen it.
    """
    plot_style.check_file(file)
    comparison = Comparison.from_paths(workdirs, labels)
    columns = comparable_columns(comparison.results)
    column, note = _choose_text(columns, comparison.paths.keys(), split, "--split NAME")
    passports = columns[column]
    for name, passport in passports.items():
        if passport.leak:
            raise UserError(
                f"{name} cannot be drawn on {column.split}: {passport.leak}; leave it out."
            )
    groups = comparison.groups
    bars = {
        group: band_bars([read_bands(passports[run]) for run in group.runs]) for group in groups
    }
    tokens = next(iter(passports.values())).tokens
    title = f"{names_of(columns)[column]} ({tokens:,} tokens)"
    draw_bands(bars, file, title, limit)
    table = bar_table(bars, "occurrences", "nats", "tokens", NATS)
    output_files.show(title + note, *table.text(), file)


def plot_agreement(
    workdirs: Sequence[str],
    file: str | pathlib.Path,
    split: str | None = None,
    labels: Sequence[str] = (),
):
    """Prints and draws accuracies on agreement pairs that all runs were judged on.

    Without `split` a test is preferred. Raises UserError without such pairs.
    """
    plot_style.check_file(file)
    comparison = Comparison.from_paths(workdirs, labels)
    paths = comparison.paths
    records = {
        questions: {
            str(path): record
            for path, record in by_path.items()
            if isinstance(record, PairPassport) and record.figures.cases
        }
        for questions, by_path in read_answers(paths.values()).items()
        if not questions.options  # others: the same again
    }
    for name, path in paths.items():
        if not any(path in by_path for by_path in records.values()):
            data = comparison.recipes[name].get("data") or {}
            is_micro = "Micro" in (data.get("component") or "")
            command = f"compare --micro {path}" if is_micro else f"evaluate {path} --agreement"
            raise UserError(f"{path} has no accuracy on pairs: python -m zoo {command}.")
    text, note = _choose_text(records, {*paths.values()}, split, "--agreement")
    counts = {name: case_counts(records[text][path].figures.cases) for name, path in paths.items()}
    bars = accuracy_bars(counts, comparison.groups)
    kind, _, judged = str(text).removeprefix("pairs:").partition("-")
    draw_accuracy(bars, file, f"{kind} pairs, {judged}" if judged else f"{kind} pairs")
    table = bar_table(bars, "pairs of", "right, %", "pairs", PERCENT)
    output_files.show(f"{text}{note}", *table.text(), file)


def _choose_text(passports_by_text, runs, split, option):
    """Returns (the text of a split, or of any, that all runs were judged on, a note on other
    splits); raises UserError, with the option of `zoo evaluate` that judges them, without one."""
    ordered = order_texts(passports_by_text)
    shared = [text for text in ordered if passports_by_text[text].keys() == runs]
    chosen = [text for text in shared if split in (None, text[0])]
    taken = chosen[0][0] if chosen else None
    others = ", ".join(dict.fromkeys(text[0] for text in shared if text[0] != taken))
    if not chosen:
        remedy = f"give --split one of {others}, or evaluate them" if others else "evaluate them"
        raise UserError(
            f"the runs were not all evaluated on {split or 'one text'}: {remedy} by python -m zoo "
            f"evaluate DIR {option}."
        )
    return chosen[0], f"; --split also takes {others}" if others else ""


def bar_table(
    bars: Bars, title: str, value: str, unit: str, form: str, names: Mapping[str, str] | None = None
) -> Table:
    """Makes a table with a row for each group and recipe, from {recipe: {group: Bar}}; `names` may
    have other names of the groups, in order; `title`, `value` and `unit` are headers."""
    names = names or {group: group for group in plot_style.group_names(bars)}
    columns = [Column(title), Column("recipe"), Column(value, form), Column("95 %", form)]
    columns += [Column("seeds", form), Column(unit, ",.0f")]
    rows = []
    for group, name in names.items():
        for recipe in (recipe for recipe in bars if group in bars[recipe]):
            bar = bars[recipe][group]
            spread = (min(bar.seeds), max(bar.seeds)) if bar.seeds else None
            interval = None if bar.interval == spread else bar.interval
            rows.append([name, recipe.name, bar.height, interval, spread, bar.items])
    return Table(columns, rows)
