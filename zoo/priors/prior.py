"""The contracts of prior knowledge: features of words, and background distributions over words."""

import collections
import dataclasses
import itertools
import math

import numpy as np

from zoo.component_registry import Component
from zoo.errors import UserError, check_least
from zoo.sources.source import Corpus


class FeaturePrior(Component):
    """The contract of priors that give features of words. Subclasses are frozen dataclasses."""

    def features(
        self,
        words: tuple[str, ...],
        corpora: dict[str, Corpus],
        entries: dict[str, tuple[str, ...]],
    ) -> list[dict[str, float]]:
        """Returns the features of each word; every prior writes this itself.

        Args:
          words: V words.
          corpora: {split: Corpus}.
          entries: {word: features} that the source knows beforehand.

        Returns:
          V dicts {feature name: value}.
        """
        raise self._unwritten("features")


class Background(Component):
    """The contract of distributions over words that do not depend on the context."""

    def log_probs(self, words: tuple[str, ...], corpora: dict[str, Corpus]) -> np.ndarray:
        """Computes log b of each word; every background writes this itself.

        Args:
          words: V words.
          corpora: {split: Corpus}.

        Returns:
          float64 [V], nats.
        """
        raise self._unwritten("log_probs")


def token_counts(corpora: dict[str, Corpus], splits: tuple[str, ...]) -> collections.Counter:
    """Counts the occurrences of each word in the splits."""
    check_splits(corpora, splits)
    counts: collections.Counter = collections.Counter()
    for name, corpus in corpora.items():
        if not splits or name in splits:
            counts.update(corpus.token_counts())
    return counts


def check_splits(corpora: dict[str, Corpus], splits: tuple[str, ...]):
    """Raises UserError if one of the splits is not among the corpora."""
    for split in splits:
        if split not in corpora:
            raise UserError(
                f"the data have no split {split!r} to take words from: give one of "
                f"{', '.join(corpora)}."
            )


def check_features(prior, words, features):
    """Raises UserError unless a prior gave one dict of finite numbers for each word."""
    name = type(prior).__name__
    if len(features) != len(words):
        raise UserError(
            f"{name}.features gives {len(features):,} dicts for {len(words):,} words: give one for "
            "each, in their order."
        )
    values = itertools.chain.from_iterable(of_word.values() for of_word in features)
    if all(map(math.isfinite, values)):
        return
    for word, of_word in zip(words, features, strict=True):
        for feature, value in of_word.items():
            if not math.isfinite(value):
                raise UserError(
                    f"{name}.features gives {word!r} the feature {feature!r} with the value "
                    f"{value}: give a finite number."
                )


def check_background(prior, words, log_background):
    """Raises UserError unless a background gave log-probabilities, not all of them -inf."""
    name = type(prior).__name__
    if log_background.shape != (len(words),):
        raise UserError(
            f"{name}.log_probs gives an array of shape {log_background.shape} for {len(words):,} "
            "words: give one log-probability for each."
        )
    wrong = np.isnan(log_background) | np.isposinf(log_background)
    if wrong.any() or np.isneginf(log_background).all():
        word_id = int(np.argmax(wrong))
        raise UserError(
            f"{name}.log_probs gives {log_background[word_id]} for {words[word_id]!r}: give the "
            "log of a probability, and not of 0 for all words."
        )


# ------------------------------------------------------------ context-free backgrounds


@dataclasses.dataclass(frozen=True)
class Uniform(Background):
    """b(x) = 1 / V.

    Example:
      >>> np.exp(priors.Uniform().log_probs(words, corpora)).tolist()
      [0.25, 0.25, 0.25, 0.25]
    """

    def log_probs(self, words: tuple[str, ...], corpora: dict[str, Corpus]) -> np.ndarray:
        """Returns log b = -log V of each word, nats, [V]."""
        return np.full(len(words), -np.log(len(words)))


@dataclasses.dataclass(frozen=True)
class Unigram(Background):
    """b(x) = (n(x) + smoothing) / (N + smoothing V), n(x) the occurrences of x.

    Attributes:
      splits: the splits whose words are counted; all splits if empty, as in Dymetman and Xiao
        (2016).
      smoothing: added to each count. A background that is counted on only some of the splits needs
        it: words without any mass can never be predicted.

    Example:
      >>> background = priors.Unigram(smoothing=1)
      >>> print(np.exp(background.log_probs(words, corpora)))  # (n + 1) / 9
      [0.1111 0.3333 0.3333 0.2222]
    """

    splits: tuple[str, ...] = ()
    smoothing: float = 0.0

    def __post_init__(self):
        check_least(self, smoothing=0)

    def log_probs(self, words: tuple[str, ...], corpora: dict[str, Corpus]) -> np.ndarray:
        """Computes log b of each word, nats, [V]."""
        counter = token_counts(corpora, self.splits)
        counts = np.array([counter[word] for word in words], np.float64) + self.smoothing
        if not counts.all():
            missing = words[int(np.argmin(counts))]
            raise UserError(
                f"the unigram background gives no mass to {missing!r}, which is in the lexicon: "
                "set its smoothing above 0."
            )
        return np.log(counts / counts.sum())
