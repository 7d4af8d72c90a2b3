"""Learning curves of runs: validation against steps, epochs or minutes, by recipe."""

import math
import pathlib
import shlex
import statistics
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from zoo.base import strict_json
from zoo.errors import UserError
from zoo.lab.comparison import plot_style
from zoo.lab.comparison.comparison import Comparison, Group, read_each
from zoo.lab.evaluation import records
from zoo.lab.evaluation.results import comparable_columns
from zoo.lab.runs import metric_lines, output_files, seen_texts
from zoo.lab.runs.location import read_bytes
from zoo.lab.runs.workdir import METRICS, Workdir
from zoo.lab.table import COUNT, NATS, Column, Table

# -------- validations of a run while it trained, read from its metrics.jsonl or its record

LOSS, TRAINING = "validation_log_perplexity", "epoch_training_loss"
_LARGEST = float(np.finfo(np.float32).max)  # of a loss that is finite
_STEP = {"step": int, LOSS: float, TRAINING: float | None}
# Fields of each validation that a curve needs, by the horizontal axis.
FIELDS: dict[str, dict] = {
    "step": _STEP,
    "epoch": {**_STEP, "epoch": int},
    "minutes": {**_STEP, "seconds": float},
}

# Fields of curves that have the training loss, too.
WITH_TRAINING = {name: {**fields, TRAINING: float} for name, fields in FIELDS.items()}


def read_validations(run: str, fields: dict[str, Any]) -> list[dict]:
    """Reads the validations, {field: type} in each, of a run or record; raises UserError for
    none."""
    if records.is_record(run):
        validations, last_step = [], 0
        for line in records.record_of(run).validations:
            validations.append(_parse_validation(line, fields, run, last_step))
            last_step = validations[-1]["step"]
        if not validations:
            raise UserError(
                f"{run} was recorded without its learning curve: give the run's folder."
            )
        return validations
    workdir = Workdir(run)
    metrics = workdir.path / METRICS
    if not metrics.exists():
        workdir.experiment()  # an error of its own, if there is no run at all
        raise UserError(f"{METRICS} is not in {run}, as exports do not keep it: give the run.")
    validations = read_metrics(metrics, fields)
    if not validations:
        raise UserError(f"{run} has not validated anything yet: train it further.")
    return validations


def read_available(
    paths: Mapping[str, Any], fields: dict[str, Any]
) -> tuple[dict[str, list[dict]], dict[str, str]]:
    """Reads the validations of {name: path} as `read_validations` does; returns ({name:
    validations}, {name: message of its UserError})."""
    return read_each(paths, lambda path: read_validations(str(path), fields))


def read_metrics(metrics: Any, fields: dict[str, Any]) -> list[dict]:
    """Reads the lines of a metrics.jsonl that have a validation; a malformed line is a UserError.

    Only the last line may be incomplete, of a run that was killed; a resumed run drops the lines
    after its checkpoint, so that steps never fall.
    """
    *lines, last = read_bytes(metrics).split(b"\n")
    lines += [] if metric_lines.is_cut(last) else [last]
    validations, last_step = [], 0
    for number, line in enumerate(lines, 1):
        location = f"{metrics}, line {number},"
        try:
            values = metric_lines.parse(line, last_step)
        except ValueError as error:
            message = f"{location} is not a line of metrics ({error}): take it out."
            raise UserError(message) from error
        last_step = values["step"]
        if LOSS in values:
            validations.append(_parse_validation(values, fields, location))
    return validations


def curve_points(
    validations: Sequence[dict], against: str = "step", field: str = LOSS
) -> list[tuple[float, float]]:
    """Returns points (x, y) of a curve: a field against "step", "epoch" or "minutes"; validations
    without the field are skipped."""
    if against == "minutes":
        unit, name = 60.0, "seconds"
    else:
        unit, name = _steps_per_epoch(validations) if against == "epoch" else 1.0, "step"
    return [
        (validation[name] / unit, validation[field])
        for validation in validations
        if validation.get(field) is not None
    ]


