"""Log-perplexity against one field of the experiment, for runs that differ in that field.

Runs that differ in nothing but their seed stand at one place, by their mean, least and greatest;
runs that differ in other fields, too, are curves of their own.
"""

import dataclasses
import json
import math
import pathlib
import statistics
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from zoo import configuration
from zoo.comparison import seeds
from zoo.errors import UserError
from zoo.evaluation import item_scores, leakage, records
from zoo.evaluation.results import check_comparable, columns_of, names_of, read_results
from zoo.runs import output_files
from zoo.runs.workdir import Workdir
from zoo.sources import files

SEED = "training.seed"
_NONE = (math.nan, math.nan)


@dataclasses.dataclass(frozen=True)
class Point:
    """Runs that differ in their seed at most."""

    value: float | None
    losses: tuple[float, ...]  # nats per token
    workdirs: tuple[str, ...]
    # the 95 % interval of the loss of a single run, NaN twice if it is not known
    interval: tuple[float, float] = (math.nan, math.nan)

    @property
    def mean(self) -> float:
        """The mean log-perplexity of the runs."""
        return statistics.fmean(self.losses)

    @property
    def span(self) -> tuple[float, float]:
        """The least and the greatest log-perplexity of the runs."""
        return min(self.losses), max(self.losses)

    def line(self, short: Mapping[str, str]) -> str:
        """Formats the point as text."""
        value = "-" if self.value is None else f"{self.value:,}"
        spread = ""
        if len(self.losses) == 1 and not math.isnan(self.interval[0]):
            spread = f" [{self.interval[0]:.4f}, {self.interval[1]:.4f}]"
        if len(self.losses) > 1:
            spread = f" ({min(self.losses):.4f} to {max(self.losses):.4f} of {len(self.losses)})"
        return (
            f"  {value:>12}  {self.mean:.4f}{spread}  {', '.join(short[w] for w in self.workdirs)}"
        )


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


def points_of(
    losses: Mapping[str, float],
    field: str,
    intervals: Mapping[str, tuple[float, float]] = MappingProxyType({}),
) -> list[list[Point]]:
    """Returns curves in the order of their first runs, points by the field's value."""
    curves: dict = {}
    for workdir, loss in losses.items():
        curve = curves.setdefault(settings_of(workdir, field), {})
        curve.setdefault(value_of(workdir, field), []).append((loss, workdir))
    return [
        [
            _point(value, curve[value], intervals)
            for value in sorted(curve, key=lambda value: (value is None, value or 0))
        ]
        for curve in curves.values()
    ]


def _point(value, runs, intervals):
    losses, workdirs = map(tuple, zip(*runs, strict=True))
    interval = intervals.get(workdirs[0], _NONE) if len(runs) == 1 else _NONE
    return Point(value, losses, workdirs, interval)


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
    from zoo.comparison import curve_plots, plot_style
    from zoo.evaluation.run import short_names

    plot_style.check_file(file)
    workdirs = records.expanded(workdirs)
    if all(value is None for value in [value_of(workdir, field) for workdir in workdirs]):
        raise UserError(f"none of the runs has the field {field}: see their experiment.json.")
    columns = columns_of(read_results(workdirs))
    names = names_of(columns)
    short = dict(zip(workdirs, short_names(workdirs), strict=True))
    called = _names(workdirs, field, short, labels)
    panels: dict = {}
    lines_of: dict = {}
    lines = []
    for column, passports in columns.items():
        (first, passport), *others = passports.items()
        for name, other in others:
            check_comparable(passport, other, (first, name))
        reasons = {name: leakage.reason(record) for name, record in passports.items()}
        fair = {w: passports[w] for w in workdirs if w in passports and not reasons[w]}
        chosen = ", which chose the checkpoints" if leakage.is_validation(column.split) else ""
        tokens = f"{passport['tokens']:,} tokens"
        lines.append(f"{names[column]}{chosen}, nats per token ({tokens})")
        lines += [f"  not drawn: {short[name]}: {why}" for name, why in reasons.items() if why]
        losses = {w: float(record["figures"]["log_perplexity"]) for w, record in fair.items()}
        intervals = {w: interval_of(record) for w, record in fair.items()}
        curves = points_of(losses, field, intervals)
        panel = f"{names[column]} ({tokens})"
        several = sum(curve[0].value is not None for curve in curves) > 1
        for curve in curves:
            points = [point for point in curve if point.value is not None]
            if not points:
                continue
            name = called[settings_of(points[0].workdirs[0], field)]
            if several:
                lines.append(f"  {name}:")
            panels.setdefault(panel, {})[name] = points
            lines += [point.line(short) for point in points]
        for point in (point for curve in curves for point in curve if point.value is None):
            name = called[settings_of(point.workdirs[0], field)]
            lines_of.setdefault(panel, {})[name] = point.mean
            lines.append(point.line(short))
    if not panels:
        raise UserError(
            "there is nothing to draw: every run with the field was trained on its text, or its "
            "checkpoint chosen on it (see zoo compare): judge the runs on another text."
        )
    curve_plots.sweep(field, panels, lines_of, file)
    for line in (*lines, file):  # after the picture, in case the lines' reader stops early
        log(line)


def interval_of(passport: dict) -> tuple[float, float]:
    """Returns the 95 % interval of a log-perplexity by sentences; NaN twice if it is not known."""
    arrays = passport["place"].read_scores(passport)
    if arrays is not None:
        reported = float(passport["figures"]["log_perplexity"])
        return item_scores.interval(item_scores.statistics(arrays), reported)
    low, high = passport["figures"].get("interval") or _NONE  # of a record
    return float(low), float(high)


def _names(workdirs, field, short, labels):
    """Returns {settings of a curve: its name}, with the number of seeds if they are several."""
    curves: dict = {}
    for workdir in workdirs:
        of_curve = curves.setdefault(settings_of(workdir, field), {})
        of_curve.setdefault(value_of(workdir, field), []).append(short[workdir])
    groups = [tuple(name for runs in curve.values() for name in runs) for curve in curves.values()]
    names = seeds.stems_of(groups)
    if labels:
        seeds.check_labels(labels, names)
        names = [*labels]
    found = {}
    for (settings, curve), name in zip(curves.items(), names, strict=True):
        counts = sorted({len(runs) for runs in curve.values()})
        several = "" if counts[-1] == 1 else f", {counts[-1]} seeds"
        if several and len(counts) > 1:
            several = f", {counts[0]} to {counts[-1]} seeds"
        found[settings] = f"{name}{several}"
    return found
