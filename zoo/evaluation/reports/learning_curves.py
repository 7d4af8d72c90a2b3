"""Learning curves of runs: validation against steps, epochs or minutes, by recipe."""

import pathlib
import shlex
import statistics
from collections.abc import Mapping, Sequence

from zoo.errors import UserError
from zoo.evaluation import records
from zoo.evaluation.reports import curve_plots, plot_style, seeds, validations
from zoo.evaluation.reports.tables import aligned
from zoo.evaluation.results import check_comparable, quantity, read_results
from zoo.runs import output_files, seen_texts
from zoo.runs.workdir import Workdir

LABELS = {"step": "training step", "epoch": "epoch", "minutes": "minutes of training"}


def report(
    workdirs: Sequence[str],
    file: str | pathlib.Path,
    against: str = "step",
    training: bool = False,
    labels: Sequence[str] = (),
    log=output_files.show,
):
    """Prints the best validation of each recipe, and draws the learning curves."""
    from zoo.evaluation.run import short_names

    plot_style.check_file(file)
    workdirs = records.expanded(workdirs)
    paths = dict(zip(short_names(workdirs), workdirs, strict=True))
    fields = (validations.WITH_TRAINING if training else validations.FIELDS)[against]
    lines = {name: validations.of_run(path, fields) for name, path in paths.items()}
    unchecked = _check_texts(paths)
    names = seeds.names_of(seeds.grouped_by_recipe(paths), labels)
    curves = [
        curve_plots.Curve(
            name,
            [validations.points(lines[run], against) for run in group],
            [validations.points(lines[run], against, validations.TRAINING) for run in group]
            if training
            else (),
        )
        for group, name in names.items()
    ]
    curve_plots.learning_curves(curves, file, LABELS[against])
    for line in table({name: [lines[run] for run in group] for group, name in names.items()}):
        log(line)
    if unchecked and len(workdirs) > 1:
        log(
            f"{', '.join(unchecked)}: not evaluated on their validation text, so whether these "
            "figures are of the same words was not checked: python -m zoo evaluate "
            f"{shlex.quote(paths[unchecked[0]])} --split validation."
        )
    log(str(file))


def table(lines: Mapping[str, Sequence[Sequence[dict]]]):
    """Yields the lines of a table of the best validations."""
    rows = []
    for name, of_seeds in lines.items():
        best = [min(of_run, key=lambda line: float(line[validations.LOSS])) for of_run in of_seeds]
        losses = [float(line[validations.LOSS]) for line in best]
        spread = f"[{min(losses):.4f}, {max(losses):.4f}]" if len(losses) > 1 else "-"
        steps = sorted({line["step"] for line in best})
        at = f"{steps[0]:,}" if len(steps) == 1 else f"{steps[0]:,} to {steps[-1]:,}"
        count = sum(map(len, of_seeds))
        rows.append([name, f"{statistics.fmean(losses):.4f}", spread, at, f"{count:,}"])
    header = ["best validation", "nats", "seeds", "at step", "validations"]
    yield from aligned(header, rows, left=1)


def _check_seen(paths):
    """Raises UserError where runs recorded different texts that chose their checkpoints."""
    chosen = {}
    for name, path in paths.items():
        seen = None if records.is_record(path) else seen_texts.of_workdir(Workdir(path))
        if seen is not None:
            about = seen.selected_on.about
            chosen[name] = {text["digest"] for text in about if text["by"] == "this run"}
    for name, digests in chosen.items():
        first = next(iter(chosen))
        if digests != chosen[first]:
            raise UserError(
                f"{first} and {name} were validated on different texts: draw them in two pictures, "
                "or train both with one validation text."
            )


def _check_texts(paths):
    """Checks that the runs' figures of validation are comparable; returns the runs without any."""
    found, unchecked = {}, []
    _check_seen(paths)
    for name, path in paths.items():
        try:
            columns = read_results([path])[path]
        except UserError:  # of a run that is not judged yet
            columns = {}
        of_run = [passport for column, passport in columns.items() if column.split == "validation"]
        if of_run:
            found[name] = of_run
        else:
            unchecked.append(name)
    for name, of_run in list(found.items())[1:]:
        first = next(iter(found))
        quantities = [quantity(passport) for passport in found[first]]
        if not any(quantity(passport) in quantities for passport in of_run):
            check_comparable(found[first][0], of_run[0], (first, name))
    return unchecked
