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
from zoo.lab.comparison import comparison, plot_style
from zoo.lab.comparison.comparison import Comparison, Group
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


def band_bars(seeds: Sequence[Sequence[dict]]) -> dict[str, Bar]:
    """Returns {band: its bar} of the seeds of a recipe."""
    bars = {}
    for band in dict.fromkeys(row["band"] for rows in seeds for row in rows):
        found = [row for rows in seeds for row in rows if row["band"] == band]
        losses = tuple(float(row["log_perplexity"]) for row in found)  # JSON has inf as text
        interval = found[0].get("interval", (math.nan, math.nan))
        if len(losses) > 1:
            interval = min(losses), max(losses)
        tokens = float(np.mean([row["tokens"] for row in found]))
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


def accuracy_bar(seeds: Sequence[Sequence[int]]) -> Bar:
    """Returns the bar of an accuracy in percent, the mean of seeds."""
    right, pairs = np.mean(seeds, axis=0)
    low, high = significance.binomial_interval(right, pairs)
    shares = tuple(100 * (one / of) for one, of in seeds)
    return Bar(100 * (right / pairs), (100 * low, 100 * high), pairs, shares[1:] and shares)


def accuracy_bars(cases: Mapping[str, Mapping[str, dict]], recipes: Sequence[Group]) -> Bars:
    """Returns the bars of {run: {kind of pair: its figures}}, for the kinds that have pairs."""
    counts = {
        run: {kind: [int(one.get(of) or 0) for of in _CASE] for kind, one in of_run.items()}
        for run, of_run in cases.items()
    }
    kinds = dict.fromkeys(kind for of_run in counts.values() for kind in of_run)
    bars: Bars = {recipe: {} for recipe in recipes}
    for recipe, of_recipe in bars.items():
        of_seeds = recipe.select(counts).values()
        for kind in kinds:
            found = [of_run[kind] for of_run in of_seeds if kind in of_run and of_run[kind][1]]
            if found:
                of_recipe[kind] = accuracy_bar(found)
    return bars


# ---- pictures


def _draw_bars(axes: Axes, groups: Sequence[str], bars) -> bool:
    """Draws bars of {recipe: {group: Bar}}, side by side within a group."""
    width, any_few = 0.8 / max(len(bars), 1), False
    for place, (recipe, by_group) in enumerate(bars.items()):
        there = {x: by_group[group] for x, group in enumerate(groups) if group in by_group}
        if not there:
            continue
        offset = (place - (len(bars) - 1) / 2) * width
        xs = [x + offset for x in there]
        heights = [0 if math.isinf(bar.height) else bar.height for bar in there.values()]
        ends = np.array([bar.interval for bar in there.values()], float).reshape(-1, 2).T
        drawn = axes.bar(
            xs, heights, width * 0.92, color=plot_style.colour(recipe.number), label=recipe.name
        )
        for style in _LINES:
            axes.errorbar(xs, heights, np.abs(ends - heights), fmt="none", **style)
        for x, patch, bar in zip(xs, drawn.patches, there.values(), strict=True):
            if bar.items < HATCHED_BELOW:
                patch.set(**_HATCHED)
                any_few = True
            if len(bar.seeds) > 1:
                points = [x] * len(bar.seeds)
                axes.plot(points, bar.seeds, "wo", markeredgecolor="black", markersize=4.5)
    return any_few


def _label_bars(axes, groups, bars, unit, value_format):
    """Writes the value of each bar at its foot, where it meets no line, and its count below the
    group or beside it."""
    width = 0.8 / max(len(bars), 1)
    names = []
    for x, group in enumerate(groups):
        here = {name: by_group[group] for name, by_group in bars.items() if group in by_group}
        counts = {bar.items for bar in here.values()}
        shared = f"\n{counts.pop():,.0f} {unit}" if len(counts) == 1 else ""
        names.append(f"{_CALLED.get(group, group)}{shared}")
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
    several = any(bar.seeds for of_recipe in bars.values() for bar in of_recipe.values())
    note = "lines: 95 % interval by sentences" + (
        "; of several seeds, least and greatest" if several else ""
    )
    width = _picture_width(len(groups), len(bars))
    label = "occurrences of the word in training"
    with plot_style.picture(file, [title], label, plot_style.NATS, note, width) as (axes,):
        few = _draw_bars(axes, groups, bars)
        _label_bars(axes, groups, bars, "tokens", "{:.1f}".format)
        if few:
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
            of_recipe = panels.setdefault(phenomenon, {}).setdefault(recipe, {})
            if kind in by_kind:
                of_recipe[case or "all"] = by_kind[kind]
    cases = {phenomenon: plot_style.group_names(panel) for phenomenon, panel in panels.items()}
    shown = {phenomenon: len(groups) for phenomenon, groups in cases.items()}
    several = any(bar.seeds for by_kind in bars.values() for bar in by_kind.values())
    note = "lines: 95 % interval" + "; points: seeds" * several
    width = _picture_width(sum(shown.values()), len(bars))
    by_distance = all(kind.rpartition(", ")[2] in _DISTANCES for kind in kinds)
    label = "distance in words" if by_distance else ""
    with plot_style.picture(file, shown, label, "accuracy on pairs (%)", note, width) as every:
        few = False
        for axes, (phenomenon, panel) in zip(every, panels.items(), strict=True):
            few |= _draw_bars(axes, cases[phenomenon], panel)
            axes.axhline(50, color="black", linestyle=":", zorder=0.5, label="chance")
            _label_bars(axes, cases[phenomenon], panel, "pairs", "{:.0f}".format)
        if few:
            _explain_hatching(every[-1], "pairs")
        every[0].set_ylim(0, 102)
        every[0].figure.suptitle(title)


