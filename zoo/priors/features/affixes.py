"""Parts of a word's spelling: how it begins and ends, and its letter n-grams."""

import collections
import dataclasses

from zoo.errors import UserError, check_least
from zoo.priors.prior import FeaturePrior
from zoo.sources.source import Corpus


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

    def features(
        self,
        words: tuple[str, ...],
        corpora: dict[str, Corpus],
        entries: dict[str, tuple[str, ...]],
    ) -> list[dict[str, float]]:
        """Returns the affixes of each word that at least `minimum_words` words share."""
        of_words: list[dict[str, float]] = [{} for _ in words]
        for kind, lengths in (("Prefix", self.prefixes), ("Suffix", self.suffixes)):
            for length in dict.fromkeys(lengths):
                part = slice(length) if kind == "Prefix" else slice(-length, None)
                self._add(of_words, kind, words, [word[part] for word in words], length)
        return of_words

    def _add(self, of_words, kind, words, affixes, length):
        """Adds the affixes of one length to the features of words."""
        uses = collections.Counter(affixes)
        uses.subtract(word for word in words if len(word) <= length)
        names = {x: f"{kind}:{x}" for x, count in uses.items() if count >= self.minimum_words}
        for of_word, word, affix in zip(of_words, words, affixes, strict=True):
            if affix in names and len(word) > length:
                of_word[names[affix]] = 1.0


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

    def features(
        self,
        words: tuple[str, ...],
        corpora: dict[str, Corpus],
        entries: dict[str, tuple[str, ...]],
    ) -> list[dict[str, float]]:
        """Returns the n-gram counts of each word, for n-grams of at least `minimum_words` words."""
        return _frequent([self._of_word(word) for word in words], self.minimum_words)

    def _of_word(self, word):
        marked = f"^{word}$"
        counts = collections.Counter(
            f"Letters:{marked[start : start + size]}"
            for size in self.sizes
            for start in range(len(marked) - size + 1)
        )
        scale = 1 / counts.total() if self.scaled and counts else 1.0
        return {name: count * scale for name, count in counts.items()}


def _check_lengths(name, lengths):
    if any(length < 1 for length in lengths):
        raise UserError(f"{name}: lengths of letters are {lengths}: give 1 or more each.")


def _frequent(features, minimum):
    """Returns the features of each word that at least `minimum` words have."""
    uses = collections.Counter(name for of_word in features for name in of_word)
    return [
        {name: value for name, value in of_word.items() if uses[name] >= minimum}
        for of_word in features
    ]
