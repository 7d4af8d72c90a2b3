"""Hypotheses of recognisers and translators, and lists of them, of whatever form their file is."""

import dataclasses
import math
import re

from zoo.errors import UserError, shortened

_ASCII = re.compile(r"[0-9eE.+-]+")


@dataclasses.dataclass(frozen=True)
class Hypothesis:
    """A hypothesis of a list.

    Attributes:
      line: where it stands in its file, from 1.
      text: its words with blanks between; "" if it has none.
      features: {name: value}, in the order of the file.
      score: what the first system gave it in all, larger is better; None if the file has none.
      rest: fields after the score, as they are written.
    """

    line: int
    text: str
    features: dict[str, float]
    score: float | None = None
    rest: tuple[str, ...] = ()

    @property
    def words(self) -> list[str]:
        """The words of the text, which blanks part."""
        return self.text.split()


@dataclasses.dataclass(frozen=True)
class NBestList:
    """The hypotheses of one sentence.

    Attributes:
      id: its name.
      hypotheses: at least one, in the order of the file.
      reference: what was said or should be written, where the file has it; else None.
    """

    id: str
    hypotheses: list[Hypothesis]
    reference: str | None = None


def number_of(text: object, where: str, what: str) -> float:
    """Reads a finite number; UserError naming `where` and `what` where a text is none."""
    try:
        value = float(text) if isinstance(text, str | int | float) else math.nan
        # Python's own 1_000 and digits of other scripts are slips in a file.
        if isinstance(text, bool) or (isinstance(text, str) and not _ASCII.fullmatch(text)):
            value = math.nan
    except (ValueError, OverflowError):
        value = math.nan
    if not math.isfinite(value):
        raise UserError(f"{where}: {what} is {shortened(str(text), 80)!r}: give a finite number.")
    return value
