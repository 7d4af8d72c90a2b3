"""Text as word ids."""

import dataclasses
import hashlib
from typing import NamedTuple

import numpy as np

from zoo.lexicon import Lexicon

# Elements of an array that are hashed at once.
_AT_ONCE = 1 << 20


class Strings(NamedTuple):
    """Probabilities and counts of the words of a text that are strings of a class."""

    log_within: np.ndarray  # float64 [n], log p(string | class) in nats, 0 for other words
    counts: np.ndarray  # int64 [n], occurrences in the training text, -1 for other words


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class EncodedText:
    """Text as word ids."""

    words: np.ndarray  # int32 [n], word ids, boundaries included
    known: np.ndarray  # bool [n], False where <unk> stands for an out-of-vocabulary word
    counted: np.ndarray  # bool [n], whether a perplexity counts the word
    starts: np.ndarray  # int64 [sentences], the position of each sentence's first word
    # bool [n], whether the word has a loss in training; None: all words have
    trained: np.ndarray = None  # type: ignore[assignment]  # never None once it is made
    # probabilities and counts of strings outside the lexicon; None if the vocabulary does not have
    # classes of strings
    strings: Strings | None = None

    def __post_init__(self):
        if self.trained is None:
            object.__setattr__(self, "trained", np.ones(len(self.words), bool))

    def __repr__(self):
        sizes = f"{len(self.words):,} words, {len(self.starts):,} sentences"
        return f"{type(self).__name__}({sizes})"

    def digest(self) -> str:
        """Hashes the words, their order, and which of them are counted and trained."""
        arrays = [self.words, self.counted, self.starts]
        if not self.trained.all():
            arrays.append(self.trained)
        hasher = hashlib.sha256()
        for array in arrays:
            for start in range(0, len(array), _AT_ONCE):  # an array may exceed the memory
                hasher.update(np.asarray(array[start : start + _AT_ONCE]).tobytes())
        return hasher.hexdigest()[:16]

    def occurrences(self, lexicon: Lexicon) -> np.ndarray:
        """Returns the training counts of the words of the text, int64 [n].

        All out-of-vocabulary words, and <unk> in the text itself, have the count of <unk>. A string
        of a class has the count of the string, not of the class.
        """
        counts = lexicon.counts[self.words]
        if self.strings is not None:
            counts = np.where(self.strings.counts >= 0, self.strings.counts, counts)
        return counts

    def unknown(self, lexicon: Lexicon) -> np.ndarray:
        """Whether the model reads <unk> at each position, bool [n].

        It does for an out-of-vocabulary word, and for <unk> in the text itself.
        """
        if lexicon.unknown is None:
            return np.zeros(len(self.words), bool)
        return self.words == lexicon.ids[lexicon.unknown]

    def position(self, number: int) -> tuple[int, int]:
        """Returns (number of the sentence, number of the word in it), from 1, of a position."""
        sentence = int(np.searchsorted(self.starts, number, side="right"))
        return sentence, int(number - self.starts[sentence - 1]) + 1

    @property
    def lengths(self) -> np.ndarray:
        """Numbers of words of the sentences, boundaries included, int64 [sentences]."""
        return np.diff(np.append(self.starts, len(self.words)))

    def positions(self, order: np.ndarray) -> np.ndarray:
        """Returns the positions in the text of the words of some sentences, concatenated."""
        lengths = self.lengths[order]
        new_starts = np.cumsum(lengths) - lengths
        return np.arange(lengths.sum()) + np.repeat(self.starts[order] - new_starts, lengths)

    def reordered(self, order: np.ndarray) -> "EncodedText":
        """Returns the sentences with these numbers in this order, perhaps repeated."""
        positions, lengths = self.positions(order), self.lengths[order]
        strings = self.strings and Strings(*(field[positions] for field in self.strings))
        return EncodedText(
            self.words[positions],
            self.known[positions],
            self.counted[positions],
            np.cumsum(lengths) - lengths,
            self.trained[positions],
            strings,
        )
