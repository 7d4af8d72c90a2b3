"""Ends of a program that are no bugs."""

import signal


class UserError(Exception):
    """Something that the user can put right.

    The message is one sentence: what is wrong, where, and what to do. The entry scripts print it
    without a traceback and leave with exit code 2. Anything else is a bug and keeps its traceback.
    """


def check_least(recipe, name: str, **least: float):
    """UserError for the first field of the recipe, called `name`, that is below its least value."""
    for field, lowest in least.items():
        value = getattr(recipe, field)
        if not value >= lowest:  # nan too
            raise UserError(f"{name}.{field} is {value}: give at least {lowest}.")


class Interrupted(Exception):
    """SIGTERM or Ctrl-C was received, and the state is saved; the message says how to go on.

    Attributes:
      signal: which of the two; programs exit with 128 + its number, as shells expect.
    """

    def __init__(self, message: str, signal: signal.Signals):
        super().__init__(message)
        self.signal = signal
