"""Batches of running text, addressed by index and independent of the number of devices.

A text is laid out in B batch rows, the rows of a [B, L] array, and cut into batches of T columns.
There are two policies:

- "carried": one long text cut into B equal batch rows; the state is carried from batch to batch,
  over sentence ends. The first word of a batch row is predicted from the word before it and an
  empty state.
- "sentences": every sentence starts from the boundary word and an empty state; whole sentences fill
  the batch rows one after the other, so that a sentence's loss does not depend on batch rows or
  batches.
"""

import dataclasses
import heapq
from collections.abc import Callable

import numpy as np

from zoo.data.encoded_text import EncodedText
from zoo.errors import UserError, check_least, check_rates

POLICIES = ("carried", "sentences")


@dataclasses.dataclass(frozen=True, eq=False)
class Batch:
    """T columns of all batch rows."""

    words: np.ndarray  # int32 [B, T], the word before each position
    targets: np.ndarray  # int32 [B, T], the word at each position
    trained: np.ndarray  # float32 [B, T], 1 where the target has a loss in training
    reset: np.ndarray  # bool [B, T], positions before which the state is emptied
    positions: np.ndarray  # int64 [B, T], positions of the targets in the text; -1 for padding


class Batches:
    """A text in batch rows; `batches[i]` is the i-th batch, in any order of access."""

    def __init__(
        self,
        text: EncodedText,
        batch: int,
        length: int,
        state: str,
        boundary: int | None,
        windows: Callable[[int], np.ndarray] | None = None,
        restarts: Callable[[tuple[int, int]], np.ndarray] | None = None,
    ):
        """Lays a text out in batch rows."""
        if state not in POLICIES:
            raise UserError(
                f"the state policy {state!r} is not known: give {' or '.join(POLICIES)}."
            )
        if state == "sentences" and boundary is None:
            raise UserError(
                "the state policy 'sentences' starts each sentence from the boundary word, and "
                "this vocabulary has none: set vocabulary.boundary to counted or uncounted."
            )
        self.text, self.batch = text, batch
        # Without a boundary, the first word of the text is context only.
        self._start = int(text.words[0]) if boundary is None else boundary
        self._layout: _Carried | _Sentences
        if state == "carried":
            self._layout = _Carried(len(text.words), batch, 0 if boundary is not None else 1)
        else:
            self._layout = _Sentences(text.starts, text.lengths, batch)
        width = self._layout.width
        self._bounds = windows(width) if windows else equal_windows(width, length)
        self.count = len(self._bounds) - 1
        self._restarts = restarts((self.count, batch)) if restarts else None

    @property
    def trained_tokens(self) -> int:
        """The number of targets that have a loss in training."""
        return int(self.text.trained[self._layout.first :].sum())

    def __len__(self):
        return self.count

    def __getitem__(self, index: int) -> Batch:
        return self.part(index)

    def part(self, index: int, rows: slice = slice(None)) -> Batch:
        """Makes some batch rows of a batch, without reading the other batch rows."""
        if not 0 <= index < self.count:
            raise IndexError(index)
        columns = np.arange(*self._bounds[index : index + 2])
        positions, begins = self._layout.positions(columns, rows)
        real = positions >= 0
        at, begins = np.where(real, positions, 0), real & begins
        previous = self.text.words[np.maximum(at - 1, 0)]
        previous = np.where(begins | (at == 0), self._start, previous)
        if self._restarts is not None:  # the word before is still read
            begins[:, 0] |= self._restarts[index, rows]
        return Batch(
            words=np.where(real, previous, 0).astype(np.int32),
            targets=np.where(real, self.text.words[at], 0).astype(np.int32),
            trained=(real & self.text.trained[at]).astype(np.float32),
            reset=begins,
            positions=positions,
        )


class _Carried:
    """Batch rows of equal width: batch row r starts at position first + r width of the text."""

    def __init__(self, words, batch, first):
        self.first, self.words = first, words
        self.width = _even_width(words - first, batch)
        self._rows = first + np.arange(batch)[:, None] * self.width

    def positions(self, columns, rows):
        """Returns (positions [B, T], -1 for padding; whether the state is emptied: nowhere)."""
        found = self._rows[rows] + columns
        found = np.where((columns < self.width) & (found < self.words), found, -1)
        return found, np.zeros(found.shape, bool)


