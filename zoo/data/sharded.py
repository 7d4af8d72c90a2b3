"""Text of shards as word ids: arrays that are computed where they are indexed."""

import dataclasses
from collections.abc import Callable

import numpy as np

from zoo.data.encoded import EncodedText
from zoo.sources.shards import ShardedCorpus, ShardedSentences


class Computed:
    """An array [n] whose values are a function of their positions; `np.asarray` makes it one."""

    def __init__(self, size: int, dtype, values: Callable[[np.ndarray], np.ndarray]):
        """Takes values(positions int64 [...]) -> [...] of the dtype."""
        self.shape, self.dtype, self._values = (size,), np.dtype(dtype), values

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index):
        if isinstance(index, slice):
            index = np.arange(*index.indices(len(self)))
        return self._values(np.asarray(index, np.int64))

    def astype(self, dtype) -> np.ndarray:
        """All of it, in memory."""
        return self[:].astype(dtype)

    def __array__(self, dtype=None, copy=None):
        return self[:].astype(dtype or self.dtype)


@dataclasses.dataclass(frozen=True, eq=False)
class ShardedText(EncodedText):
    """Word ids of a text in shards: as `EncodedText`, but `words`, `known` and `counted` are
    `Computed`, and `trained` is one number.

    Attributes:
      layout: where each sentence lies.
    """

    layout: "Layout | None" = None

    def reordered(self, order: np.ndarray) -> "ShardedText":
        """The sentences with these numbers, in this order; one may come several times."""
        assert self.layout is not None
        return self.layout.reordered(order).text()


@dataclasses.dataclass(frozen=True, eq=False)
class Layout:
    """Sentences of shards, one after the other, each with boundaries after it.

    Attributes:
      sentences: of which the text is.
      table: int32, the word id of each type.
      known: bool, of each type whether it is a word of the lexicon.
      counted: bool, of each type whether figures count it.
      boundary: the word id of the boundary.
      marks: how many boundaries there are after each sentence.
      boundary_counted: whether figures count them.
      order: int64, numbers of the sentences, in their order.
    """

    sentences: ShardedSentences
    table: np.ndarray
    known: np.ndarray
    counted: np.ndarray
    boundary: int
    marks: int
    boundary_counted: bool
    order: np.ndarray

    def reordered(self, order: np.ndarray) -> "Layout":
        """The same in another order."""
        return dataclasses.replace(self, order=self.order[order])

    def text(self) -> ShardedText:
        """The text of these sentences."""
        shards = self.sentences.shards
        first = shards.starts[self.order]
        lengths = shards.lengths[self.order].astype(np.int64)
        starts = np.cumsum(lengths + self.marks) - (lengths + self.marks)
        size = int(starts[-1] + lengths[-1] + self.marks)

        def values(table, of_boundary):
            def at(positions):
                sentence = np.searchsorted(starts, positions, side="right") - 1
                within = positions - starts[sentence]
                inside = within < lengths[sentence]
                where = np.where(inside, first[sentence] + within, first[0])
                return np.where(inside, table[shards.ids(where)], of_boundary).astype(table.dtype)

            return Computed(size, table.dtype, at)

        everything = self.boundary_counted or not self.marks
        ones = np.broadcast_to(np.array(True), size)  # of no memory
        return ShardedText(
            words=values(self.table, self.boundary),
            known=values(self.known, True),
            counted=(
                ones
                if everything and self.counted.all()
                else values(self.counted, self.boundary_counted)
            ),
            starts=starts,
            trained=ones,
            layout=self,
        )


def encode(
    corpus: ShardedCorpus,
    ids: dict[str, int],
    unknown: str,
    unknown_counted: bool,
    boundary: int | None,
    marks: int,
    boundary_counted: bool,
) -> ShardedText:
    """A corpus of shards as word ids, which holds no array as long as the text.

    Args:
      corpus: the text.
      ids: of the lexicon's words.
      unknown: the word for all others.
      unknown_counted: whether figures count these, and the word itself.
      boundary: the id of the boundary; None for none.
      marks: boundaries after each sentence.
      boundary_counted: whether figures count them.
    """
    words = corpus.sentences.words
    known = np.array([word in ids for word in words], bool)
    table = np.array([ids.get(word, ids.get(unknown, 0)) for word in words], np.int32)
    plain = known & np.array([word != unknown for word in words], bool)
    numbers = corpus.sentences.numbers
    layout = Layout(
        corpus.sentences,
        table,
        known,
        plain | unknown_counted,
        boundary or 0,
        0 if boundary is None else marks,
        boundary_counted,
        np.arange(numbers.start, numbers.stop),
    )
    return layout.text()
