"""Keeps the recipe and the passports of a run as a record: python -m records.keep DIR [DIR ...]

A record is a folder records/runs/NAME with `experiment.json` and `results/*.json`, which `zoo
compare` reads as it reads a run. Scores of single words are left out, for they are large; the
interval that they give stands in the figures.
"""

import argparse
import pathlib

from zoo import strict_json
from zoo.commands import program
from zoo.errors import UserError
from zoo.evaluation import kept_scores, significance

FOLDER = pathlib.Path(__file__).parent / "runs"


def keep(run: pathlib.Path, into: pathlib.Path = FOLDER) -> pathlib.Path:
    """Copies what is to be kept of a run, under its folder's name.

    Raises:
      UserError: it has no results, was trained or judged by code that no revision has, or names
        files by absolute paths.
    """
    passports = sorted((run / "results").glob("*.json"))
    if not passports:
        raise UserError(f"{run} has no results: evaluate it first.")
    folder = into / run.name
    (folder / "results").mkdir(parents=True, exist_ok=True)
    experiment = strict_json.read(run / "experiment.json")
    _write(folder / "experiment.json", experiment)
    for path in passports:
        passport = strict_json.read(path)
        check(passport, path)
        scores = kept_scores.read(path, passport)
        if scores is not None and "log_prob" in scores:
            interval = significance.bootstrap_interval(
                kept_scores.statistics(scores), kept_scores.log_perplexity
            )
            passport["figures"]["interval"] = interval
        _write(folder / "results" / path.name, passport)
    return folder


def check(passport: dict, path: pathlib.Path):
    """UserError unless a passport says by what code it came, and names no machine's own paths."""
    began = (passport["training"]["made_with"] or {}).get("revision")
    for revision in (passport["revision"], began):
        if not revision or revision.endswith("-dirty"):
            raise UserError(
                f"{path} is of code that no revision has ({revision}): commit, train and judge "
                "again."
            )
    absolute = [
        text
        for text in (passport["data"]["path"], *passport["command"][1:])
        if pathlib.PurePath(text).is_absolute()
    ]
    if absolute:
        raise UserError(f"{path} names {absolute[0]}: judge the run by relative paths.")
    passport["command"][0] = pathlib.PurePath(passport["command"][0]).name


def _write(path, value):
    text = strict_json.dumps(value, indent=1, ensure_ascii=False) + "\n"
    path.write_text(text, encoding="utf-8")


def main():
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("runs", nargs="+", metavar="DIR", help="folders of evaluated runs")
    for run in parser.parse_args().runs:
        print(keep(pathlib.Path(run)))


if __name__ == "__main__":
    program.program(main)
