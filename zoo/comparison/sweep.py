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
from zoo.comparison import comparison, plot_style, seeds
from zoo.comparison.comparison import Comparison, Group
from zoo.comparison.paired import Runs
from zoo.errors import UserError
from zoo.evaluation import leakage, records
from zoo.evaluation.results import names_of, read_results
from zoo.runs import output_files
from zoo.runs.workdir import Workdir
from zoo.sources import files

SEED = "training.seed"
# Fields of an experiment in plain words.
_FIELDS = {"data.train": "sentences of training text"}


class Point(NamedTuple):
    """Runs that differ in their seed at most, at their value of the field."""

    value: float | None
    runs: Runs

    def line(self, names: Sequence[str]) -> str:
        """Formats the point as text, with the names of its runs."""
        value = "-" if self.value is None else f"{self.value:,}"
        return f"  {value:>12}  {self.runs.loss:.4f}{self.runs.spread()}  {', '.join(names)}"


def value_of(workdir: str | pathlib.Path, field: str) -> float | None:
    """Returns the number at a dotted field of a run's experiment.

    The value of a path with a range, 'a.txt[:864]', is the length of the range: sentences, for a
    learning curve. For data.train without a range of known length, 'a.txt' or 'a.txt[:-100]', it is
    the number of sentences that the run was trained on, by its passports. None if the experiment
    does not have the field.
    """
    value = _without(_experiment(workdir), field)[0]
    if isinstance(value, str):
        trained_on = _trained_on(workdir, value) if field == "data.train" else None
        value = _length(value) or trained_on or value
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UserError(
            f"{field} of {workdir} is not a number, but {value!r}: name a field with a number."
        )
    return value


def _length(path):
    """Returns the number of sentences that a path's [a:b] suffix selects; None if it varies."""
    part = files.Part.parse(path).range
    start, stop = part.start or 0, part.stop
    if stop is None or start < 0 or stop <= start:
        return None
    return stop - start


def _trained_on(workdir, path):
    """Returns how many of a text's sentences a run was trained on, by its passports, or None."""
    name = files.Part.parse(path).path
    for passport in read_results([workdir])[workdir].values():
        for text in passport.get("trained_on") or ():
            if text["by"] == "this run" and text["text"] == name:
                return text["sentences"]
    return None


def _experiment(workdir):
    """Reads a run's experiment as JSON."""
    if records.is_record(workdir):
        return json.loads(json.dumps(records.record_of(workdir).experiment))
    return configuration.to_json(Workdir(workdir).experiment())


def _without(experiment, field):
    """Returns (the value at a field, None if there is none; the experiment without it)."""
    inner, names = experiment, field.split(".")
    for depth, name in enumerate(names):
        try:
            item = int(name) if isinstance(inner, list) else name
            value = inner[item]
        except (KeyError, IndexError, TypeError, ValueError):
            return None, experiment
        if depth == len(names) - 1:
            # Runs whose paths differ in the range alone are of one curve.
            inner[item] = files.Part.parse(value).path if isinstance(value, str) else None
            return value, experiment
        inner = value


def settings_of(workdir: str | pathlib.Path, field: str) -> str:
    """Returns a run's experiment without the field and the seed, as text to compare."""
    experiment = _experiment(workdir)
    for name in (field, SEED):
        experiment = _without(experiment, name)[1]
    return json.dumps(experiment, sort_keys=True)


def curves_of(runs: Comparison, field: str) -> list[dict[float | None, tuple[str, ...]]]:
    """Returns {value of the field: runs} of each curve, in the order of their first runs."""
    curves: dict[str, dict] = {}
    for name, path in runs.paths.items():
        of_value = curves.setdefault(settings_of(path, field), {})
        of_value.setdefault(value_of(path, field), []).append(name)
    return [
        {value: tuple(curve[value]) for value in sorted(curve, key=lambda one: (one is None, one))}
        for curve in curves.values()
    ]


def _names(curves, runs_of, labels):
    """Names curves, with the number of seeds if a point has several."""
    stems = seeds.stems_of(runs_of)
    if labels:
        seeds.check_labels(labels, stems)
        stems = [*labels]
    names = []
    for stem, curve in zip(stems, curves, strict=True):
        least, *_, most = sorted([*map(len, curve.values())] * 2)
        several = f"{most} seeds" if least == most else f"{least} to {most} seeds"
        names.append(stem if most == 1 else f"{stem}, {several}")
    return names


def report(
    field: str,
    workdirs: list[str],
    file: str,
    labels: Sequence[str] = (),
    log=output_files.show,
):
    """Prints log-perplexities, nats per token, in the order of the field, and draws them.

    Runs whose experiments do not have the field come last, and are horizontal lines. Runs that were
    trained or selected on a text (see `zoo.evaluation.leakage`) are named and not drawn.
    """
    plot_style.check_file(file)
    runs = Comparison.of(workdirs)
    curves = curves_of(runs, field)
    if all(value is None for curve in curves for value in curve):
        raise UserError(f"none of the runs has the field {field}: see their experiment.json.")
    columns = comparison.columns(runs.results)
    columns_named = names_of(columns)
    runs_of = [tuple(itertools.chain(*curve.values())) for curve in curves]
    named = [*zip(runs.grouped(runs_of, _names(curves, runs_of, labels)), curves, strict=True)]
    panels: dict = {}
    lines_of: dict = {}
    lines = []
    for column, passports in columns.items():
        chosen = ", which chose the checkpoints" if leakage.is_validation(column.split) else ""
        tokens = f"{next(iter(passports.values()))['tokens']:,} tokens"
        lines.append(f"{columns_named[column]}{chosen}, nats per token ({tokens})")
        reasons = {name: leakage.reason(passport) for name, passport in passports.items()}
        lines += [f"  not drawn: {name}: {why}" for name, why in reasons.items() if why]
        fair = {name: passport for name, passport in passports.items() if not reasons[name]}
        panel = f"{columns_named[column]} ({tokens})"
        found = [(recipe, _points(curve, fair)) for recipe, curve in named]
        several = sum(any(value is not None for value in points) for _, points in found) > 1
        for recipe, points in found:
            with_field = [one for one, _ in points.values() if one.value is not None]
            if with_field:
                lines += [f"  {recipe.name}:"] * several
                panels.setdefault(panel, {})[recipe] = with_field
            lines += [one.line(of) for value, (one, of) in points.items() if value is not None]
        for recipe, points in found:
            if None in points:
                point, of = points[None]
                lines_of.setdefault(panel, {})[recipe] = point.runs.loss
                lines.append(point.line(of))
    if not panels:
        raise UserError(
            "there is nothing to draw: every run with the field was trained on its text, or its "
            "checkpoint chosen on it (see zoo compare): judge the runs on another text."
        )
    draw(field, panels, lines_of, file)
    for line in (*lines, file):  # after the picture, in case the lines' reader stops early
        log(line)


def _points(
    curve: Mapping[float | None, tuple[str, ...]], passports: Mapping[str, dict]
) -> dict[float | None, tuple[Point, list[str]]]:
    """Returns {value: (the point of a curve, its runs)} on a text."""
    points = {}
    for value, runs in curve.items():
        group = Group("", 0, runs)
        if figures := comparison.figures_of(group, passports):
            points[value] = Point(value, figures), [*group.of(passports)]
    return points


def draw(
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
                axes.axhline(height, color=plot_style.colour(number), linestyle="--", label=name)
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
