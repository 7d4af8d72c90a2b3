"""Errors of the user and interruptions: ends of a program that are not bugs."""

import math
import numbers
import signal

LONGEST = 1000  # characters of a message


class UserError(Exception):
    """An error that the user can correct.

    The message is one sentence: the error, its place, and its remedy. The entry scripts print it
    without a traceback and exit with code 2. Any other exception is a bug and keeps its traceback.
    In the message line breaks become blanks, characters that cannot be printed are escaped, and the
    middle of a long message is left out.
    """

    def __init__(self, message: str):
        line = printable(" ".join(message.splitlines()))
        if len(line) > LONGEST:
            line = f"{line[: LONGEST // 2]} ... {line[-LONGEST // 2 :]}"
        super().__init__(line)


class Diverged(UserError):
    """The loss or the parameters of a training are not finite."""


def field_name(recipe, field: str, name: str = "") -> str:
    """Returns the name of a recipe's field in messages: "name.field" or "field of Class".

    A component does not know its path in a recipe, or whether it is in one. Where a field is set by
    its path, `zoo.configuration` names the path in the message.
    """
    return f"{name}.{field}" if name else f"{field} of {type(recipe).__name__}"


def _number(recipe, field, name):
    """Returns the value of a field; raises UserError unless it is a number, whole where declared.

    Recipes from configs and files have been checked by `zoo.configuration` before.
    """
    value = getattr(recipe, field)
    declared = getattr(recipe, "__dataclass_fields__", {}).get(field)
    is_integer = declared is not None and declared.type in (int, "int")
    kind = numbers.Integral if is_integer else numbers.Real
    if isinstance(value, bool) or not isinstance(value, kind):
        expected = "a whole number" if is_integer else "a number"
        raise UserError(
            f"{field_name(recipe, field, name)} is {value!r}, of type {type(value).__name__}: give "
            f"{expected}."
        )
    return value


def _out_of_range(recipe, field, name, allowed):
    value = getattr(recipe, field)
    text = repr(value) if isinstance(value, str) else value
    return UserError(f"{field_name(recipe, field, name)} is {text}: give {allowed}.")


def check_least(recipe, name: str = "", **minima: float):
    """Checks that fields of a recipe are finite and not below their least values."""
    for field, minimum in minima.items():
        value = _number(recipe, field, name)
        if not minimum <= value < math.inf:  # nan is neither
            finite = ", but a finite number" if value == math.inf else ""
            raise _out_of_range(recipe, field, name, f"at least {minimum}{finite}")


def check_above(recipe, name: str = "", **limits: float):
    """Checks that fields of a recipe are finite and above their limits."""
    for field, limit in limits.items():
        value = _number(recipe, field, name)
        if not limit < value < math.inf:
            raise _out_of_range(recipe, field, name, f"a finite number above {limit}")


def check_rates(recipe, name: str, *fields: str):
    """Checks that fields of a recipe are in [0, 1)."""
    for field in fields:
        value = _number(recipe, field, name)
        if not 0 <= value < 1:
            raise _out_of_range(recipe, field, name, "at least 0, and less than 1")


def check_choices(recipe, name: str = "", **choices: tuple[str, ...]):
    """Checks that fields of a recipe have one of their allowed values."""
    for field, allowed in choices.items():
        if getattr(recipe, field) not in allowed:
            raise _out_of_range(recipe, field, name, f"one of {', '.join(allowed)}")


def check_seed(seed: int, name: str):
    if not 0 <= seed < 2**31:
        raise UserError(f"{name} is {seed}: give a whole number from 0 to {2**31 - 1}.")


class Interrupted(Exception):
    """A SIGTERM, SIGHUP or Ctrl-C was received, and the state is saved."""

    def __init__(self, message: str, signal: signal.Signals):
        super().__init__(message)
        self.signal = signal


class ProcessLost(Exception):
    """Another process of a run has ended; programs exit with LOST."""


# The exit code of a process that has lost another: EX_TEMPFAIL, "temporary failure", of sysexits.h.
LOST = 75


def printable(text: str) -> str:
    """Escapes the characters of a text that are not printable, such as control sequences."""
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)


def shortened(text: str, limit: int = 200) -> str:
    """Shortens a text for messages."""
    return text if len(text) <= limit else text[:limit] + "..."


def quote(words: list[str], limit: int = 10) -> str:
    """Lists words in quotation marks for messages."""
    ellipsis = ", ..." if len(words) > limit else ""
    return ", ".join(map(repr, words[:limit])) + ellipsis
