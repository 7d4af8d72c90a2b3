"""Log-perplexity against one field of the experiment, for runs that differ in that field.

Runs that differ in nothing but their seed stand at one place, by their mean, least and greatest;
runs that differ in other fields, too, are curves of their own.
"""

import itertools
import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from zoo import configuration
from zoo.errors import UserError
from zoo.lab.comparison import plot_style, seeds
from zoo.lab.comparison.comparison import Comparison, Group, comparable_columns, read_losses
from zoo.lab.comparison.paired import GroupLosses
from zoo.lab.evaluation import leakage, records
from zoo.lab.evaluation.results import names_of, read_results
from zoo.lab.runs import output_files
from zoo.lab.runs.workdir import Workdir
from zoo.sources import files

SEED = "training.seed"
# Fields of an experiment in plain words.
_FIELDS = {"data.train": "sentences of training text"}


class SweepPoint(NamedTuple):
    """Runs that differ in their seed at most, at their value of the field."""

    value: float | None
    runs: GroupLosses
    names: Sequence[str] = ()

    def line(self) -> str:
        """Formats the point as a line: value, loss with its spread, runs."""
        value = "-" if self.value is None else f"{self.value:,}"
        loss = f"{self.runs.loss:.4f}{self.runs.format_spread()}"
        return f"  {value:>12}  {loss}  {', '.join(self.names)}"


def field_value(workdir: str | pathlib.Path, field: str) -> float | None:
    """Returns the number at a dotted field of a run's experiment.

    The value of a path with a range, 'a.txt[:864]', is the length of the range: sentences, for a
    learning curve. For data.train without a range of known length, 'a.txt' or 'a.txt[:-100]', it is
    the number of sentences that the run was trained on, by its passports. None if the experiment
    does not have the field.
    """
    value = _take_field(_read_experiment(workdir), field)[0]
    if isinstance(value, str):
        trained_on = _trained_sentences(workdir, value) if field == "data.train" else None
        value = _range_length(value) or trained_on or value
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UserError(
            f"{field} of {workdir} is not a number, but {value!r}: name a field with a number."
        )
    return value


def _range_length(path):
    """Returns the number of sentences that a path's [a:b] suffix selects; None if it varies."""
    part = files.Part.parse(path).range
    start, stop = part.start or 0, part.stop
    return stop - start if stop is not None and 0 <= start < stop else None


def _trained_sentences(workdir, path):
    """Returns how many of a text's sentences a run was trained on, by its passports, or None."""
    name = files.Part.parse(path).path
    for passport in read_results([workdir])[workdir].values():
        for text in passport.get("trained_on") or ():
            if text["by"] == "this run" and text["text"] == name:
                return text["sentences"]
    return None


def _read_experiment(workdir):
    """Reads the experiment of a run or record as JSON."""
    if records.is_record(workdir):
        return json.loads(json.dumps(records.record_of(workdir).experiment))
    return configuration.to_json(Workdir(workdir).experiment())


def _take_field(experiment, field):
    """Takes a field out of an experiment: (its value, None without it; the experiment)."""
    inner, names = experiment, field.split(".")
    for depth, name in enumerate(names):
        try:
            key = int(name) if isinstance(inner, list) else name
            value = inner[key]
        except (KeyError, IndexError, TypeError, ValueError):
            return None, experiment
        if depth == len(names) - 1:
            # Runs whose paths differ in the range alone are of one curve.
            inner[key] = files.Part.parse(value).path if isinstance(value, str) else None
            return value, experiment
        inner = value


def other_settings(workdir: str | pathlib.Path, field: str) -> str:
    """Returns a run's experiment without the field and the seed, as text to compare."""
    experiment = _read_experiment(workdir)
    for name in (field, SEED):
        experiment = _take_field(experiment, name)[1]
    return json.dumps(experiment, sort_keys=True)


def group_curves(comparison: Comparison, field: str) -> list[dict[float | None, tuple[str, ...]]]:
    """Groups runs into curves, {value of the field: runs}, in the order of their first runs."""
    curves: dict[str, dict] = {}
    for name, path in comparison.paths.items():
        runs_by_value = curves.setdefault(other_settings(path, field), {})
        runs_by_value.setdefault(field_value(path, field), []).append(name)
    return [
        {value: tuple(curve[value]) for value in sorted(curve, key=lambda x: (x is None, x))}
        for curve in curves.values()
    ]


def _name_curves(curves, runs_by_curve, labels):
    """Names curves, with the number of seeds if a point has several."""
    stems = seeds.group_stems(runs_by_curve)
    if labels:
        seeds.check_labels(labels, stems)
        stems = [*labels]
    names = []
    for stem, curve in zip(stems, curves, strict=True):
        fewest, *_, largest = sorted([*map(len, curve.values())] * 2)
        seed_count = f"{largest} seeds" if fewest == largest else f"{fewest} to {largest} seeds"
        names.append(stem if largest == 1 else f"{stem}, {seed_count}")
    return names


