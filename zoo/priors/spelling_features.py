"""Parts of a word's spelling: how it begins and ends, and its letter n-grams."""

import collections
import dataclasses
import re

from zoo.errors import UserError, check_least
from zoo.priors.prior import Corpora, Entries, FeaturePrior, Words, token_counts


@dataclasses.dataclass(frozen=True)
class Affixes(FeaturePrior):
    """Features "Prefix:x" and "Suffix:x" for the first and last letters of a word.

    An affix is shorter than its word. At least `minimum_words` words must share an affix: a rarer
    one would be a word's identity under another name.

    Attributes:
      prefixes: lengths of prefixes in letters.
      suffixes: lengths of suffixes in letters.
      minimum_words: the least number of words that share an affix.

    Example:
      >>> prior = priors.Affixes(prefixes=(2,), suffixes=(1,), minimum_words=2)
      >>> prior.features(("cats", "cars", "us"), {}, {})
      [{'Prefix:ca': 1.0, 'Suffix:s': 1.0}, {'Prefix:ca': 1.0, 'Suffix:s': 1.0}, {'Suffix:s': 1.0}]
    """

    prefixes: tuple[int, ...] = (2, 3)
    suffixes: tuple[int, ...] = (1, 2, 3, 4)
    minimum_words: int = 5

    def __post_init__(self):
        check_least(self, "priors.Affixes", minimum_words=1)
        _check_lengths("priors.Affixes", (*self.prefixes, *self.suffixes))

    def features(self, words: Words, corpora: Corpora, entries: Entries) -> list[dict[str, float]]:
        """Returns the affixes of each word that at least `minimum_words` words share."""
        word_features: list[dict[str, float]] = [{} for _ in words]
        for kind, lengths in (("Prefix", self.prefixes), ("Suffix", self.suffixes)):
            for length in dict.fromkeys(lengths):
                part = slice(length) if kind == "Prefix" else slice(-length, None)
                self._add(word_features, kind, words, [word[part] for word in words], length)
        return word_features

    def _add(self, word_features, kind, words, affixes, length):
        """Adds the affixes of one length to the features of words."""
        uses = collections.Counter(affixes)
        uses.subtract(word for word in words if len(word) <= length)
        names = {x: f"{kind}:{x}" for x, count in uses.items() if count >= self.minimum_words}
        for features, word, affix in zip(word_features, words, affixes, strict=True):
            if affix in names and len(word) > length:
                features[names[affix]] = 1.0


@dataclasses.dataclass(frozen=True)
class LetterNgrams(FeaturePrior):
    """Features "Letters:abc", the number of times each letter n-gram occurs in "^word$".

    The marks ^ and $ distinguish n-grams at the ends of a word from n-grams inside it (Bojanowski
    et al. 2017, section 3.2, write < and >).

    Attributes:
      sizes: lengths of the n-grams.
      minimum_words: the least number of words that share an n-gram.
      scaled: whether values are divided by the number of n-grams of the word, so that the scores of
        long words do not vary more than the scores of short ones.

    Example:
      >>> prior = priors.LetterNgrams()
      >>> prior.features(("cat", "chat"), {}, {})
      [{'Letters:at$': 1.0}, {'Letters:at$': 1.0}]
    """

    sizes: tuple[int, ...] = (3,)
    minimum_words: int = 2
    scaled: bool = False

    def __post_init__(self):
        check_least(self, "priors.LetterNgrams", minimum_words=1)
        _check_lengths("priors.LetterNgrams", self.sizes)

    def features(self, words: Words, corpora: Corpora, entries: Entries) -> list[dict[str, float]]:
        """Returns the n-gram counts of each word, for n-grams of at least `minimum_words` words."""
        counts_by_word = []
        for word in words:
            marked = f"^{word}$"
            counts = collections.Counter(
                f"Letters:{marked[start : start + size]}"
                for size in self.sizes
                for start in range(len(marked) - size + 1)
            )
            scale = 1 / counts.total() if self.scaled and counts else 1.0
            counts_by_word.append({name: count * scale for name, count in counts.items()})
        uses = collections.Counter(name for counts in counts_by_word for name in counts)
        return [
            {name: value for name, value in counts.items() if uses[name] >= self.minimum_words}
            for counts in counts_by_word
        ]


def _check_lengths(name, lengths):
    if any(length < 1 for length in lengths):
        raise UserError(f"{name}: lengths of letters are {lengths}: give 1 or more each.")


# ----------- features of numbers by their form: in digits, spelled out, like a year, small

# Digits, perhaps with a sign, thousands in groups (1,000 or 1 000 or 1.000) and a fraction.
DIGITS = re.compile(r"[+-]?(\d{1,3}([.,\u00a0\u202f ]\d{3})+|\d+)([.,]\d+)?")
WHOLE_NUMBER = re.compile(r"\d+")
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

    def features(self, words: Words, corpora: Corpora, entries: Entries) -> list[dict[str, float]]:
        spelled = frozenset(SPELLED.get(self.language, "").split())
        return [self._number_features(word, spelled) for word in words]

    def _number_features(self, word, spelled):
        if not DIGITS.fullmatch(word):
            is_spelled = word and all(part in spelled for part in word.lower().split("-"))
            return {"Number:any": 1.0, "Number:spelled": 1.0} if is_spelled else {}
        length = min(1.0, sum(map(str.isdigit, word)) / 10)
        features = {"Number:any": 1.0, "Number:digits": 1.0, "Number:length": length}
        significant = word.lstrip("0") or "0"
        # Python refuses to make a number of thousands of digits.
        longest = max(4, len(str(self.small_below)))
        if WHOLE_NUMBER.fullmatch(word) and len(significant) <= longest:
            number = int(significant)
            if number < self.small_below:
                features["Number:small"] = 1 - number / self.small_below
            if len(word) == 4 and self.first_year <= number <= self.last_year:
                features["Number:year"] = 1.0
        return features


# ---------- word identity of the M most frequent words, and one feature for all the others

NOT_TOP = "Word:@not_top"


@dataclasses.dataclass(frozen=True)
class TopWords(FeaturePrior):
    """Features "Word:x" for the `count` most frequent words, "Word:@not_top" for all others.

    Dymetman and Xiao (2016), section 5.2, the M + 1 features "topform".

    Attributes:
      count: M.
      splits: the splits whose words are counted; all splits if empty, as in the paper.

    Example:
      >>> prior = priors.TopWords(count=1)
      >>> prior.features(("the", "sat"), corpora, {})
      [{'Word:the': 1.0}, {'Word:@not_top': 1.0}]
    """

    count: int = 2500
    splits: tuple[str, ...] = ()

    def __post_init__(self):
        check_least(self, "priors.TopWords", count=0)

    def features(self, words: Words, corpora: Corpora, entries: Entries) -> list[dict[str, float]]:
        """Returns one feature for each word; of words of equal count the first are on top."""
        counts = token_counts(corpora, self.splits)
        if not any(counts[word] for word in words):
            raise UserError(
                "priors.TopWords needs to know which words are frequent, and none of the words has "
                "a count: give the lexicon counts, or a text."
            )
        by_count = sorted(words, key=lambda word: -counts[word])
        top = set(by_count[: self.count])
        return [{f"Word:{word}" if word in top else NOT_TOP: 1.0} for word in words]
