"""Distributions over infinitely many strings: numbers by their length, names by their letters.

Dymetman and Xiao, "Log-linear RNNs" (2016), section 4: a log-linear model over an infinite set of
words needs a background of finite mass, such as a geometric one over the length of numbers. Each
class of strings here has the mass 1; what share of the words' it gets is its `share`.
"""

import collections
import dataclasses
import math

import numpy as np

from zoo.errors import UserError, check_above, check_least

_END = ""


class StringClass:
    """A class of strings that share their features. Subclasses are frozen dataclasses with

    name: of the class. share: its part of the background. features: what its strings have.
    fit(words) -> the distribution, estimated on words that have these features: an object with
        log_prob(string) -> nats, -inf outside the class; summed over all strings, exp of it is 1
        sample(generator) -> a string
    """

    name: str
    share: float
    features: tuple[str, ...]

    def check(self):
        """UserError for a share that is none."""
        if not 0 < self.share < 1:
            raise UserError(f"the share of {self.name} is {self.share}: give one between 0 and 1.")


@dataclasses.dataclass(frozen=True)
class DigitStrings(StringClass):
    """Strings of digits: P(n) proportional to ratio^n for lengths n, 10^-n each string of n digits.

    Attributes:
      shortest, longest: least and greatest n; a longest of 0 is no limit. Several classes with
      features of their own may share out the lengths.
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

    def fit(self, words):
        """Itself: nothing is estimated."""
        return self

    def log_prob(self, string):
        """log of ratio^(n - shortest) (1 - ratio) 10^-n, over the mass up to `longest`; nats."""
        size = len(string)
        digits = string.isascii() and string.isdigit()
        if not digits or size < self.shortest or (self.longest and size > self.longest):
            return -math.inf
        log_length = (size - self.shortest) * math.log(self.ratio) + math.log1p(-self.ratio)
        if self.longest:
            log_length -= math.log1p(-(self.ratio ** (self.longest - self.shortest + 1)))
        return log_length - size * math.log(10)

    def sample(self, generator):
        """A string of digits."""
        while True:
            size = self.shortest - 1 + int(generator.geometric(1 - self.ratio))
            if not self.longest or size <= self.longest:
                return "".join(map(str, generator.integers(10, size=size)))


@dataclasses.dataclass(frozen=True)
class LetterStrings(StringClass):
    """Strings of the letters of known words: p(x) = prod_i p(x_i | x_(i-1)) p(end | x_n).

    p(c | d) = (n(dc) + smoothing) / (n(d) + smoothing (letters + 1)): every letter may be the last,
    so a string ends with probability 1 and the mass is finite. No string is empty.
    """

    features: tuple[str, ...]
    share: float = 0.01
    name: str = "<name>"
    smoothing: float = 0.1

    def __post_init__(self):
        self.check()
        check_above(self, self.name, smoothing=0)

    def fit(self, words):
        """The letter model of the words; UserError if there are none."""
        words = [word for word in words if word]
        if not words:
            raise UserError(
                f"no word of the lexicon has the features {', '.join(self.features)} to learn "
                f"the letters of {self.name} from: give features that some words have."
            )
        letters = (_END, *sorted(set("".join(words))))
        place = {letter: number for number, letter in enumerate(letters)}
        counts = np.full((len(letters), len(letters)), self.smoothing)
        for pair, count in collections.Counter(
            pair for word in words for pair in zip((_END, *word), (*word, _END), strict=True)
        ).items():
            counts[place[pair[0]], place[pair[1]]] += count
        counts[0, 0] = 0
        return LetterModel(letters, counts / counts.sum(axis=1, keepdims=True))


@dataclasses.dataclass(frozen=True, eq=False)
class LetterModel:
    """letters: the end of a word and its letters. transitions: p(next | last), [L, L]."""

    letters: tuple[str, ...]
    transitions: np.ndarray

    def log_prob(self, string):
        """log p of a string, nats."""
        place = {letter: number for number, letter in enumerate(self.letters)}
        path = [0, *(place.get(letter, -1) for letter in string), 0]
        if not string or -1 in path:
            return -math.inf
        return float(np.log(self.transitions[path[:-1], path[1:]]).sum())

    def sample(self, generator):
        """A string."""
        found, last = [], 0
        while not found or last:
            last = generator.choice(len(self.letters), p=self.transitions[last])
            found.append(self.letters[last])
        return "".join(found)
