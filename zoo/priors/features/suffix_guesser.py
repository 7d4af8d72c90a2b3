"""Tags of words never seen, guessed from how they end.

Brants, "TnT: a statistical part-of-speech tagger" (2000), section 2.3: the distribution of tags
given the last i letters of a word, smoothed by the distribution given the last i - 1. Here a "tag"
is a whole set of tags, so that a guessed word has the features, and so the signature, of words of
the lexicon.
"""

import collections
import dataclasses
import functools
import re

from zoo.errors import check_least

Tags = tuple[str, ...]
_DIGIT = re.compile(r"\d")


@dataclasses.dataclass(frozen=True)
class SuffixGuesser:
    """Guesser of the most probable tag set of a word, argmax_s P(s | its last letters), where

    P(s | last i letters) = (P'(s | last i letters) + smoothing P(s | last i - 1)) / (1 + smoothing)

    over the tag sets s of the known words, and P' is the share of s among the known words with
    these last letters. All digits count as the same letter.

    Attributes:
      longest: letters of the longest ending.
      smoothing: theta of the equation.
      rare: the guesser learns from words that occur at most so often, because new words resemble
        rare ones; from all words if none is that rare.

    Example:
      >>> tags = {"walks": ("POS:VERB",), "runs": ("POS:VERB",), "cat": ("POS:NOUN",)}
      >>> table = priors.SuffixGuesser().train(tags, dict.fromkeys(tags, 1))
      >>> table.guess("jumps"), round(table.distribution("jumps")[("POS:VERB",)], 2)
      (('POS:VERB',), 0.97)
    """

    longest: int = 6
    smoothing: float = 0.1
    rare: int = 10

    def __post_init__(self):
        check_least(self, "priors.SuffixGuesser", longest=0, smoothing=0, rare=1)

    def train(self, tags: dict[str, Tags], counts: dict[str, int]) -> "SuffixTable":
        """Counts the endings of the known words.

        Args:
          tags: {known word: its tag set}, at least one word.
          counts: {word: its occurrences}.
        """
        rare = [word for word in tags if counts.get(word, 0) <= self.rare]
        endings: collections.defaultdict = collections.defaultdict(collections.Counter)
        for word in rare or list(tags):
            for ending in self._endings(word):
                endings[ending][tags[word]] += 1
        return SuffixTable(self, dict(endings))

    def _endings(self, word):
        """Returns the endings of a word of 0, 1, ... letters."""
        word = _DIGIT.sub("0", word)
        return [word[len(word) - size :] for size in range(min(self.longest, len(word)) + 1)]


@dataclasses.dataclass(frozen=True, eq=False)
class SuffixTable:
    """The counts that a guesser has learnt."""

    guesser: SuffixGuesser
    endings: dict[str, collections.Counter]

    @functools.cached_property
    def _distributions(self) -> dict[str, dict[Tags, float]]:
        """P(s | ending) of the endings looked up so far; words share the short ones."""
        counts = self.endings[""]
        return {"": {tags: count / counts.total() for tags, count in counts.items()}}

    def distribution(self, word: str) -> dict[Tags, float]:
        """Computes P(s | ending of the word) of each tag set s."""
        theta = self.guesser.smoothing
        probabilities = self._distributions[""]
        for ending in self.guesser._endings(word)[1:]:
            counts = self.endings.get(ending)
            if counts is None:  # then no longer ending is known either
                break
            if ending not in self._distributions:
                total = counts.total()
                self._distributions[ending] = {
                    tags: (counts[tags] / total + theta * shorter) / (1 + theta)
                    for tags, shorter in probabilities.items()
                }
            probabilities = self._distributions[ending]
        return probabilities

    def guess(self, word: str) -> Tags:
        """Returns the most probable tag set of a word; among equals the first by name."""
        distribution = self.distribution(word)
        return min(distribution, key=lambda tags: (-distribution[tags], tags))
