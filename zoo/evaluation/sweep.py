"""Runs that differ in one field of their experiment: log-perplexity against that field."""

import json
import pathlib

from zoo.errors import UserError
from zoo.evaluation.compare import check_comparable, columns_of, names_of, read_results


def value_of(workdir: str | pathlib.Path, field: str) -> float | None:
    """The number at a dotted field, such as "vocabulary.features.0.count", of a run's experiment.

    None if the experiment has no such place.

    Raises:
      UserError: the folder has no experiment, or there is something else than a number.
    """
    path = pathlib.Path(workdir) / "experiment.json"
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{workdir} is not the folder of a training run: {error}.") from error
    for name in field.split("."):
        try:
            value = value[int(name)] if isinstance(value, list) else value[name]
        except (KeyError, IndexError, TypeError, ValueError):
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UserError(f"{field} of {workdir} is no number, but {value!r}: name a field that is.")
    return value


def report(field: str, workdirs: list[str], file: str, say=print):
    """Prints log-perplexities, nats per token, in the order of the field, and draws them.

    Runs whose experiments do not have the field come last, and are horizontal lines.

    Raises:
      UserError: no run has the field, a run has no results, they are not of the same quantity, or
        the picture cannot be written.
    """
    from zoo.evaluation import plots

    plots.check_file(file)
    values = {workdir: value_of(workdir, field) for workdir in workdirs}
    if all(value is None for value in values.values()):
        raise UserError(f"none of the runs has the field {field}: see their experiment.json.")
    columns = columns_of({workdir: read_results(workdir) for workdir in workdirs})
    order = sorted(workdirs, key=lambda name: (values[name] is None, values[name] or 0))
    names = names_of(columns)
    curves, lines = {}, {}
    for column, passports in columns.items():
        (first, passport), *others = passports.items()
        for name, other in others:
            check_comparable(passport, other, (first, name))
        found = {
            name: float(passports[name]["figures"]["log_perplexity"])
            for name in order
            if name in passports
        }
        curves[names[column]] = [
            (values[name], loss) for name, loss in found.items() if values[name] is not None
        ]
        for name, loss in found.items():
            if values[name] is None:
                lines[f"{pathlib.Path(name).name}, {names[column]}"] = loss
        say(f"{names[column]}, nats per token ({passport['tokens']:,} tokens)")
        for name, loss in found.items():
            value = "-" if values[name] is None else f"{values[name]:,}"
            say(f"  {value:>12}  {loss:.4f}  {name}")
    plots.sweep(field, curves, lines, file)
    say(file)
