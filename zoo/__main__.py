"""python -m zoo COMMAND: everything that the zoo does; see zoo/commands."""

from zoo.commands import program
from zoo.commands.line import main


def console():
    """The console script `zoo`."""
    program.program(main)


if __name__ == "__main__":
    console()