def plot_sweep(field: str, workdirs: list[str], file: str, labels: Sequence[str] = ()):
    """Prints and draws log-perplexities of runs against a field of their experiments."""
    plot_style.check_file(file)
    comparison = Comparison.from_paths(workdirs)
    curves = group_curves(comparison, field)
    if all(value is None for curve in curves for value in curve):
        raise UserError(f"none of the runs has the field {field}: see their experiment.json.")
    columns = comparable_columns(comparison.results)
    columns_named = names_of(columns)
    runs_by_curve = [tuple(itertools.chain(*curve.values())) for curve in curves]
    groups = comparison.make_groups(runs_by_curve, _name_curves(curves, runs_by_curve, labels))
    curve_by_group = dict(zip(groups, curves, strict=True))
    panels: dict[str, dict[Group, list[SweepPoint]]] = {}
    lines = []
    for column, passports in columns.items():
        chosen = ", which chose the checkpoints" if leakage.is_validation(column.split) else ""
        tokens = f"{next(iter(passports.values()))['tokens']:,} tokens"
        lines.append(f"{columns_named[column]}{chosen}, nats per token ({tokens})")
        reasons = {name: leakage.reason(passport) for name, passport in passports.items()}
        lines += [f"  not drawn: {name}: {reason}" for name, reason in reasons.items() if reason]
        fair = {name: passport for name, passport in passports.items() if not reasons[name]}
        points = {group: _curve_points(curve, fair) for group, curve in curve_by_group.items()}
        with_field = [group for group in groups if _with_field(points[group])]
        for group in with_field:
            if len(with_field) > 1:
                lines.append(f"  {group.name}:")
            lines += [point.line() for point in _with_field(points[group])]
        all_points = itertools.chain(*points.values())
        lines += [point.line() for point in all_points if point.value is None]
        if with_field:
            panels[f"{columns_named[column]} ({tokens})"] = points
    if not panels:
        raise UserError(
            "there is nothing to draw: every run with the field was trained on its text, or its "
            "checkpoint chosen on it (see zoo compare): judge the runs on another text."
        )
    draw_sweep(field, panels, file)
    output_files.show(*lines, file)  # after the picture, in case the lines' reader stops early


def _curve_points(
    curve: Mapping[float | None, tuple[str, ...]], passports: Mapping[str, dict]
) -> list[SweepPoint]:
    """Makes the points of a curve, {value of the field: runs}, from passports by run."""
    points = []
    for value, runs in curve.items():
        group = Group("", 0, runs)
        losses = read_losses(group, passports)
        if losses:
            points.append(SweepPoint(value, losses, [*group.select(passports)]))
    return points


def _with_field(points):
    """Returns the points of runs that have the field."""
    return [point for point in points if point.value is not None]


def draw_sweep(
    field: str, panels: Mapping[str, Mapping[Group, Sequence[SweepPoint]]], file: str | pathlib.Path
):
    """Draws log-perplexity against a number of the experiment, a panel for each text."""
    curves = [_with_field(curve) for panel in panels.values() for curve in panel.values()]
    all_points = [*itertools.chain(*curves)]
    has_seeds = any(len(point.runs.losses) > 1 for point in all_points)
    note = "lines: least and greatest of the seeds" if has_seeds else "lines: 95 % interval"
    label = _FIELDS.get(field, field)
    with plot_style.picture(file, [*panels], label, plot_style.NATS, note) as all_axes:
        for axes, panel in zip(all_axes, panels.values(), strict=True):
            for recipe, points in panel.items():
                for point in points:
                    if point.value is None:
                        colour = plot_style.colour(recipe.number)
                        axes.axhline(point.runs.loss, label=recipe.name, color=colour, ls="--")
                curve = _with_field(points)
                if curve:
                    _draw_curve(axes, recipe, curve, has_seeds)
            _scale(axes, [point.value for point in all_points])


def _draw_curve(axes, recipe, curve, has_seeds):
    """Draws a curve with the intervals of its points, or the range of their seeds."""
    groups = [point.runs for point in curve]
    means = np.array([group.loss for group in groups])
    # An interval of one run would not mean the same beside a range of seeds.
    ends = np.array([group.loss_range if has_seeds else group.interval for group in groups]).T
    xs, style = [point.value for point in curve], plot_style.style(recipe.number)
    axes.errorbar(xs, means, np.abs(ends - means), label=recipe.name, **style)


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