def _steps_per_epoch(validations):
    """Returns the steps of the first epoch; raises UserError unless a validation ended it."""
    first, last = validations[0]["epoch"], validations[-1]["epoch"]
    first_epoch = [validation for validation in validations if validation["epoch"] == first]
    has_ended = first == 0 and (last != first or len(first_epoch) == 1)
    if not has_ended or first_epoch[-1]["step"] < 1:
        raise UserError("the first epoch has not ended with a validation: give --against step.")
    return float(first_epoch[-1]["step"])


def _parse_validation(line, fields, location, min_step=0):
    """Returns a validation; raises UserError for its location unless it has the fields and a step
    of at least `min_step`."""
    try:
        validation = strict_json.parse(fields, line)
        for name in fields.keys() & {LOSS, TRAINING}:
            if _LARGEST < abs(validation.get(name) or 0) < math.inf:
                raise ValueError(f"{name} is {validation[name]}, which is no loss of float32")
        metric_lines.check_step(validation, min_step)
    except ValueError as error:
        raise UserError(f"{location} is not of a validation ({error}): take it out.") from error
    return validation


class BestValidations(NamedTuple):
    """The best validations of the seeds of a recipe."""

    losses: list[float]
    steps: list[int]

    @classmethod
    def from_validations(cls, seeds: Sequence[Sequence[dict]]) -> "BestValidations":
        """Takes the validation of lowest loss from each seed's curve; NaN is highest."""
        best = [
            min(curve, key=lambda point: (math.isnan(point[LOSS]), point[LOSS])) for curve in seeds
        ]
        return cls([point[LOSS] for point in best], [point["step"] for point in best])

    @property
    def loss(self) -> float:
        """Mean of the seeds' lowest losses, nats per token."""
        return statistics.fmean(self.losses)


# -------- the curves of a recipe, drawn as a picture here and on the page by `charts`

LABELS = {"step": "training step", "epoch": "epoch", "minutes": "minutes of training"}
Points = Sequence[tuple[float, float]]


class Curve(NamedTuple):
    """Learning curves of the seeds of a recipe, (x, nats per token) of each validation."""

    recipe: Group
    validation: Sequence[Points]
    training: Sequence[Points] = ()

    @classmethod
    def from_validations(
        cls,
        recipe: Group,
        seeds: Sequence[Sequence[dict]],
        against: str = "step",
        training: bool = True,
    ) -> "Curve":
        """Makes the curves of a recipe's seeds; of the training loss only with `training`."""
        validation, training_loss = (
            [curve_points(curve, against, field) for curve in seeds] for field in (LOSS, TRAINING)
        )
        return cls(recipe, validation, training_loss if training else ())


def mean_curve(seeds: Sequence[Points]) -> np.ndarray:
    """Returns [4, n]: mean x, and mean, least and greatest y of the n-th points of the seeds, as
    far as the shortest curve goes."""
    count = min(map(len, seeds))  # a mean over the seeds that go on would jump
    points = np.array([[*points][:count] for points in seeds], float).reshape(len(seeds), count, 2)
    x, y = points[..., 0], points[..., 1]
    return np.array([x.mean(0), y.mean(0), y.min(0), y.max(0)])


def draw_curves(
    curves: Sequence[Curve],
    file: str | pathlib.Path,
    x_label: str = LABELS["step"],
    limit: float | None = None,
):
    """Draws validation log-perplexity of recipes, dashed their training loss, and dotted the loss
    `limit` of the language itself, into a file."""
    has_seeds = any(len(curve.validation) > 1 for curve in curves)
    shade_note = "shade: least and greatest of the seeds" if has_seeds else ""
    dash_note = "dashed: training loss" if any(curve.training for curve in curves) else ""
    note = "; ".join(filter(None, (shade_note, dash_note)))
    label, title = f"validation, {plot_style.NATS}", "Learning curves"
    with plot_style.picture(file, [title], x_label, label, note) as (axes,):
        for (name, colour_number, _), validation, training in curves:
            _draw_seeds(axes, validation, plot_style.style(colour_number), label=name)
            dashes = {"linestyle": "--", "linewidth": 1, "marker": ""}
            _draw_seeds(axes, training, plot_style.style(colour_number), **dashes)
        if limit is not None:
            axes.axhline(limit, color="black", linestyle=":", label="the language's own limit")


