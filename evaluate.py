"""Judges a trained model: python evaluate.py DIR [--split NAME] [--data PATH] ...

The same as `python -m zoo evaluate`; it is written in zoo/commands/evaluate.py.
"""

from collections.abc import Sequence

from zoo.commands import program


def main(words: Sequence[str] | None = None):
    """Reads a command line, by default the process's own, and runs it."""
    # Here, where a package that commands need and that is not there is a user's error.
    from zoo.commands import evaluate

    evaluate.main(words)


if __name__ == "__main__":
    program.program(main)
