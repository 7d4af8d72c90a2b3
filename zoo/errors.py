"""Ends of a program that are no bugs."""


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
    """SIGTERM or Ctrl-C was received, and the state is saved; the message says how to go on."""