def _draw_seeds(axes, seeds, style, **options):
    """Draws the mean of seeds, and of several their range and each seed as a thin line."""
    if not seeds:
        return
    x, mean, low, high = mean_curve(seeds)
    axes.plot(x, mean, **{**style, **options})
    if len(seeds) > 1:
        axes.fill_between(x, low, high, color=style["color"], alpha=0.2, linewidth=0)
        for points in seeds:
            axes.plot(*zip(*points, strict=True), color=style["color"], linewidth=0.7, alpha=0.6)


def plot_curves(
    workdirs: Sequence[str],
    file: str | pathlib.Path,
    against: str = "step",
    training: bool = False,
    labels: Sequence[str] = (),
):
    """Draws the learning curves of runs into a file, and prints their best validations; raises
    UserError if their validation texts differ."""
    plot_style.check_file(file)
    comparison = Comparison.from_paths(workdirs, labels)
    fields = (WITH_TRAINING if training else FIELDS)[against]
    validations = {name: read_validations(path, fields) for name, path in comparison.paths.items()}
    unchecked = _check_texts(comparison)
    recipes = {group: [validations[run] for run in group.runs] for group in comparison.groups}
    curves = [Curve.from_validations(*pair, against, training) for pair in recipes.items()]
    draw_curves(curves, file, LABELS[against])
    output_files.show(*best_table(recipes).text())
    if unchecked and len(comparison.paths) > 1:
        output_files.show(
            f"{', '.join(unchecked)}: not evaluated on their validation text, so whether these "
            "figures are of the same words was not checked: python -m zoo evaluate "
            f"{shlex.quote(comparison.paths[unchecked[0]])} --split validation."
        )
    output_files.show(file)


def best_table(seeds_by_recipe: Mapping[Group, Sequence[Sequence[dict]]]) -> Table:
    """Makes the table of best validations from {recipe: validations of each seed}."""
    columns = [Column("best validation"), Column("nats", NATS), Column("seeds", NATS)]
    columns += [Column("at step", COUNT), Column("validations", COUNT)]
    rows = []
    for recipe, seeds in seeds_by_recipe.items():
        best = BestValidations.from_validations(seeds)
        spread = (min(best.losses), max(best.losses)) if len(seeds) > 1 else None
        first, last = min(best.steps), max(best.steps)
        steps = first if first == last else f"{first:,} to {last:,}"
        rows.append([recipe.name, best.loss, spread, steps, sum(map(len, seeds))])
    return Table(columns, rows)


def _check_selection(paths):
    """Raises UserError if the recorded validation texts of runs differ; unrecorded ones pass."""
    digests_by_run = {}
    for name, path in paths.items():
        texts = None if records.is_record(path) else seen_texts.read_record(Workdir(path))
        if texts is not None:
            about = texts.selected_on.about
            digests_by_run[name] = {text.digest for text in about if text.by == "this run"}
    for name, digests in digests_by_run.items():
        first = next(iter(digests_by_run))
        if digests != digests_by_run[first]:
            raise UserError(
                f"{first} and {name} were validated on different texts: draw them in two pictures, "
                "or train both with one validation text."
            )


def _check_texts(comparison):
    """Raises UserError if validations of runs are not comparable; returns the runs not evaluated on
    validation, which are unchecked."""
    _check_selection(comparison.paths)
    passports_by_run = {}
    for name, columns in comparison.available_results[0].items():
        passports = {
            column: passport for column, passport in columns.items() if column.split == "validation"
        }
        if passports:
            passports_by_run[name] = passports
    comparable_columns(passports_by_run)
    return [name for name in comparison.paths if name not in passports_by_run]
