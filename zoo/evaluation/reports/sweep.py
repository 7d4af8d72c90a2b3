"""Log-perplexity against one field of the experiment, for runs that differ in that field.

Runs that differ in nothing but their seed stand at one place, by their mean, least and greatest;
runs that differ in other fields, too, are curves of their own.
"""

import dataclasses
import json
import pathlib
import statistics

from zoo import configuration
from zoo.errors import UserError
from zoo.evaluation import overlap, records
from zoo.evaluation.comparable import check_comparable
from zoo.evaluation.results import columns_of, names_of, read_results
from zoo.runs import output_files
from zoo.runs.workdir import Workdir
from zoo.sources import files

SEED = "training.seed"


@dataclasses.dataclass(frozen=True)
class Point:
    """Runs that differ in their seed at most.

    Attributes:
      value: of the field, None without it.
      losses: nats per token.
      workdirs: of the runs.
    """

    value: float | None
    losses: tuple[float, ...]
    workdirs: tuple[str, ...]

    @property
    def mean(self) -> float:
        """The mean log-perplexity of the runs."""
        return statistics.fmean(self.losses)

    def line(self) -> str:
        """Formats the point as text."""
        value = "-" if self.value is None else f"{self.value:,}"
        spread = ""
        if len(self.losses) > 1:
            spread = f" ({min(self.losses):.4f} to {max(self.losses):.4f} of {len(self.losses)})"
        return f"  {value:>12}  {self.mean:.4f}{spread}  {', '.join(self.workdirs)}"


def value_of(workdir: str | pathlib.Path, field: str) -> float | None:
    """Returns the number at a dotted field of a run's experiment.

    The value of a path with a range, 'a.txt[:864]', is the length of the range: sentences, for a
    learning curve. For data.train without a range of known length, 'a.txt' or 'a.txt[:-100]', it is
    the number of sentences that the run was trained on, by its passports. None if the experiment
    does not have the field.

    Args:
      workdir: the run's folder.
      field: its dotted name, such as "vocabulary.features.0.count".

    Raises:
      UserError: the folder does not hold a run, or the value is not a number.
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
    """Returns a run's experiment without the field and the seed, as text to compare.

    Args:
      workdir: the run's folder.
      field: its dotted name.
    """
    experiment = _experiment(workdir)
    for name in (field, SEED):
        experiment = _without(experiment, name)[1]
    return json.dumps(experiment, sort_keys=True)


def points_of(losses: dict[str, float], field: str) -> list[list[Point]]:
    """Returns curves, in the order of their first runs: the points of each, by the field's value.

    Args:
      losses: nats per token, by the run's folder.
      field: its dotted name.
    """
    curves: dict = {}
    for workdir, loss in losses.items():
        curve = curves.setdefault(settings_of(workdir, field), {})
        curve.setdefault(value_of(workdir, field), []).append((loss, workdir))
    return [
        [
            Point(value, *map(tuple, zip(*curve[value], strict=True)))
            for value in sorted(curve, key=lambda value: (value is None, value or 0))
        ]
        for curve in curves.values()
    ]


def report(field: str, workdirs: list[str], file: str, log=output_files.show):
    """Prints log-perplexities, nats per token, in the order of the field, and draws them.

    Runs whose experiments do not have the field come last, and are horizontal lines. Runs that were
    trained or selected on a text (see `zoo.evaluation.overlap`) are named and not drawn.

    Args:
      field: its dotted name.
      workdirs: the runs' folders, or records.
      file: the picture to write.
      log: prints a line.

    Raises:
      UserError: no run has the field, a run has no results, they are not of the same quantity, or
        the picture cannot be written.
    """
    from zoo.evaluation.reports import plots
    from zoo.evaluation.run import short_names

    plots.check_file(file)
    workdirs = records.expanded(workdirs)
    if all(value is None for value in [value_of(workdir, field) for workdir in workdirs]):
        raise UserError(f"none of the runs has the field {field}: see their experiment.json.")
    columns = columns_of(read_results(workdirs))
    names = names_of(columns)
    labels = dict(zip(workdirs, short_names(workdirs), strict=True))
    drawn, heights, lines = {}, {}, []
    for column, passports in columns.items():
        (first, passport), *others = passports.items()
        for name, other in others:
            check_comparable(passport, other, (first, name))
        reasons = {name: overlap.reason(record) for name, record in passports.items()}
        losses = {
            workdir: float(passports[workdir]["figures"]["log_perplexity"])
            for workdir in workdirs
            if workdir in passports and not reasons[workdir]
        }
        chosen = ", which chose the checkpoints" if overlap.is_validation(column.split) else ""
        lines.append(f"{names[column]}{chosen}, nats per token ({passport['tokens']:,} tokens)")
        lines += [f"  not drawn: {name}: {why}" for name, why in reasons.items() if why]
        curves = points_of(losses, field)
        several = sum(curve[0].value is not None for curve in curves) > 1
        without = [point for curve in curves for point in curve if point.value is None]
        for curve in curves:
            points = [point for point in curve if point.value is not None]
            if not points:
                continue
            name = names[column]
            if several:
                label = labels[points[0].workdirs[0]]
                name = f"{name}, as {label}"
                lines.append(f"  as {label}:")
            drawn[name] = points
            for point in points:
                lines.append(point.line())
        for point in without:
            heights[f"{labels[point.workdirs[0]]}, {names[column]}"] = point.mean
            lines.append(point.line())
    if not drawn:
        raise UserError(
            "there is nothing to draw: every run with the field was trained on its text, or its "
            "checkpoint chosen on it (see zoo compare): judge the runs on another text."
        )
    plots.sweep(field, drawn, heights, file)
    for line in (*lines, file):  # after the picture, in case the lines' reader stops early
        log(line)