class _Sentences:
    """Batch rows of whole sentences, one after the other.

    The positions of a batch are computed when it is read: an array of all positions would take more
    memory than the text.
    """

    first = 0

    def __init__(self, starts, lengths, batch):
        row_of, self._widths = _fill_with_sentences(lengths, batch)
        order = np.argsort(row_of, kind="stable")
        # In all batch rows concatenated: the end of each sentence, and the start of each batch row.
        self._ends = np.cumsum(lengths[order])
        self._rows = np.cumsum(self._widths) - self._widths
        self._starts, self._lengths = starts[order], lengths[order]
        self.width = self._widths.max()

    def positions(self, columns, rows):
        """Returns (positions [B, T], -1 for padding; whether a sentence starts)."""
        real = columns < self._widths[rows, None]
        stream = np.where(real, self._rows[rows, None] + columns, 0)
        sentence = np.searchsorted(self._ends, stream, side="right")
        within = stream - (self._ends[sentence] - self._lengths[sentence])
        return np.where(real, self._starts[sentence] + within, -1), within == 0


def batch_count(
    lengths: np.ndarray,
    batch: int,
    length: int,
    state: str,
    boundary: int | None,
    windows: Callable[[int], np.ndarray] | None = None,
) -> int:
    """Computes the number of batches that `Batches` makes of sentences, without laying them out."""
    if state == "carried":
        width = _even_width(lengths.sum() - (boundary is None), batch)
    else:
        width = int(_fill_with_sentences(lengths, batch)[1].max())
    return len(windows(width) if windows else equal_windows(width, length)) - 1


def _even_width(positions: int, batch: int) -> int:
    return -(-max(positions, 1) // batch)


def _fill_with_sentences(lengths: np.ndarray, batch: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns (row of each sentence, widths of the rows): each goes to the narrowest row."""
    # a heap; ties go to the first batch row
    batch_rows = [(0, batch_row) for batch_row in range(batch)]
    chosen = []
    for length in lengths.tolist():
        width, batch_row = batch_rows[0]
        chosen.append(batch_row)
        heapq.heapreplace(batch_rows, (width + length, batch_row))
    widths = np.zeros(batch, np.int64)
    for width, batch_row in batch_rows:
        widths[batch_row] = width
    return np.array(chosen, np.int32), widths


# ------------------- windows of random length, into which running text is cut for training
# Merity, Keskar and Socher, "Regularizing and optimizing LSTM language models" (2018), section 4.1:
# every window is drawn anew in each epoch, so that no word is always the first of its window, whose
# gradient does not reach the words before it. A window has L positions; with probability q, L / 2.
# Normal noise of some positions is added, and the rate of its step is multiplied by its length / L.
#
# Lengths are rounded to multiples of 5: a step is compiled once for each length.

_MULTIPLE = 5


@dataclasses.dataclass(frozen=True)
class RandomWindows:
    """Windows of about L positions, or of about half as many.

    Attributes:
      deviation: the standard deviation of a window's length, positions.
      half: q, the share of windows of about L / 2 positions.

    Example:
      >>> windows = data.RandomWindows(deviation=5.0, half=0.05)
      >>> windows.starts(200, 70, np.random.default_rng(0)).tolist()
      [0, 70, 105, 175, 250]
    """

    deviation: float = 5.0
    half: float = 0.05

    def __post_init__(self):
        check_least(self, "training.windows", deviation=0)
        check_rates(self, "training.windows", "half")

    def starts(self, width: int, length: int, generator: np.random.Generator) -> np.ndarray:
        """Draws windows until they cover a batch row.

        Args:
          width: positions of the batch row.
          length: L.
          generator: draws the lengths.

        Returns:
          int64, the first position of each window and, last, the end of the last window.
        """
        starts = [0]
        while starts[-1] < width:
            about = length / 2 if generator.random() < self.half else length
            drawn = _MULTIPLE * round(generator.normal(about, self.deviation) / _MULTIPLE)
            starts.append(starts[-1] + max(drawn, _MULTIPLE))
        return np.array(starts)


def equal_windows(width: int, length: int) -> np.ndarray:
    """Returns the starts of windows of L positions that cover a batch row."""
    return np.arange(-(-width // length) + 1) * length
