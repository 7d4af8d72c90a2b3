"""Features of numbers by their form: in digits, spelled out, like a year, small."""

import dataclasses
import re

from zoo.errors import UserError, check_least
from zoo.priors.prior import FeaturePrior
from zoo.sources.source import Corpus

# Digits, perhaps with a sign, thousands in groups (1,000 or 1 000 or 1.000) and a fraction.
DIGITS = re.compile(r"[+-]?(\d{1,3}([.,\u00a0\u202f ]\d{3})+|\d+)([.,]\d+)?")
WHOLE = re.compile(r"\d+")
SPELLED = {
    "en": (
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
        "fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy "
        "eighty ninety hundred hundreds thousand thousands million millions billion billions "
        "trillion trillions dozen dozens"
    ),
    "fr": (
        "zéro un une deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze "
        "quinze seize vingt vingts trente quarante cinquante soixante septante huitante octante "
        "nonante cent cents mille million millions milliard milliards douzaine dizaine dizaines "
        "centaine centaines millier milliers"
    ),
    "de": (
        "null ein eine eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn "
        "vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn zwanzig dreißig vierzig fünfzig "
        "sechzig siebzig achtzig neunzig hundert tausend million millionen milliarde milliarden"
    ),
}


@dataclasses.dataclass(frozen=True)
class Numbers(FeaturePrior):
    """Features of the spelling of a number; other words have none.

    Dymetman and Xiao (2016), section 3. Features:

        Number:any       digits or spelled, whole or with hyphens ("forty-two")
        Number:digits    in digits, perhaps with sign, groups of thousands and fraction
        Number:spelled   in words of the language
        Number:year      whole, in digits, first_year to last_year
        Number:small     1 - n / small_below for a whole n in digits below small_below: a real value
                         from 1 (for 0) down to 0, so that near numbers have near scores
        Number:length    digits / 10, at most 1

    Attributes:
      language: of spelled numbers, "en", "fr" or "de"; "" for none.
      first_year: the least number that counts as a year.
      last_year: the greatest number that counts as a year.
      small_below: numbers below this count as small; 0 for none.

    Example:
      >>> prior = priors.Numbers()
      >>> prior.features(("1984", "cat"), {}, {})
      [{'Number:any': 1.0, 'Number:digits': 1.0, 'Number:length': 0.4, 'Number:year': 1.0}, {}]
    """

    language: str = "en"
    first_year: int = 1000
    last_year: int = 2100
    small_below: int = 100

    def __post_init__(self):
        check_least(self, "priors.Numbers", first_year=0, last_year=self.first_year, small_below=0)
        if self.language and self.language not in SPELLED:
            raise UserError(
                f"priors.Numbers.language is {self.language!r}: give one of "
                f"{', '.join(SPELLED)}, or '' for numbers in digits only."
            )

    def features(
        self,
        words: tuple[str, ...],
        corpora: dict[str, Corpus],
        entries: dict[str, tuple[str, ...]],
    ) -> list[dict[str, float]]:
        """Returns the features of the spelling of each word."""
        spelled = frozenset(SPELLED.get(self.language, "").split())
        return [self._of_word(word, spelled) for word in words]

    def _of_word(self, word, spelled):
        if DIGITS.fullmatch(word):
            return {"Number:any": 1.0, **self._of_digits(word)}
        if word and all(part in spelled for part in word.lower().split("-")):
            return {"Number:any": 1.0, "Number:spelled": 1.0}
        return {}

    def _of_digits(self, word):
        features = {"Number:digits": 1.0}
        features["Number:length"] = min(1.0, sum(character.isdigit() for character in word) / 10)
        significant = word.lstrip("0") or "0"
        # Python refuses to make a number of thousands of digits.
        longest = max(4, len(str(self.small_below)))
        if WHOLE.fullmatch(word) and len(significant) <= longest:
            number = int(significant)
            if number < self.small_below:
                features["Number:small"] = 1 - number / self.small_below
            if len(word) == 4 and self.first_year <= number <= self.last_year:
                features["Number:year"] = 1.0
        return features
