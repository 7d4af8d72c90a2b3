"""python -m zoo COMMAND: everything that the zoo does; see zoo/commands."""

from collections.abc import Sequence

from zoo.commands import program


def main(arguments: Sequence[str] | None = None):
    """Reads a command line, by default the process's own, and does what it says."""
    # Here, where a package that commands need and that is not there is a user's error.
    from zoo.commands import command_line

    command_line.main(arguments)


def console():
    """The console script `zoo`."""
    program.program(main)


if __name__ == "__main__":
    console()
