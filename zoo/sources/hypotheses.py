"""Hypotheses of recognisers and translators, and n-best lists, whatever their file format."""

import dataclasses
import math
import re

from zoo.errors import UserError, shortened

_ASCII = re.compile(r"[0-9eE.+-]+")


@dataclasses.dataclass(frozen=True)
class Hypothesis:
    """A hypothesis of an n-best list."""

    line: int
    text: str
    features: dict[str, float]
    # the total score of the first system, larger is better; None if the file has none
    score: float | None = None
    rest: tuple[str, ...] = ()

    @property
    def words(self) -> list[str]:
        """The words of the text."""
        return self.text.split()


@dataclasses.dataclass(frozen=True)
class NBestList:
    """The hypotheses of one sentence."""

    id: str
    hypotheses: list[Hypothesis]
    # the reference transcript or translation; None if the file has none
    reference: str | None = None


def number_of(text: object, where: str, what: str) -> float:
    """Parses a finite number; otherwise raises UserError naming `where` and `what`."""
    try:
        value = float(text) if isinstance(text, str | int | float) else math.nan
        # Refuse Python's own 1_000, and digits of other scripts.
        if isinstance(text, bool) or (isinstance(text, str) and not _ASCII.fullmatch(text)):
            value = math.nan
    except (ValueError, OverflowError):
        value = math.nan
    if not math.isfinite(value):
        raise UserError(f"{where}: {what} is {shortened(str(text), 80)!r}: give a finite number.")
    return value
