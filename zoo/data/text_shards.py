"""Sharded text as word ids: arrays whose values are computed when they are indexed."""

import dataclasses
from collections.abc import Callable

import numpy as np

from zoo.data.encoded_text import EncodedText
from zoo.sources.shards import ShardedCorpus, ShardedSentences


class Computed:
    """An array [n] whose values are computed from their positions when they are read.

    `np.asarray` computes all of them.
    """

    def __init__(self, size: int, dtype, values: Callable[[np.ndarray], np.ndarray]):
        """Wraps a function of positions."""
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


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class ShardedText(EncodedText):
    """An `EncodedText` of shards, whose `words`, `known` and `counted` are `Computed`.

    `trained` is all True.
    """

    layout: "Layout | None" = None

    def reordered(self, order: np.ndarray) -> "ShardedText":
        """Returns the sentences with these numbers in this order, perhaps repeated."""
        assert self.layout is not None
        return self.layout.reordered(order).text()


@dataclasses.dataclass(frozen=True, eq=False)
class Layout:
    """The sentences of shards in an order, with boundaries after each."""

    sentences: ShardedSentences
    table: np.ndarray  # int32 [types], the word id of each type of the shards
    known: np.ndarray  # bool [types], whether the lexicon has the type
    counted: np.ndarray  # bool [types], whether a perplexity counts the type
    boundary: int  # the word id of the boundary
    marks: int
    boundary_counted: bool
    order: np.ndarray  # int64 [sentences], numbers of the sentences, in their order

    def reordered(self, order: np.ndarray) -> "Layout":
        """Returns the layout with its sentences reordered."""
        return dataclasses.replace(self, order=self.order[order])

    def text(self) -> ShardedText:
        """Returns the text of the sentences."""
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
        ones = np.broadcast_to(np.array(True), size)  # takes no memory
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
    """Encodes a corpus of shards as word ids, without an array as long as the text."""
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
