"""Validations of a run while it trained, read from its metrics.jsonl or its record."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from zoo import strict_json
from zoo.errors import UserError
from zoo.evaluation import records
from zoo.runs.workdir import METRICS, Workdir

LOSS, TRAINING = "validation_log_perplexity", "epoch_training_loss"
_STEP = {"step": int, LOSS: float, TRAINING: float | None}
# Fields of each validation that a curve needs, by the horizontal axis.
FIELDS: dict[str, dict] = {
    "step": _STEP,
    "epoch": {**_STEP, "epoch": int},
    "minutes": {**_STEP, "seconds": float},
}

# Fields of curves that have the training loss, too.
WITH_TRAINING = {name: {**fields, TRAINING: float} for name, fields in FIELDS.items()}


def of_run(run: str, fields: dict[str, Any]) -> list[dict]:
    """Reads the validations of a run."""
    if records.is_record(run):
        found = [*records.record_of(run).validations]
        if not found:
            raise UserError(
                f"{run} was recorded without its learning curve: give the run's folder."
            )
        _check(found, fields, run)
        return found
    workdir = Workdir(run)
    metrics = workdir.path / METRICS
    if not metrics.exists():
        workdir.experiment()  # an error of its own, if there is no run at all
        raise UserError(f"{METRICS} is not in {run}; exports do not keep it.")
    found = read(metrics, fields)
    if not found:
        raise UserError(f"{run} has not validated anything yet: train it further.")
    return found


def read(metrics: Any, fields: dict[str, Any]) -> list[dict]:
    """Reads the lines of a metrics.jsonl that belong to validations.

    The last line of a killed run may be incomplete; it is left out.
    """
    found = []
    for number, line in enumerate(metrics.read_bytes().splitlines(), 1):
        values = strict_json.object_or_none(line) or {}
        if "validation_log_perplexity" in values:
            _check([values], fields, f"{metrics}, line {number},")
            found.append(values)
    return found


def points(
    lines: Sequence[dict], against: str = "step", field: str = LOSS
) -> list[tuple[float, float]]:
    """Returns the (x, y) of the validations that have a field."""
    if against == "minutes":
        unit, name = 60.0, "seconds"
    else:
        unit, name = _steps_per_epoch(lines) if against == "epoch" else 1.0, "step"
    return [
        (float(line[name]) / unit, float(line[field]))
        for line in lines
        if line.get(field) is not None
    ]


def _steps_per_epoch(lines):
    """Returns the number of steps of the first epoch, whose last validation ends it."""
    first, last = lines[0]["epoch"], lines[-1]["epoch"]
    of_first = [line for line in lines if line["epoch"] == first]
    if first != 0 or (last == first and len(of_first) > 1):
        raise UserError("the first epoch has not ended with a validation: give --against step.")
    return float(of_first[-1]["step"])


def mean_curve(seeds: Sequence[Sequence[tuple[float, float]]]) -> np.ndarray:
    """Returns [4, n]: mean x, and mean, least and greatest y of the n-th points of several seeds.

    Seeds that stop early end the curve, for a mean over other seeds would jump.
    """
    count = min(map(len, seeds))
    points = np.array([[*points][:count] for points in seeds], float).reshape(len(seeds), count, 2)
    x, y = points[..., 0], points[..., 1]
    return np.array([x.mean(0), y.mean(0), y.min(0), y.max(0)])


def _check(found, fields, where):
    try:
        for values in found:
            strict_json.check(values, fields)
    except ValueError as error:
        raise UserError(f"{where} is not of a validation ({error}): take it out.") from error