# ---- the bands and the accuracies on agreement pairs that runs keep among their results

_CASE = {"right": int, "pairs": int}
_DISTANCES = {*agreement.DISTANCES, "all"}
# Ends of the names of texts that a run was trained or selected on, and of texts but its tests.
_MADE_WITH, _OTHER = r"\b(train|validation)$", r"(?<!\btest)(?<!\btest\d)$"


def plot_bands(
    workdirs: Sequence[str], file: str, split: str | None = None, labels: Sequence[str] = ()
):
    """Prints and draws log-perplexity by the words' training counts."""
    plot_style.check_file(file)
    runs = Comparison.from_paths(workdirs, labels)
    columns = comparison.comparable_columns(runs.results)
    shared = [one for one, passports in columns.items() if len(passports) == len(runs.paths)]
    of_all = [column for column in shared if split in (None, column.split)]
    if not of_all:
        there = ", ".join(dict.fromkeys(column.split for column in shared))
        mend = f"give --split one of {there}, or evaluate them" if there else "evaluate them"
        raise UserError(
            f"the runs were not all evaluated on {split or 'one text'}: {mend} by python -m zoo "
            "evaluate DIR --split NAME."
        )
    # Tests of the recipe come before texts of --data, whose names have a colon, and validation.
    column = min(of_all, key=lambda one: (leakage.is_validation(one.split), ":" in one.split))
    passports = columns[column]
    for name, passport in passports.items():
        if why := leakage.reason(passport):
            raise UserError(f"{name} cannot be drawn on {column.split}: {why}; leave it out.")
    bars = {
        group: band_bars([read_bands(passports[run]) for run in group.runs])
        for group in runs.groups
    }
    tokens = next(iter(passports.values()))["tokens"]
    title = f"{names_of(columns)[column]} ({tokens:,} tokens)"
    draw_bands(bars, file, title=title)
    several = [len(group.runs) > 1 for group in runs.groups]
    interval = " or ".join(["95 %"] * (not all(several)) + ["of the seeds"] * any(several))
    told = _mention_splits(title, column.split, shared)
    output_files.show(told, *bar_table(bars, "occurrences", "tokens", interval, 4), file)


def plot_agreement(
    workdirs: Sequence[str], file: str, split: str | None = None, labels: Sequence[str] = ()
):
    """Prints and draws the accuracies on the pairs of one text that runs keep."""
    plot_style.check_file(file)
    runs = Comparison.from_paths(workdirs, labels)
    cases = {
        questions: {
            str(path): found
            for path, (record, _) in of_runs.items()
            if _has_counts(found := record["figures"].get("cases"))
        }
        for questions, of_runs in read_answers(runs.paths.values()).items()
        if not questions.options  # others: the same again
    }
    for name, path in runs.paths.items():
        there = [questions.split for questions, of_paths in cases.items() if path in of_paths]
        if there and split not in (None, *there):
            raise UserError(
                f"{path} has no accuracy on {split}, only on {', '.join(there)}: give one of these "
                "to --split."
            )
        if not there:
            micro = "Micro" in ((runs.recipes[name].get("data") or {}).get("component") or "")
            how = f"compare --micro {path}" if micro else f"evaluate {path} --agreement"
            raise UserError(f"{path} has no accuracy on pairs: python -m zoo {how}.")
    every = [one for one in cases if cases[one].keys() == {*runs.paths.values()}]
    shared = [one for one in every if split in (None, one.split)]
    if not shared:
        raise UserError(
            f"{' and '.join(runs.paths.values())} were judged on different pairs: judge all alike "
            "by python -m zoo evaluate DIR --agreement."
        )
    # Tests of the recipe come before texts of --data, and these before texts it was made with.
    text = min(
        shared, key=lambda one: [bool(re.search(end, one.split)) for end in (_MADE_WITH, _OTHER)]
    )
    of_text = {name: cases[text][path] for name, path in runs.paths.items()}
    bars = accuracy_bars(of_text, runs.groups)
    draw_accuracy(bars, file, str(text))
    told = _mention_splits(str(text), text.split, every)
    output_files.show(told, *bar_table(bars, "accuracy in %", "pairs", "95 %", 1), file)


def _mention_splits(title, split, texts):
    """Returns the title of a picture's text, with the other texts that it could be of."""
    others = [one for one in dict.fromkeys(text.split for text in texts) if one != split]
    return f"{title}; --split also takes {', '.join(others)}" if others else title


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
        for recipe, of_recipe in bars.items()
        for group, bar in of_recipe.items()
    ]
    yield from align(["recipe", title, "", interval, unit], rows)
