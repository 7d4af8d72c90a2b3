"""Figures in groups, with their intervals: by frequency of words, and accuracies by kind of pair.

Pictures of bars are made here, and charts of the page in `charts`. In a picture counts stand under
every bar, or in it where they differ between recipes, and bars of few items are hatched.
"""

import math
import pathlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from zoo.base import lazy, strict_json
from zoo.errors import UserError
from zoo.lab.comparison import plot_style
from zoo.lab.comparison.comparison import Comparison, Group, comparable_columns
from zoo.lab.evaluation import agreement, item_scores, leakage, significance
from zoo.lab.evaluation.perplexity import UNKNOWN
from zoo.lab.evaluation.results import names_of, read_answers
from zoo.lab.runs import output_files
from zoo.lab.runs.text_tables import align

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
_CALLED = {UNKNOWN: "<unk>: any\nunknown word"}
_HATCHED: dict[str, Any] = {"hatch": "///", "edgecolor": "white", "alpha": 0.6}


class Bar(NamedTuple):
    # a mean over seeds, or a single figure; NaN for a gap, inf for the text "∞" alone
    height: float
    interval: tuple[float, float]  # (low, high), NaN twice without one
    items: float
    seeds: tuple[float, ...] = ()  # the figure of each seed, points on the bar; () for a single run


Bars = dict[Group, dict[str, Bar]]


def band_bars(rows_by_seed: Sequence[Sequence[dict]]) -> dict[str, Bar]:
    """Returns {band: its bar} of the seeds of a recipe."""
    bars = {}
    for band in dict.fromkeys(row["band"] for rows in rows_by_seed for row in rows):
        band_rows = [row for rows in rows_by_seed for row in rows if row["band"] == band]
        losses = tuple(float(row["log_perplexity"]) for row in band_rows)  # JSON has inf as text
        interval = band_rows[0].get("interval", (math.nan, math.nan))
        if len(losses) > 1:
            interval = min(losses), max(losses)
        tokens = float(np.mean([row["tokens"] for row in band_rows]))
        # A mean of equal seeds is rounded, and may leave their range.
        mean = min(max(float(np.mean(losses)), min(losses)), max(losses))
        bars[band] = Bar(mean, interval, tokens, losses[1:] and losses)
    return bars


def band_sort_key(band: str) -> int:
    """Returns the sort key of a band; the bands of unknown and of unseen words come first."""
    without = {UNKNOWN: -2, "unseen": -1}
    return without[band] if band in without else int(band.rstrip("+").split("-")[0])


def read_bands(passport):
    """Returns the bands of a passport, with intervals where the scores of words are kept."""
    scores = passport["place"].read_scores(passport)
    return item_scores.with_intervals(passport["figures"].get("bands") or [], scores)


def accuracy_bar(seed_counts: Sequence[Sequence[int]]) -> Bar:
    """Returns the bar of an accuracy in percent, the mean of seeds."""
    right, pairs = np.mean(seed_counts, axis=0)
    low, high = significance.binomial_interval(right, pairs)
    shares = tuple(100 * (correct / total) for correct, total in seed_counts)
    return Bar(100 * (right / pairs), (100 * low, 100 * high), pairs, shares[1:] and shares)


def accuracy_bars(
    figures_by_run: Mapping[str, Mapping[str, dict]], recipes: Sequence[Group]
) -> Bars:
    """Returns the bars of {run: {kind of pair: its figures}}, for the kinds that have pairs."""
    counts = {
        run: {
            kind: [int(figures.get(field) or 0) for field in _CASE]
            for kind, figures in by_kind.items()
        }
        for run, by_kind in figures_by_run.items()
    }
    kinds = dict.fromkeys(kind for by_kind in counts.values() for kind in by_kind)
    bars: Bars = {recipe: {} for recipe in recipes}
    for recipe, recipe_bars in bars.items():
        seeds = recipe.select(counts).values()
        for kind in kinds:
            seed_counts = [
                by_kind[kind] for by_kind in seeds if kind in by_kind and by_kind[kind][1]
            ]
            if seed_counts:
                recipe_bars[kind] = accuracy_bar(seed_counts)
    return bars


# ---- pictures


def _draw_bars(axes: Axes, groups: Sequence[str], bars) -> bool:
    """Draws bars of {recipe: {group: Bar}}, side by side within a group."""
    width, any_hatched = 0.8 / max(len(bars), 1), False
    for index, (recipe, by_group) in enumerate(bars.items()):
        bars_by_x = {x: by_group[group] for x, group in enumerate(groups) if group in by_group}
        if not bars_by_x:
            continue
        offset = (index - (len(bars) - 1) / 2) * width
        xs = [x + offset for x in bars_by_x]
        heights = [0 if math.isinf(bar.height) else bar.height for bar in bars_by_x.values()]
        ends = np.array([bar.interval for bar in bars_by_x.values()], float).reshape(-1, 2).T
        container = axes.bar(
            xs, heights, width * 0.92, color=plot_style.colour(recipe.number), label=recipe.name
        )
        for style in _LINES:
            axes.errorbar(xs, heights, np.abs(ends - heights), fmt="none", **style)
        for x, patch, bar in zip(xs, container.patches, bars_by_x.values(), strict=True):
            if bar.items < HATCHED_BELOW:
                patch.set(**_HATCHED)
                any_hatched = True
            if len(bar.seeds) > 1:
                points = [x] * len(bar.seeds)
                axes.plot(points, bar.seeds, "wo", markeredgecolor="black", markersize=4.5)
    return any_hatched


