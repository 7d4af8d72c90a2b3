"""A file of runs: on each line the arguments of `zoo train`, checked before anything is queued.

    --config ptb_nce runs/nce_100 --set model.head.samples=100
    --config ptb_nce runs/nce_400 --set model.head.samples=400   # a comment

Blank lines are skipped.
"""

import argparse
import pathlib
import shlex
from typing import NamedTuple

import configs
from zoo import recipes
from zoo.commands import options, train
from zoo.errors import UserError


class Run(NamedTuple):
    """words: of the command line of `zoo train`. folder: of the run."""

    words: list[str]
    folder: str


def read(path: str) -> list[Run]:
    """The runs of a file.

    Raises:
      UserError: the file cannot be read or has no runs, a line is no command line of `zoo train`,
        its config or a setting is wrong, or two runs have one folder.
    """
    try:
        lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"{path} cannot be read ({error}): give a file with a line a run."
        ) from error
    runs: list[Run] = []
    for number, line in enumerate(lines, 1):
        where = f"{path}, line {number}"
        try:
            words = shlex.split(line, comments=True)
            if words:
                runs.append(_run(words))
        except (ValueError, UserError) as error:
            raise UserError(f"{where}: {error}") from error
        if len({run.folder for run in runs}) < len(runs):
            raise UserError(
                f"{where}: {runs[-1].folder} is the folder of a run above: give another."
            )
    if not runs:
        raise UserError(
            f"{path} has no runs: write the arguments of `zoo train` on a line for each."
        )
    return runs


class _Parser(options.Parser):
    """Raises its errors."""

    def error(self, message):
        raise UserError(f"{message}.")


def _run(words) -> Run:
    """The run of a line."""
    parser = _Parser(add_help=False)
    train.add_to(parser)
    options.add_common_to(parser)
    arguments = parser.parse_args(words)
    if not arguments.config or arguments.list or arguments.show:
        raise UserError("give --config NAME and the folder of the run.")
    recipes.apply_settings(configs.load(arguments.config), arguments.set)
    return Run(words, options.folder_of(arguments))


def add_to(parser: argparse.ArgumentParser):
    """Adds the options that all ways to start runs have."""
    add = parser.add_argument
    add(
        "runs",
        metavar="RUNS",
        help="a file: on each line the arguments of `zoo train`",
    )
    add("--dry-run", action="store_true", help="prints what would run, and starts nothing")
    add("--name", default="zoo", help="of the job: small letters, digits and -")
