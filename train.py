"""Trains a model: python train.py --config NAME DIR [--set FIELD=VALUE ...]

The same as `python -m zoo train`; it is written in zoo/lab/commands/train.py.
"""

from collections.abc import Sequence

from zoo.lab.commands import program


def main(words: Sequence[str] | None = None):
    """Reads a command line, by default the process's own, and runs it."""
    # Imported here, where `program` reports a missing package to the user.
    from zoo.lab.commands import command_table

    command_table.run("train", words)


if __name__ == "__main__":
    program.program(main)