def _label_bars(axes, groups, bars, unit, value_format):
    """Writes the value of each bar at its foot, where it meets no line, and its count below the
    group or beside it."""
    width = 0.8 / max(len(bars), 1)
    names = []
    for x, group in enumerate(groups):
        group_bars = {
            recipe: by_group[group] for recipe, by_group in bars.items() if group in by_group
        }
        counts = {bar.items for bar in group_bars.values()}
        shared = f"\n{counts.pop():,.0f} {unit}" if len(counts) == 1 else ""
        names.append(f"{_CALLED.get(group, group)}{shared}")
        for index, recipe in enumerate(bars):
            if recipe not in group_bars or math.isnan(group_bars[recipe].height):
                continue
            bar = group_bars[recipe]
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


def _explain_hatching(axes, unit):
    label = f"hatched: fewer than {HATCHED_BELOW} {unit}"
    axes.fill_between([], [], facecolor="0.5", label=label, **_HATCHED)


def _picture_width(groups, recipes):
    return max(plot_style.WIDTH, 1.8 + groups * max(1.15, 0.45 * recipes + 0.3))


def draw_bands(
    bars: Bars,
    file: str | pathlib.Path,
    limit: Mapping[str, float] | None = None,
    title: str = "Log-perplexity by frequency of the word",
):
    """Draws log-perplexity of words by how often they were seen in training."""
    groups = sorted(plot_style.group_names(bars), key=band_sort_key)
    has_seeds = any(bar.seeds for recipe_bars in bars.values() for bar in recipe_bars.values())
    note = "lines: 95 % interval by sentences" + (
        "; of several seeds, least and greatest" if has_seeds else ""
    )
    width = _picture_width(len(groups), len(bars))
    label = "occurrences of the word in training"
    with plot_style.picture(file, [title], label, plot_style.NATS, note, width) as (axes,):
        any_hatched = _draw_bars(axes, groups, bars)
        _label_bars(axes, groups, bars, "tokens", "{:.1f}".format)
        if any_hatched:
            _explain_hatching(axes, "tokens")
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
    """Draws accuracy on minimal pairs, a panel for each phenomenon, with a group for each case."""
    panels: dict[str, Bars] = {}
    kinds = plot_style.group_names(bars)
    for kind in kinds:
        phenomenon, _, case = kind.partition(", ")
        for recipe, by_kind in bars.items():
            case_bars = panels.setdefault(phenomenon, {}).setdefault(recipe, {})
            if kind in by_kind:
                case_bars[case or "all"] = by_kind[kind]
    cases = {phenomenon: plot_style.group_names(panel) for phenomenon, panel in panels.items()}
    group_counts = {phenomenon: len(groups) for phenomenon, groups in cases.items()}
    has_seeds = any(bar.seeds for by_kind in bars.values() for bar in by_kind.values())
    note = "lines: 95 % interval" + "; points: seeds" * has_seeds
    width = _picture_width(sum(group_counts.values()), len(bars))
    by_distance = all(kind.rpartition(", ")[2] in _DISTANCES for kind in kinds)
    label = "distance in words" if by_distance else ""
    with plot_style.picture(
        file, group_counts, label, "accuracy on pairs (%)", note, width
    ) as all_axes:
        any_hatched = False
        for axes, (phenomenon, panel) in zip(all_axes, panels.items(), strict=True):
            any_hatched |= _draw_bars(axes, cases[phenomenon], panel)
            axes.axhline(50, color="black", linestyle=":", zorder=0.5, label="chance")
            _label_bars(axes, cases[phenomenon], panel, "pairs", "{:.0f}".format)
        if any_hatched:
            _explain_hatching(all_axes[-1], "pairs")
        all_axes[0].set_ylim(0, 102)
        all_axes[0].figure.suptitle(title)


# ---- the bands and the accuracies on agreement pairs that runs keep among their results

_CASE = {"right": int, "pairs": int}
_DISTANCES = {*agreement.DISTANCES, "all"}
# Ends of the names of texts that a run was trained or selected on, and of texts but its tests.
_TRAINED_ON, _NOT_TEST = r"\b(train|validation)$", r"(?<!\btest)(?<!\btest\d)$"


