"""Features of the words of a list, such as places or first names."""

import dataclasses
import logging
import math

from zoo.errors import UserError
from zoo.priors.prior import FeaturePrior
from zoo.sources import files
from zoo.sources.source import Corpus

logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class WordList(FeaturePrior):
    """The feature "List:name" for the words of a file, one word a line; other words have none.

    A line may have a tab and a number after the word, the feature's value. Empty lines and lines
    that start with "#" are skipped. The number of words that are in the lexicon is logged.

    Attributes:
      path: the file, UTF-8, found as data files are.
      name: the name of the feature; the path if empty.
      lower_case: whether to ignore case.

    Example:
      >>> _ = pathlib.Path("animals.txt").write_text("cat\\ndog\\t2\\n")
      >>> prior = priors.WordList("animals.txt", name="animal")
      >>> prior.features(("the", "cat", "dog"), {}, {})
      [{}, {'List:animal': 1.0}, {'List:animal': 2.0}]
    """

    path: str
    name: str = ""
    lower_case: bool = False

    def features(
        self,
        words: tuple[str, ...],
        corpora: dict[str, Corpus],
        entries: dict[str, tuple[str, ...]],
    ) -> list[dict[str, float]]:
        """Returns the feature of each word that is in the list, with its value.

        Raises:
          UserError: a line is malformed, or no word of the lexicon is in the list.
        """
        path = files.find(self.path)
        values = self._read(path)
        keys = [self._key(word) for word in words]
        known = len(values.keys() & set(keys))
        logger.info("%d of %d words of %s are in the lexicon", known, len(values), path)
        if not known:
            raise UserError(
                f"none of the {len(values)} words of {path} is in the lexicon: give another list, "
                "or set lower_case=True of priors.WordList if the words differ only in case."
            )
        name = f"List:{self.name or self.path}"
        return [{name: values[key]} if key in values else {} for key in keys]

    def _key(self, word):
        return word.lower() if self.lower_case else word

    def _read(self, path):
        values = {}
        for number, line in enumerate(files.read_text(path).split("\n"), 1):
            line = line.rstrip("\r")
            if not line.strip() or line.startswith("#"):
                continue
            word, tab, value = line.partition("\t")
            word = word.strip()
            if not word or len(word.split()) > 1:
                raise UserError(
                    f"{path}, line {number}: {line.strip()!r} is not one word: write a word a "
                    "line, perhaps with a tab and a number after it."
                )
            where = f"{path}, line {number}"
            values[self._key(word)] = finite_number(value, where) if tab else 1.0
        return values


def finite_number(text: str, where: str) -> float:
    """Reads the value of a feature."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise UserError(f"{where}: {text!r} is not a finite number: correct it or leave it out.")
    return number
