"""Options of command lines, each written as in a usage line, and bounds of their numbers."""

import argparse
import contextlib
import math
from collections.abc import Callable, Collection, Iterable
from typing import Any, NamedTuple

from zoo.errors import shortened


class Option(NamedTuple):
    """An option, written as in a usage line.

    "--beam N" takes a value, "--run DIR ..." may be repeated, and "--sparse" takes none. "file
    FILE" is an argument without a name, which the command knows as `file`; "file [FILE]" may be
    left out, "runs DIR ..." are one or more, and "references FILE [...]" any number.
    """

    usage: str
    about: str
    type: Callable[[str], Any] | None = None
    choices: Collection[str] | None = None
    default: Any = None
    required: bool = False
    # lines as of `zoo.lab.commands.options.RULES`, which go wherever the option goes
    rules: str = ""

    def add_to(self, parser: argparse.ArgumentParser):
        """Adds the option to a parser."""
        name, _, value = self.usage.partition(" ")
        value, _, suffix = value.partition(" ")
        entry: dict[str, Any] = {"help": self.about, "type": self.type, "default": self.default}
        if self.default not in (None, "", math.inf) and isinstance(self.default, (str, int, float)):
            entry["help"] = f"{self.about}; default: %(default)s".removeprefix("; ")
        if self.choices:
            entry["choices"] = tuple(self.choices)
        elif value:
            entry["metavar"] = value.strip("[]")
        if not name.startswith("-"):
            nargs = {"...": "+", "[...]": "*"}.get(suffix)
            entry["nargs"] = "?" if value.startswith("[") else nargs
        elif suffix:
            entry |= {"action": "append", "default": [], "help": f"{self.about}; may be repeated"}
        elif not (value or self.choices):
            entry = {"action": "store_true", "help": self.about}
        if self.required:
            entry["required"] = True
        parser.add_argument(name, **entry)


def integer(minimum: int, maximum: int = 2**31 - 1) -> Callable[[str], int]:
    """Returns the type of an option that takes a whole number from `minimum` to `maximum`."""

    def read(text: str) -> int:
        with contextlib.suppress(ValueError):
            if minimum <= int(text) <= maximum:
                return int(text)
        raise argparse.ArgumentTypeError(
            f"{shortened(text, 40)!r} is not a whole number from {minimum:,} to {maximum:,}"
        )

    return read


def number(minimum: float, maximum: float, above: bool = False) -> Callable[[str], float]:
    """Makes the type of an option that takes a number from `minimum` to `maximum`; with `above`,
    only one above `minimum`. Bounds leave room in float32 for sums and products."""

    def read(text: str) -> float:
        with contextlib.suppress(ValueError):
            if minimum <= float(text) <= maximum and not (above and float(text) == minimum):
                return float(text)
        start = f"above {minimum:g}, at most" if above else f"from {minimum:,.12g} to"
        raise argparse.ArgumentTypeError(
            f"{shortened(text, 40)!r} is not a number {start} {maximum:,.12g}"
        )

    return read


def attribute(usage: str) -> str:
    """Returns the attribute of parsed arguments that has the value of "--add-words FILE"."""
    return usage.partition(" ")[0].lstrip("-").replace("-", "_").lower()


def has_any(arguments: argparse.Namespace, options: Iterable[Option]) -> bool:
    """Whether a command line has any of some options."""
    return any(getattr(arguments, attribute(option.usage)) for option in options)