def plot_bands(
    workdirs: Sequence[str], file: str, split: str | None = None, labels: Sequence[str] = ()
):
    """Prints and draws log-perplexity by the words' training counts."""
    plot_style.check_file(file)
    comparison = Comparison.from_paths(workdirs, labels)
    columns = comparable_columns(comparison.results)
    shared = [
        column for column, passports in columns.items() if len(passports) == len(comparison.paths)
    ]
    choices = [column for column in shared if split in (None, column.split)]
    if not choices:
        splits = ", ".join(dict.fromkeys(column.split for column in shared))
        remedy = f"give --split one of {splits}, or evaluate them" if splits else "evaluate them"
        raise UserError(
            f"the runs were not all evaluated on {split or 'one text'}: {remedy} by python -m zoo "
            "evaluate DIR --split NAME."
        )
    # Tests of the recipe come before texts of --data, whose names have a colon, and validation.
    column = min(
        choices, key=lambda column: (leakage.is_validation(column.split), ":" in column.split)
    )
    passports = columns[column]
    for name, passport in passports.items():
        if reason := leakage.reason(passport):
            raise UserError(f"{name} cannot be drawn on {column.split}: {reason}; leave it out.")
    bars = {
        group: band_bars([read_bands(passports[run]) for run in group.runs])
        for group in comparison.groups
    }
    tokens = next(iter(passports.values()))["tokens"]
    title = f"{names_of(columns)[column]} ({tokens:,} tokens)"
    draw_bands(bars, file, title=title)
    have_seeds = [len(group.runs) > 1 for group in comparison.groups]
    interval = " or ".join(["95 %"] * (not all(have_seeds)) + ["of the seeds"] * any(have_seeds))
    heading = _mention_splits(title, column.split, shared)
    output_files.show(heading, *bar_table(bars, "occurrences", "tokens", interval, 4), file)


def plot_agreement(
    workdirs: Sequence[str], file: str, split: str | None = None, labels: Sequence[str] = ()
):
    """Prints and draws the accuracies on the pairs of one text that runs keep."""
    plot_style.check_file(file)
    comparison = Comparison.from_paths(workdirs, labels)
    figures_by_text = {
        questions: {
            str(path): figures
            for path, (record, _) in judgements.items()
            if _has_counts(figures := record["figures"].get("cases"))
        }
        for questions, judgements in read_answers(comparison.paths.values()).items()
        if not questions.options  # others: the same again
    }
    for name, path in comparison.paths.items():
        splits = [
            questions.split for questions, by_path in figures_by_text.items() if path in by_path
        ]
        if splits and split not in (None, *splits):
            raise UserError(
                f"{path} has no accuracy on {split}, only on {', '.join(splits)}: give one of these "
                "to --split."
            )
        if not splits:
            is_micro = "Micro" in (
                (comparison.recipes[name].get("data") or {}).get("component") or ""
            )
            command = f"compare --micro {path}" if is_micro else f"evaluate {path} --agreement"
            raise UserError(f"{path} has no accuracy on pairs: python -m zoo {command}.")
    common = [
        questions
        for questions in figures_by_text
        if figures_by_text[questions].keys() == {*comparison.paths.values()}
    ]
    choices = [questions for questions in common if split in (None, questions.split)]
    if not choices:
        raise UserError(
            f"{' and '.join(comparison.paths.values())} were judged on different pairs: judge all alike "
            "by python -m zoo evaluate DIR --agreement."
        )
    # Tests of the recipe come before texts of --data, and these before texts it was made with.
    questions = min(
        choices,
        key=lambda questions: [
            bool(re.search(end, questions.split)) for end in (_TRAINED_ON, _NOT_TEST)
        ],
    )
    figures_by_run = {
        name: figures_by_text[questions][path] for name, path in comparison.paths.items()
    }
    bars = accuracy_bars(figures_by_run, comparison.groups)
    draw_accuracy(bars, file, str(questions))
    heading = _mention_splits(str(questions), questions.split, common)
    output_files.show(heading, *bar_table(bars, "accuracy in %", "pairs", "95 %", 1), file)


def _mention_splits(title, split, texts):
    """Returns the title of a picture's text, with the other texts that it could be of."""
    splits = [name for name in dict.fromkeys(text.split for text in texts) if name != split]
    return f"{title}; --split also takes {', '.join(splits)}" if splits else title


def _has_counts(cases):
    try:
        strict_json.check([*cases.values()], [_CASE])
    except (AttributeError, ValueError):
        return False
    return True


def bar_table(bars: Bars, title: str, unit: str, interval: str, digits: int) -> Iterator[str]:
    rows: list[list[Any]] = [
        [
            recipe.name,
            group,
            f"{bar.height:.{digits}f}",
            "[{:.{d}f}, {:.{d}f}]".format(*bar.interval, d=digits),
            f"{bar.items:,.0f}",
        ]
        for recipe, recipe_bars in bars.items()
        for group, bar in recipe_bars.items()
    ]
    yield from align(["recipe", title, "", interval, unit], rows)
