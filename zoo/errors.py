"""Errors of the user and interruptions: ends of a program that are no bugs."""

import math
import signal

LONGEST = 1000  # characters of a message


class UserError(Exception):
    """Something that the user can put right.

    The message is one sentence: what is wrong, where, and what to do. The entry scripts print it
    without a traceback and leave with exit code 2. Anything else is a bug and keeps its traceback.
    Line breaks, which a quoted name or another library's message may have, become blanks, and
    characters that cannot be printed are escaped; of a long one the middle is left out.
    """

    def __init__(self, message: str):
        line = printable(" ".join(message.splitlines()))
        if len(line) > LONGEST:
            line = f"{line[: LONGEST // 2]} ... {line[-LONGEST // 2 :]}"
        super().__init__(line)


def field_name(recipe, field: str, name: str = "") -> str:
    """A field as messages name it: "name.field", or "field of Class" of a recipe without a name.

    A component does not know where it stands in a recipe, or whether it is in one: who sets its
    fields by their paths says so himself.
    """
    return f"{name}.{field}" if name else f"{field} of {type(recipe).__name__}"


def check_least(recipe, name: str = "", **least: float):
    """Raises UserError for the first field of the recipe, called `name` if it has one, that is
    below its least value, or not finite."""
    for field, lowest in least.items():
        value = getattr(recipe, field)
        if not lowest <= value < math.inf:  # nan is neither
            finite = ", but a finite number" if value == math.inf else ""
            where = field_name(recipe, field, name)
            raise UserError(f"{where} is {value}: give at least {lowest}{finite}.")


def check_above(recipe, name: str = "", **limits: float):
    """Raises UserError for the first field of the recipe, called `name` if it has one, that is not
    above its limit, or not finite."""
    for field, limit in limits.items():
        value = getattr(recipe, field)
        if not limit < value < math.inf:
            where = field_name(recipe, field, name)
            raise UserError(f"{where} is {value}: give a finite number above {limit}.")


def check_rates(recipe, name: str, *fields: str):
    """Raises UserError for the first of the fields of the recipe, called `name`, outside of [0,
    1)."""
    for field in fields:
        value = getattr(recipe, field)
        if not 0 <= value < 1:
            where = field_name(recipe, field, name)
            raise UserError(f"{where} is {value}: give at least 0, and less than 1.")


def check_choices(recipe, name: str = "", **choices: tuple[str, ...]):
    """Raises UserError for the first field of the recipe, called `name` if it has one, that is none
    of its choices."""
    for field, known in choices.items():
        value = getattr(recipe, field)
        if value not in known:
            where = field_name(recipe, field, name)
            raise UserError(f"{where} is {value!r}: give one of {', '.join(known)}.")


def check_seed(seed: int, name: str):
    """Raises UserError for a seed, called `name`, outside of [0, 2**31): more is too much for a
    key."""
    if not 0 <= seed < 2**31:
        raise UserError(f"{name} is {seed}: give a whole number from 0 to {2**31 - 1}.")


class Interrupted(Exception):
    """SIGTERM or Ctrl-C was received, and the state is saved; the message says how to go on.

    Attributes:
      signal: which of the two; programs exit with 128 + its number, as shells expect.
    """

    def __init__(self, message: str, signal: signal.Signals):
        super().__init__(message)
        self.signal = signal


class ProcessLost(Exception):
    """Another process of a run has ended; programs exit with LOST."""


# The exit code of a process that has lost another one: BSD's "temporary failure", sysexits.h.
LOST = 75


def printable(text: str) -> str:
    """The text with characters escaped that a terminal would obey or cannot show, but for the ends
    of lines."""
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)


def shortened(text: str, most: int = 200) -> str:
    """The text, or its beginning and "..." if it is long, for messages."""
    return text if len(text) <= most else text[:most] + "..."


def named(words: list[str], most: int = 10) -> str:
    """The first of the words in quotation marks, for messages, and "..." if there are more."""
    return ", ".join(map(repr, words[:most])) + ", ..." * (len(words) > most)
