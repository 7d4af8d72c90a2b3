"""Words of another lexicon as words of a trained one: the same word, or a share of <unk>."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from zoo.lexicon import Lexicon


class NoUnknownWord(LookupError):
    """A lexicon has neither a word, the argument, nor an unknown word to stand for it."""


class Shares(NamedTuple):
    """The trained words that stand for the words of another lexicon, and their parts of the
    probability.

    Attributes:
      word_ids: int32 [V], the trained word that stands for each word.
      log_share: float32 [V], the logarithm of its part in that word's probability, nats.
      shared: bool [V], whether it is one of those that share the unknown word's.
    """

    word_ids: np.ndarray
    log_share: np.ndarray
    shared: np.ndarray


def shares(
    trained: Lexicon,
    other: Lexicon,
    log_weights: Callable[[list[str]], Sequence[float]] | None = None,
) -> Shares:
    """Finds the trained word that stands for each word of another lexicon, marks for marks.

    Args:
      log_weights: of new words, nats: their parts of the unknown word's probability are
        proportional to the exponentials; all are alike without it. The unknown word itself keeps
        one part of as many as there are words that share.

    Raises:
      NoUnknownWord: the trained lexicon has neither this word nor an unknown word.
    """
    unknown = None if trained.unknown is None else trained.ids.get(trained.unknown)
    marks = {other.unknown: trained.unknown, other.boundary: trained.boundary}
    names = [marks.get(word) or word for word in other.words]
    word_ids = np.array([trained.ids.get(name, -1) for name in names], np.int32)
    if unknown is None and (word_ids < 0).any():
        raise NoUnknownWord(other.words[int(np.argmin(word_ids))])
    shared = (word_ids < 0) | (word_ids == (-1 if unknown is None else unknown))
    word_ids = np.where(shared, 0 if unknown is None else unknown, word_ids).astype(np.int32)
    log_share = np.where(shared, -np.log(max(shared.sum(), 1)), 0).astype(np.float32)
    new = np.flatnonzero(shared & [word != other.unknown for word in other.words])
    if log_weights is not None and len(new):
        weights = np.asarray(log_weights([other.words[word] for word in new]), np.float64)
        of_new = len(new) / shared.sum()
        log_share[new] = weights - np.logaddexp.reduce(weights) + np.log(of_new)
    return Shares(word_ids, log_share, shared)
