"""Distributions over infinitely many strings: numbers by their length, names by their letters.

Dymetman and Xiao, "Log-linear RNNs" (2016), section 4: a log-linear model over an infinite set of
words needs a background of finite mass, such as a geometric one over the length of numbers. Each
class of strings here has the mass 1; `share` is its part of the mass of all words.
"""

import collections
import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Collection, Iterable
from typing import Any

import numpy as np

from zoo.base.component_registry import Component
from zoo.errors import UserError, check_above, check_least

_BEGIN, _END = "begin", ""  # marks of a string; letters have one character


class StringClass(Component):
    """A class of strings that share their features. Subclasses are frozen dataclasses."""

    name: str
    share: float  # its part of the background's mass
    features: tuple[str, ...]  # of its strings

    def fit(self, words: Iterable[str]) -> Any:
        """Estimates the distribution on words with these features; every class writes this itself.

        It has log_prob(string) -> nats, -inf outside the class, whose exp sums to 1 over all
        strings, and sample(generator) -> a string.
        """
        raise self._unwritten("fit")

    def is_disjoint(self, other: "StringClass") -> bool:
        """Whether the classes have no string in common; every class writes this itself."""
        raise self._unwritten("is_disjoint")

    def check(self):
        """Raises UserError unless the share is between 0 and 1."""
        if not 0 < self.share < 1:
            raise UserError(f"the share of {self.name} is {self.share}: give one between 0 and 1.")


@dataclasses.dataclass(frozen=True)
class DigitStrings(StringClass):
    """Strings of digits: length n with P(n) proportional to ratio^n, each string of n digits 10^-n.

    Attributes:
      features: the features of the strings.
      share: the part of the background's mass.
      name: the name of the class.
      ratio: the ratio of the geometric distribution.
      shortest: the least n.
      longest: the greatest n; 0 for no limit. Several classes with features of their own may cover
        different lengths.

    Example:
      >>> numbers = priors.DigitStrings(features=("Number:digits",)).fit(["7"])
      >>> round(float(np.exp(numbers.log_prob("42"))), 5)  # (1 - 0.3) 0.3 / 100
      0.0021
    """

    features: tuple[str, ...]
    share: float = 0.01
    name: str = "<digits>"
    ratio: float = 0.3
    shortest: int = 1
    longest: int = 0

    def __post_init__(self):
        self.check()
        check_least(self, self.name, shortest=1, longest=self.shortest if self.longest else 0)
        if not 0 < self.ratio < 1:
            raise UserError(f"the ratio of {self.name} is {self.ratio}: give one between 0 and 1.")

    def fit(self, words: Iterable[str]) -> "DigitStrings":
        """Returns the class itself: nothing is estimated."""
        return self

    def is_disjoint(self, other: StringClass) -> bool:
        """Whether the other class has letters, or digits of other lengths only."""
        if not isinstance(other, DigitStrings):
            return True
        first, second = sorted((self, other), key=lambda kind: kind.shortest)
        return bool(first.longest) and first.longest < second.shortest

    def log_prob(self, string: str) -> float:
        """Computes log of ratio^(n - shortest) (1 - ratio) 10^-n / mass up to `longest`, nats."""
        size = len(string)
        digits = string.isascii() and string.isdigit()
        if not digits or size < self.shortest or (self.longest and size > self.longest):
            return -math.inf
        log_length = (size - self.shortest) * math.log(self.ratio) + math.log1p(-self.ratio)
        if self.longest:
            log_length -= math.log1p(-(self.ratio ** (self.longest - self.shortest + 1)))
        return log_length - size * math.log(10)

    def sample(self, generator: np.random.Generator) -> str:
        while True:
            size = self.shortest - 1 + int(generator.geometric(1 - self.ratio))
            if not self.longest or size <= self.longest:
                return "".join(map(str, generator.integers(10, size=size)))


