"""Text as word ids."""

import dataclasses
import hashlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from zoo.lexicon import Lexicon
from zoo.sources.mapped_text import ArraySentences

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
    # the pieces of each word, where words are split into subwords
    pieces: Sequence[Sequence[str]] | None = None
    # int64, the positions of the first words of items; None if each sentence is an item
    items: np.ndarray | None = None
    # of mapped text, whose arrays are `Computed` and whose words are all trained; else None
    layout: "Layout | None" = None

    def __post_init__(self):
        if self.trained is None:
            object.__setattr__(self, "trained", np.broadcast_to(np.array(True), len(self.words)))

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
        """Returns the training counts, int64 [n], of the text's words, or strings of classes; -1
        where they are not known."""
        counts = lexicon.counts[self.words] if lexicon.has_counts else np.full(len(self.words), -1)
        if self.strings is not None:
            counts = np.where(self.strings.counts >= 0, self.strings.counts, counts)
        return counts

    def read_as(self, lexicon: Lexicon, begin: int, end: int) -> str:
        """Returns the words from one position up to another as the model reads them."""
        words = ((lexicon.words[word],) for word in self.words[begin:end])
        return " ".join(map(" ".join, self.pieces[begin:end] if self.pieces else words))

    def unknown(self, lexicon: Lexicon) -> np.ndarray:
        """Whether the model reads <unk>, also the text's own, at each position, bool [n]."""
        if lexicon.unknown is None:
            return np.zeros(len(self.words), bool)
        return self.words == lexicon.unknown_id

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
        if self.layout is not None:
            return dataclasses.replace(self.layout, order=self.layout.order[order]).text()
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


# -------- mapped text as word ids: arrays whose values are computed when they are indexed


class Computed:
    """An array [n] whose values are computed when they are read; `np.asarray` computes all."""

    def __init__(self, size: int, dtype, values: Callable[[np.ndarray], np.ndarray]):
        self.shape, self.dtype, self._values = (size,), np.dtype(dtype), values

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index):
        if isinstance(index, slice):
            index = np.arange(*index.indices(len(self)))
        return self._values(np.asarray(index, np.int64))

    def astype(self, dtype) -> np.ndarray:
        """Computes all values, converted to a dtype."""
        return self[:].astype(dtype)

    def __array__(self, dtype=None, copy=None):
        return self[:].astype(dtype or self.dtype)


@dataclasses.dataclass(frozen=True, eq=False)
class Layout:
    """Mapped sentences in an order, with boundaries after each."""

    sentences: ArraySentences
    table: np.ndarray  # int32 [types], the word id of each type
    known: np.ndarray  # bool [types], whether the lexicon has the type
    counted: np.ndarray  # bool [types], whether a perplexity counts the type
    boundary: int  # the word id of the boundary
    marks: int
    boundary_counted: bool
    order: np.ndarray  # int64 [sentences], numbers of the sentences, in their order

    def text(self) -> EncodedText:
        """Returns the laid-out sentences as text whose values are computed when they are read."""
        text = self.sentences.text
        first = text.starts[self.order]
        lengths = text.lengths[self.order].astype(np.int64)
        starts = np.cumsum(lengths + self.marks) - (lengths + self.marks)
        size = int(starts[-1] + lengths[-1] + self.marks)

        def values(table, boundary):
            def read(positions):
                sentence = np.searchsorted(starts, positions, side="right") - 1
                within = positions - starts[sentence]
                inside = within < lengths[sentence]
                places = np.where(inside, first[sentence] + within, first[0])
                return np.where(inside, table[text.ids[places]], boundary).astype(table.dtype)

            return Computed(size, table.dtype, read)

        all_true = np.broadcast_to(np.array(True), size)  # takes no memory
        counts_all = (self.boundary_counted or not self.marks) and self.counted.all()
        return EncodedText(
            words=values(self.table, self.boundary),
            known=values(self.known, True),
            counted=all_true if counts_all else values(self.counted, self.boundary_counted),
            starts=starts,
            trained=all_true,
            layout=self,
        )
