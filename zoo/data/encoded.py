"""Text as word ids: what lexicon and vocabulary make of a corpus."""

import dataclasses
import hashlib
from typing import NamedTuple

import numpy as np

from zoo.lexicon import Lexicon

# Elements of an array that are hashed at a time.
_AT_ONCE = 1 << 20


class Strings(NamedTuple):
    """The words of a text that are strings of a class.

    Attributes:
      log_within: float64 [n], log p(string | class) in nats, 0 for other words.
      counts: int64 [n], occurrences in the training text, -1 for other words.
    """

    log_within: np.ndarray
    counts: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class EncodedText:
    """Text as word ids.

    Attributes:
      words: int32 [n], boundaries among them.
      known: bool [n], False where <unk> stands for a word outside the lexicon.
      counted: bool [n], whether a perplexity counts it.
      starts: int64 [sentences], where each sentence starts.
      trained: bool [n], whether it has a loss in training; all if None is given.
      strings: what is to be known of strings outside the lexicon; None without classes of them.
    """

    words: np.ndarray
    known: np.ndarray
    counted: np.ndarray
    starts: np.ndarray
    trained: np.ndarray = None  # type: ignore[assignment]  # never None once it is made
    strings: Strings | None = None

    def __post_init__(self):
        if self.trained is None:
            object.__setattr__(self, "trained", np.ones(len(self.words), bool))

    def digest(self) -> str:
        """A hash of the words, their order, and what is counted of them."""
        arrays = [self.words, self.counted, self.starts]
        if not self.trained.all():
            arrays.append(self.trained)
        hasher = hashlib.sha256()
        for array in arrays:
            for start in range(0, len(array), _AT_ONCE):  # an array may be larger than the memory
                hasher.update(np.asarray(array[start : start + _AT_ONCE]).tobytes())
        return hasher.hexdigest()[:16]

    def occurrences(self, lexicon: Lexicon) -> np.ndarray:
        """How often what the model reads at each position occurred in training, int64 [n].

        Unknown words are one word to it, <unk>, written so in the text or not. Of a string of a
        class it is how often the string itself occurred.
        """
        counts = lexicon.counts[self.words]
        if self.strings is not None:
            counts = np.where(self.strings.counts >= 0, self.strings.counts, counts)
        return counts

    def unknown(self, lexicon: Lexicon) -> np.ndarray:
        """Whether the model reads <unk>, bool [n]: for a word outside the lexicon, or one that the
        text itself has as <unk>."""
        if lexicon.unknown is None:
            return np.zeros(len(self.words), bool)
        return self.words == lexicon.ids[lexicon.unknown]

    def position(self, number: int) -> tuple[int, int]:
        """(number of the sentence, number of the word in it), from 1, of a word of the text."""
        sentence = int(np.searchsorted(self.starts, number, side="right"))
        return sentence, int(number - self.starts[sentence - 1]) + 1

    @property
    def lengths(self) -> np.ndarray:
        """Words of each sentence, its boundaries among them, int64 [sentences]."""
        return np.diff(np.append(self.starts, len(self.words)))

    def positions(self, order: np.ndarray) -> np.ndarray:
        """Where the words of these sentences stand in the text, one sentence after the other."""
        lengths = self.lengths[order]
        new_starts = np.cumsum(lengths) - lengths
        return np.arange(lengths.sum()) + np.repeat(self.starts[order] - new_starts, lengths)

    def reordered(self, order: np.ndarray) -> "EncodedText":
        """The sentences with these numbers, in this order; one may come several times."""
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
