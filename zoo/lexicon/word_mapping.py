"""Maps words of another lexicon to words of a trained one: the same word, or a share of <unk>."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from zoo.lexicon import Lexicon


class NoUnknownWord(LookupError):
    """A lexicon lacks a word (the argument) and has no unknown word to stand for it."""


class Shares(NamedTuple):
    """The trained words that stand for the words of another lexicon, with shares of probability."""

    word_ids: np.ndarray  # int32 [V], the trained word that stands for each word
    # float32 [V], log of the word's share of the trained word's probability, nats
    log_share: np.ndarray
    # bool [V], whether the word shares the unknown word's probability with others
    shared: np.ndarray


def shares(
    trained: Lexicon,
    other: Lexicon,
    log_weights: Callable[[list[str]], Sequence[float]] | None = None,
) -> Shares:
    """Finds the trained word that stands for each word of another lexicon, marks for marks.

    `log_weights`: n new words -> [n], nats; their shares of the unknown word's probability are
    proportional to the exponentials. All shares are equal without it. The unknown word itself keeps
    the share 1 / number of words that share.
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