@dataclasses.dataclass(frozen=True)
class LetterStrings(StringClass):
    """Strings of the letters of known words: p(x) = prod_i p(x_i | x_(i-n+1) ... x_(i-1)), n-grams.

    The end of a string counts as a letter. With n(dc) the times that c follows the context d in the
    words, d' the context without its first letter, and s = smoothing * (letters + 1),

        p(c | d) = (n(dc) + s p(c | d')) / (n(d) + s),

    down to the uniform distribution over letters and end: every letter may be the last, so a string
    ends with probability 1 and the mass is finite. Strings are not empty and have no digits; words
    with digits are left out.

    Attributes:
      features: the features of the strings.
      share: the part of the background's mass.
      name: the name of the class.
      smoothing: of the equation.
      order: n, letters of an n-gram.
      first: the first letter is a "capital", an "other" or "any"; words with another first letter
        are left out. So one class can have the names, and another the rest.

    Example:
      >>> names = priors.LetterStrings(features=("List:name",)).fit(["Ann", "Anna"])
      >>> [round(float(np.exp(names.log_prob(name))), 3) for name in ("Anna", "Annna")]
      [0.075, 0.037]
    """

    features: tuple[str, ...]
    share: float = 0.01
    name: str = "<name>"
    smoothing: float = 0.1
    order: int = 2
    first: str = "any"

    def __post_init__(self):
        self.check()
        check_above(self, self.name, smoothing=0)
        check_least(self, self.name, order=1)
        if self.first not in ("any", "capital", "other"):
            raise UserError(
                f"the first letter of {self.name} is {self.first!r}: give capital, other or any."
            )

    def is_disjoint(self, other: Any) -> bool:
        """Whether the other class has digits, or strings with the other kind of first letter."""
        return isinstance(other, DigitStrings) or {self.first, other.first} == {"capital", "other"}

    def _may_begin(self, letter):
        return self.first == "any" or letter.isupper() == (self.first == "capital")

    def fit(self, words: Iterable[str]) -> "LetterModel":
        """Estimates the letter model on words; raises UserError if no word is left."""
        words = [
            word
            for word in words
            if word and self._may_begin(word[0]) and not any(map(str.isdigit, word))
        ]
        if not words:
            raise UserError(
                f"no word of the lexicon has the features {', '.join(self.features)} to learn "
                f"the letters of {self.name} from: give features that some words have."
            )
        return letter_model(words, self.order, self.smoothing, may_begin=self._may_begin)


def letter_model(
    words: Collection[str],
    order: int,
    smoothing: float = 0.1,
    extra_words: Iterable[str] = (),
    may_begin: Callable[[str], bool] = lambda letter: True,
) -> "LetterModel":
    """Estimates the n-gram model of the letters of words; see `LetterStrings`."""
    letters = (_END, *sorted({*itertools.chain(*words, *extra_words)}))
    counts: collections.defaultdict = collections.defaultdict(collections.Counter)
    for word in words:
        symbols = (_BEGIN,) * (order - 1) + tuple(word) + (_END,)
        for position in range(order - 1, len(symbols)):
            for size in range(order):
                counts[symbols[position - size : position]][symbols[position]] += 1
    begins = tuple(filter(may_begin, letters[1:]))
    return LetterModel(letters, dict(counts), smoothing * len(letters), begins, order)


@dataclasses.dataclass(frozen=True, eq=False)
class LetterModel:
    """An n-gram model of letters: see LetterStrings."""

    letters: tuple[str, ...]
    counts: dict[tuple[str, ...], collections.Counter]
    strength: float
    begins: tuple[str, ...]
    order: int

    def _after(self, context, letter):
        """Computes p(letter | context)."""
        while context and context not in self.counts:
            context = context[1:]
        shorter = self._after(context[1:], letter) if context else 1 / len(self.letters)
        followers = self.counts[context]
        return (followers[letter] + self.strength * shorter) / (followers.total() + self.strength)

    @functools.cached_property
    def _first(self):
        """{letter: p} of the letters that a string may begin with."""
        context = (_BEGIN,) * (self.order - 1)
        mass = {letter: self._after(context, letter) for letter in self.begins}
        total = math.fsum(mass.values())
        return {letter: p / total for letter, p in mass.items()}

    def _next(self, string, letter):
        """Computes p(letter | the letters of a string so far)."""
        if not string:
            return self._first.get(letter, 0.0)
        symbols = (_BEGIN,) * (self.order - 1) + tuple(string)
        return self._after(symbols[len(symbols) - self.order + 1 :], letter)

    def log_prob(self, string: str) -> float:
        if string[:1] not in self.begins or not set(string) <= set(self.letters):
            return -math.inf
        letters = enumerate((*string, _END))
        return sum(math.log(self._next(string[:position], letter)) for position, letter in letters)

    def sample(self, generator: np.random.Generator) -> str:
        letters: list = []
        while True:
            p = [self._next(letters, letter) for letter in self.letters]
            next_letter = self.letters[generator.choice(len(p), p=p)]
            if next_letter == _END:
                return "".join(letters)
            letters.append(next_letter)
