"""Evaluates a trained model: python evaluate.py DIR [--split NAME] [--data PATH] ...

The same as `python -m zoo evaluate`; it is written in zoo/lab/commands/evaluate.py.
"""

from collections.abc import Sequence

from zoo.lab.commands import program


def main(words: Sequence[str] | None = None):
    """Reads a command line, by default the process's own, and runs it."""
    # Imported here, where `program` reports a missing package to the user.
    from zoo.lab.commands import command_table

    command_table.run("evaluate", words)


if __name__ == "__main__":
    program.program(main)
