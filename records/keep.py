"""Keeps the recipe, passports and scores of runs: python -m records.keep FILE.jsonl DIR ...

A record has a line for each run, with its learning curve, and scores of single words and questions
in FILE.npz beside it, in the format of `zoo.lab.evaluation.records`. Scores of the validation text,
on which settings are chosen and nothing is tested, are left out if a run was judged on others. A
run that is in the record already is replaced.
"""

import argparse
import dataclasses
import pathlib
from typing import Any

from zoo.base import strict_json
from zoo.errors import UserError
from zoo.lab.commands import program
from zoo.lab.comparison import learning_curves
from zoo.lab.evaluation import item_scores, records, significance
from zoo.lab.evaluation.figures import Passport
from zoo.lab.evaluation.results import read_passport
from zoo.lab.runs.workdir import METRICS


def keep(file: pathlib.Path, runs: list[pathlib.Path]) -> list[str]:
    """Adds runs to a record, under their folders' names.

    Args:
      file: the record, FILE.jsonl.
      runs: folders of evaluated runs.

    Returns:
      The runs' names.

    Raises:
      UserError: the file is not a .jsonl; a run has no results, was trained or judged by
        uncommitted code, or names files by absolute paths.
    """
    if file.suffix != ".jsonl":
        raise UserError(f"{file} is not the name of a record: give one that ends with .jsonl.")
    run_records, scores = [], {}
    for run in runs:
        record, run_scores = _read_run(run)
        run_records.append(record)
        scores[record.run] = run_scores
    records.write(file, run_records, scores)
    return [record.run for record in run_records]


def _read_run(run):
    """Reads (the record, {result: its kept scores}) of a run's folder."""
    paths = sorted((run / "results").glob("*.json"))
    if not paths:
        raise UserError(f"{run} has no results: evaluate it first.")
    results, scores = {}, {}
    for path in paths:
        passport: Any = read_passport(path)
        check(passport, path)
        arrays = item_scores.read(passport)
        if arrays is not None:
            scores[path.stem] = arrays
            if "log_prob" in arrays:
                interval = significance.bootstrap_interval(
                    item_scores.statistics(arrays), item_scores.log_perplexity
                )
                figures = dataclasses.replace(passport.figures, interval=interval)
                passport = dataclasses.replace(passport, figures=figures)
        program, *arguments = passport.command
        command = pathlib.PurePath(program).name, *arguments
        results[path.stem] = strict_json.to_json(dataclasses.replace(passport, command=command))
    tested = {name: score for name, score in scores.items() if not name.startswith("validation.")}
    experiment = strict_json.read(run / "experiment.json")
    metrics = run / METRICS
    curve = learning_curves.read_metrics(metrics, {"step": int}) if metrics.exists() else ()
    return records.Record(run.name, experiment, results, tuple(curve)), tested or scores


def check(passport: Passport, name: str | pathlib.Path):
    """Checks that a passport names the code it came from, and does not name a machine's own paths.

    Args:
      passport: of a result.
      name: of the result, for messages.

    Raises:
      UserError: it names no revision, or an absolute path.
    """
    code = passport.training.made_with
    for revision in (passport.revision, code and code.revision):
        if not revision or revision.endswith("-dirty"):
            raise UserError(
                f"{name} was made by code that was not committed ({revision}): commit, train and "
                "judge again."
            )
    absolute = [
        text
        for text in (passport.data.path, *passport.command[1:])
        if pathlib.PurePath(text).is_absolute()
    ]
    if absolute:
        raise UserError(f"{name} names {absolute[0]}: judge the run by relative paths.")


def main():
    """Runs the program."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("file", metavar="FILE.jsonl", type=pathlib.Path, help="the record")
    parser.add_argument(
        "runs", nargs="+", metavar="DIR", type=pathlib.Path, help="folders of evaluated runs"
    )
    arguments = program.parse(parser)
    for run in keep(arguments.file, arguments.runs):
        print(f"{arguments.file}:{run}")


if __name__ == "__main__":
    program.program(main)
