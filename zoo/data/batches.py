"""Batches that are resumable by a cursor and do not depend on the number of devices.

A text is laid out in B lanes, rows of a [B, L] array, and taken T columns at a time. Two policies:

- "carried": one long text cut into B equal lanes; the state is carried from batch to batch, over
  sentence ends. The first word of a lane is predicted from the word before it and an empty state.
- "sentences": every sentence starts from the boundary word and an empty state; whole sentences fill
  the lanes one after the other, so a sentence's figures do not depend on lanes or batches at all.
"""

import dataclasses
import heapq

import numpy as np

from zoo.data.encoded import EncodedText
from zoo.errors import UserError

POLICIES = ("carried", "sentences")


@dataclasses.dataclass(frozen=True, eq=False)
class Batch:
    """T columns of all lanes.

    Attributes:
      words: int32 [B, T], the word before each position.
      targets: int32 [B, T], the word at it.
      trained: float32 [B, T], 1 where the target has a loss in training.
      reset: bool [B, T], positions before which the state is emptied.
      positions: int64 [B, T], where in the text the target stands; -1 where there is none.
    """

    words: np.ndarray
    targets: np.ndarray
    trained: np.ndarray
    reset: np.ndarray
    positions: np.ndarray


class Batches:
    """A text in lanes; `lanes[i]` is the i-th batch, whichever was taken before."""

    def __init__(
        self, text: EncodedText, batch: int, length: int, state: str, boundary: int | None
    ):
        """Lays the text out in `batch` lanes, `length` positions a batch.

        Args:
          state: "carried" or "sentences".
          boundary: the id of the boundary word, if there is one.

        Raises:
          UserError: for an unknown policy, or "sentences" without a boundary word to start from.
        """
        if state not in POLICIES:
            raise UserError(f"the state policy {state!r} is none of {', '.join(POLICIES)}.")
        if state == "sentences" and boundary is None:
            raise UserError(
                "the state policy 'sentences' starts each sentence from the boundary word, and "
                "this vocabulary has none: set vocabulary.boundary to counted or uncounted."
            )
        self.text, self.length, self.batch = text, length, batch
        # Without one, the first word has nothing before it: it is context only.
        self._start = int(text.words[0]) if boundary is None else boundary
        self._layout: _Carried | _Sentences
        if state == "carried":
            self._layout = _Carried(len(text.words), batch, 0 if boundary is not None else 1)
        else:
            self._layout = _Sentences(text.starts, text.lengths, batch)
        self.count = int(-(-self._layout.width // length))

    @property
    def trained_tokens(self) -> int:
        """How many targets have a loss in training."""
        return int(self.text.trained[self._layout.first :].sum())

    def __len__(self):
        return self.count

    def __getitem__(self, index: int) -> Batch:
        return self.part(index)

    def part(self, index: int, rows: slice = slice(None)) -> Batch:
        """Some lanes of the i-th batch; of the others nothing is read."""
        if not 0 <= index < self.count:
            raise IndexError(index)
        columns = np.arange(index * self.length, (index + 1) * self.length)
        positions, begins = self._layout.positions(columns, rows)
        real = positions >= 0
        at, begins = np.where(real, positions, 0), real & begins
        previous = self.text.words[np.maximum(at - 1, 0)]
        previous = np.where(begins | (at == 0), self._start, previous)
        return Batch(
            words=np.where(real, previous, 0).astype(np.int32),
            targets=np.where(real, self.text.words[at], 0).astype(np.int32),
            trained=(real & self.text.trained[at]).astype(np.float32),
            reset=begins,
            positions=positions,
        )


class _Carried:
    """Lanes of even width: lane r has the positions first + r width, and those after it."""

    def __init__(self, words, batch, first):
        self.first, self.words = first, words
        self.width = _even_width(words - first, batch)
        self._rows = first + np.arange(batch)[:, None] * self.width

    def positions(self, columns, rows):
        """(positions [B, T], -1 where there is none; where the state is emptied: nowhere)."""
        found = self._rows[rows] + columns
        found = np.where((columns < self.width) & (found < self.words), found, -1)
        return found, np.zeros(found.shape, bool)


class _Sentences:
    """Lanes of whole sentences, one after the other.

    Batches are not laid out as arrays of positions, which take more memory than their text: the
    sentence in a column is looked up when the column is asked for.
    """

    first = 0

    def __init__(self, starts, lengths, batch):
        lane_of, self._widths = _fill_with_sentences(lengths, batch)
        order = np.argsort(lane_of, kind="stable")
        # All lanes one after the other: where each sentence ends there, and each lane starts.
        self._ends = np.cumsum(lengths[order])
        self._lanes = np.cumsum(self._widths) - self._widths
        self._starts, self._lengths = starts[order], lengths[order]
        self.width = self._widths.max()

    def positions(self, columns, rows):
        """(positions [B, T], -1 where there is none; where a sentence starts)."""
        real = columns < self._widths[rows, None]
        stream = np.where(real, self._lanes[rows, None] + columns, 0)
        sentence = np.searchsorted(self._ends, stream, side="right")
        within = stream - (self._ends[sentence] - self._lengths[sentence])
        return np.where(real, self._starts[sentence] + within, -1), within == 0


def batch_count(
    lengths: np.ndarray, batch: int, length: int, state: str, boundary: int | None
) -> int:
    """How many batches `Batches` makes of sentences of these lengths in this order.

    For the steps of all epochs to be known before the first, without laying them all out.
    """
    if state == "carried":
        width = _even_width(lengths.sum() - (boundary is None), batch)
    else:
        width = _fill_with_sentences(lengths, batch)[1].max()
    return int(-(-width // length))


def _even_width(positions: int, batch: int) -> int:
    return -(-max(positions, 1) // batch)


def _fill_with_sentences(lengths: np.ndarray, batch: int) -> tuple[np.ndarray, np.ndarray]:
    """(the lane of each sentence, the width of each lane): each is put where it is narrowest."""
    lanes = [(0, lane) for lane in range(batch)]  # a heap; of lanes as narrow, the first
    chosen = []
    for length in lengths.tolist():
        width, lane = lanes[0]
        chosen.append(lane)
        heapq.heapreplace(lanes, (width + length, lane))
    widths = np.zeros(batch, np.int64)
    for width, lane in lanes:
        widths[lane] = width
    return np.array(chosen, np.int32), widths
