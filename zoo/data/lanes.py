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


class Lanes:
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
        start = int(text.words[0]) if boundary is None else boundary
        previous = np.concatenate([[start], text.words[:-1]]).astype(np.int32)
        first = np.zeros(len(text.words), bool)
        if state == "carried":
            positions = np.arange(0 if boundary is not None else 1, len(text.words))
            width = _even_width(len(positions), batch)
            rows = [positions[row * width : (row + 1) * width] for row in range(batch)]
        else:
            previous[text.starts] = start
            first[text.starts] = True
            lane_of, widths = _fill_with_sentences(text.lengths, batch)
            positions = text.positions(np.argsort(lane_of, kind="stable"))
            rows, width = np.split(positions, np.cumsum(widths)[:-1]), widths.max()
        self.count = int(-(-width // length))
        self._positions = np.full((batch, self.count * length), -1, np.int64)
        for row, positions in enumerate(rows):
            self._positions[row, : len(positions)] = positions
        self._previous, self._first = previous, first

    @property
    def trained_tokens(self) -> int:
        """How many targets have a loss in training."""
        return int(self.text.trained[self._positions[self._positions >= 0]].sum())

    def __len__(self):
        return self.count

    def __getitem__(self, index: int) -> Batch:
        if not 0 <= index < self.count:
            raise IndexError(index)
        positions = self._positions[:, index * self.length : (index + 1) * self.length]
        real = positions >= 0
        return Batch(
            words=np.where(real, self._previous[positions], 0),
            targets=np.where(real, self.text.words[positions], 0),
            trained=(real & self.text.trained[positions]).astype(np.float32),
            reset=real & self._first[positions],
            positions=positions,
        )


def batch_count(
    lengths: np.ndarray, batch: int, length: int, state: str, boundary: int | None
) -> int:
    """How many batches `Lanes` makes of sentences of these lengths in this order.

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
