"""python -m launch WAY RUNS: starts the runs of a file as batch jobs, or prints the jobs."""

import argparse
import subprocess
import sys
from collections.abc import Sequence

from launch import jobset, runs_file, slurm
from zoo.errors import UserError
from zoo.lab.commands import options, program

WAYS = {"slurm": slurm, "jobset": jobset}


def main(words: Sequence[str] | None = None):
    """Runs a command line, by default the command line of the process.

    Args:
      words: the words of the command line.
    """
    parser = argparse.ArgumentParser(prog="python -m launch", description=__doc__)
    ways = parser.add_subparsers(required=True, metavar="WAY")
    for name, module in WAYS.items():
        way = ways.add_parser(name, help=(module.__doc__ or "").partition("\n")[0])
        for option in (*runs_file.OPTIONS, *module.OPTIONS):
            option.add_to(way)
        way.set_defaults(way=module)
    arguments = program.parse(parser, words)
    options.collect_texts(arguments)
    script = arguments.way.render(runs_file.read(arguments.runs), arguments)
    command = arguments.way.COMMAND
    if arguments.dry_run:
        print(f"# {' '.join(command)} would get:", file=sys.stderr)
        sys.stdout.write(script)
        return
    try:
        code = subprocess.run(command, input=script, encoding="utf-8").returncode
    except FileNotFoundError as error:
        raise UserError(f"{command[0]} is not installed here: see --dry-run.") from error
    if code:
        raise UserError(f"{' '.join(command)} failed with {code}: see its output above.")


if __name__ == "__main__":
    program.program(main)
