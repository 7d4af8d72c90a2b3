"""A file of runs: on each line the arguments of `zoo train`, checked before anything is queued.

    --config ptb_nce runs/nce_100 --set model.head.samples=100
    --config ptb_nce runs/nce_400 --set model.head.samples=400   # a comment

Blank lines are skipped.
"""

import argparse
import os
import re
import shlex
from collections.abc import Callable
from typing import NamedTuple

import configs
from zoo import configuration
from zoo.errors import UserError, shortened
from zoo.lab.commands import options, train
from zoo.lab.commands.options import Option
from zoo.sources import files

# Exit codes after which the same command resumes a run: another process was lost, an abort by JAX,
# SIGKILL, SIGTERM. After any other, such as 2 for a user's error, another try would fail again.
RESUMABLE = (75, 134, 137, 143)


class Run(NamedTuple):
    """A run of a file.

    Attributes:
      words: the command line of `zoo train`.
      folder: the folder of the run.
    """

    words: list[str]
    folder: str


def read(path: str) -> list[Run]:
    """Reads the runs of a file.

    Args:
      path: the file.

    Raises:
      UserError: the file cannot be read or has no runs, a line is not a command line of
        `zoo train`, its config or a setting is wrong, or two runs have the same folder.
    """
    runs: list[Run] = []
    for number, line in files.read_lines(path):
        location = f"{path}, line {number}"
        try:
            words = shlex.split(line, comments=True)
            if words:
                runs.append(_run(words))
        except ValueError as error:  # raised by shlex
            raise UserError(f"{location}: {error}: write the words as for a shell.") from error
        except UserError as error:
            raise UserError(f"{location}: {error}") from error
        if len({_place(run.folder) for run in runs}) < len(runs):
            raise UserError(
                f"{location}: {runs[-1].folder} is the folder of a run above: give another."
            )
    if not runs:
        raise UserError(
            f"{path} has no runs: write the arguments of `zoo train` on a line for each."
        )
    return runs


def _place(folder: str) -> str:
    """Normalises the path of a folder: runs/a for runs//a/."""
    return folder.rstrip("/") if "://" in folder else os.path.normpath(folder)


class _Parser(options.Parser):
    """A parser that raises UserError."""

    def error(self, message):
        raise UserError(f"{message}.")


def _run(words) -> Run:
    """Parses and checks the run of a line."""
    parser = _Parser(add_help=False)
    options.add_to(parser, train.TRAIN, "train")
    arguments = parser.parse_args(words)
    if not (arguments.config and arguments.folder) or arguments.list or arguments.show:
        raise UserError("give --config NAME and the folder of the run.")
    configuration.apply_settings(configs.load(arguments.config), arguments.set)
    return Run(words, arguments.folder)


def word(pattern: str, description: str, limit: int = 40) -> Callable[[str], str]:
    """Makes the type of an option whose values are safe within a script or manifest.

    Args:
      pattern: the pattern that values match.
      description: of the values, for messages.
      limit: most characters of a value.
    """

    def read(text: str) -> str:
        if len(text) > limit or not re.fullmatch(pattern, text):
            raise argparse.ArgumentTypeError(
                f"{shortened(text, 60)!r} is not {description}, of at most {limit} characters"
            )
        return text

    return read


# Of all ways to start runs.
OPTIONS = (
    Option("runs RUNS", "a file: on each line the arguments of `zoo train`"),
    Option("--dry-run", "prints what would run, and starts nothing"),
    Option(
        "--name NAME",
        "name of the job: small letters, digits and -",
        word(
            r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?",
            "a name of small letters, digits and - between them, a letter first",
        ),
        default="zoo",
    ),
    Option(
        "--restarts N",
        "restarts of a run that was stopped or lost a process",
        options.integer(0),
        default=100,
    ),
    Option(
        "--grace SECONDS",
        "time from SIGTERM to the end of a task",
        options.integer(1, 65_535),
        default=300,
    ),
)
