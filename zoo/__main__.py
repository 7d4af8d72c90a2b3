"""Runs a command of Zoo: python -m zoo COMMAND; see zoo/lab/commands."""

from collections.abc import Sequence

from zoo.lab.commands import program


def main(arguments: Sequence[str] | None = None):
    """Runs the command of a command line; by default the process's arguments."""
    # Imported here, where `program` reports a missing package to the user.
    from zoo.lab.commands import command_table

    command_table.main(arguments)


def console():
    """Runs the console script `zoo`."""
    program.program(main)


if __name__ == "__main__":
    console()
