"""Batches of text and of sentence pairs, addressed by index, whatever the number of devices.

A running text is laid out in B batch rows, the rows of a [B, L] array, and cut into batches of T
columns. There are three policies:

- "carried": one long text cut into B equal batch rows; the state is carried from batch to batch,
  over sentence ends. The first word of a batch row is predicted from the word before it and an
  empty state.
- "sentences": every sentence starts from the boundary word and an empty state; whole sentences fill
  the batch rows one after the other, so that a sentence's loss does not depend on batch rows or
  batches.
- "items": the same of items of several sentences, such as a story: the state is carried over the
  sentence ends within an item.
"""

import dataclasses
import heapq
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from zoo.data.encoded_text import EncodedText
from zoo.errors import UserError, check_least, check_rates

POLICIES = ("carried", "items", "sentences")


@dataclasses.dataclass(frozen=True, eq=False)
class Batch:
    """T columns of all batch rows."""

    words: np.ndarray  # int32 [B, T], the word before each position
    targets: np.ndarray  # int32 [B, T], the word at each position
    trained: np.ndarray  # float32 [B, T], 1 where the target has a loss in training
    reset: np.ndarray  # bool [B, T], positions before which the state is emptied
    positions: np.ndarray  # int64 [B, T], positions of the targets in the text; -1 for padding


class Batches(Sequence):
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
        """Lays out a text; `windows(width)` returns the starts of windows of other lengths, and
        `restarts(shape)` a mask of the batches and rows before which the state is emptied."""
        if state not in POLICIES:
            raise UserError(
                f"the state policy {state!r} is not known: give {' or '.join(POLICIES)}."
            )
        if state != "carried" and boundary is None:
            raise UserError(
                f"the state policy {state!r} starts from the boundary word, and this vocabulary "
                "has none: set vocabulary.boundary to counted or uncounted."
            )
        self.text, self.batch = text, batch
        # Without a boundary, the first word of the text is context only.
        self._start = int(text.words[0]) if boundary is None else boundary
        self._layout: _Carried | _Sentences
        if state == "carried":
            self._layout = _Carried(len(text.words), batch, 0 if boundary is not None else 1)
        else:
            starts = text.starts if state != "items" or text.items is None else text.items
            self._layout = _Sentences(starts, np.diff(np.append(starts, len(text.words))), batch)
        width = self._layout.width
        self._bounds = windows(width) if windows else equal_windows(width, length)
        self._restarts = restarts((len(self), batch)) if restarts else None

    @property
    def trained_tokens(self) -> int:
        """The number of targets that have a loss in training."""
        return int(self.text.trained[self._layout.first :].sum())

    def __len__(self):
        return len(self._bounds) - 1

    def __getitem__(self, index):
        return self.part(index)

    def part(self, index: int, rows: slice = slice(None)) -> Batch:
        """Makes some batch rows of a batch, without reading the other batch rows."""
        if not 0 <= index < len(self):
            raise IndexError(index)
        columns = np.arange(*self._bounds[index : index + 2])
        positions, begins = self._layout.positions(columns, rows)
        is_word = positions >= 0
        places, begins = np.where(is_word, positions, 0), is_word & begins
        previous = self.text.words[np.maximum(places - 1, 0)]
        previous = np.where(begins | (places == 0), self._start, previous)
        if self._restarts is not None:  # the word before is still read
            begins[:, 0] |= self._restarts[index, rows]
        return Batch(
            words=np.where(is_word, previous, 0).astype(np.int32),
            targets=np.where(is_word, self.text.words[places], 0).astype(np.int32),
            trained=(is_word & self.text.trained[places]).astype(np.float32),
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
        positions = self._rows[rows] + columns
        positions = np.where((columns < self.width) & (positions < self.words), positions, -1)
        return positions, np.zeros(positions.shape, bool)


class _Sentences:
    """Batch rows of whole sentences, whose positions are computed when a batch is read."""

    first = 0

    def __init__(self, starts, lengths, batch):
        row_by_sentence, self._widths = _fill_with_sentences(lengths, batch)
        order = np.argsort(row_by_sentence, kind="stable")
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


def fit(lengths: np.ndarray, batch: int, length: int) -> tuple[int, int]:
    """Returns the shape of batches of sentences, (rows, columns): fewer than the given ones if few
    sentences have a row each, a power of 4 and of 2, so that few shapes are compiled."""
    if len(lengths) > batch:
        return batch, length
    rows, columns = 1, 16
    while rows < len(lengths):
        rows *= 4
    while columns < lengths.max(initial=1):
        columns *= 2
    return min(rows, batch), min(columns, length)


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
    rows = []
    for length in lengths.tolist():
        width, batch_row = batch_rows[0]
        rows.append(batch_row)
        heapq.heapreplace(batch_rows, (width + length, batch_row))
    widths = np.zeros(batch, np.int64)
    for width, batch_row in batch_rows:
        widths[batch_row] = width
    return np.array(rows, np.int32), widths


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
            mean = length / 2 if generator.random() < self.half else length
            window = _MULTIPLE * round(generator.normal(mean, self.deviation) / _MULTIPLE)
            starts.append(starts[-1] + max(window, _MULTIPLE))
        return np.array(starts)


def equal_windows(width: int, length: int) -> np.ndarray:
    """Returns the starts of windows of L positions that cover a batch row."""
    return np.arange(-(-width // length) + 1) * length


# ---- batches of sentence pairs: sources padded on the left, targets with the words before them


class PairBatch(NamedTuple):
    """A batch of B pairs of one shape."""

    # int32 [B, S], source words in the encoder's reading order, padded on the left with 0
    source: np.ndarray
    # int32 [B], words of each source; 1 in rows without a pair, so that none is empty
    lengths: np.ndarray
    # int32 [B, T], the word before each position, the boundary first; padded on the right with 0
    words: np.ndarray
    targets: np.ndarray  # int32 [B, T], the word at each position; padded on the right with 0
    trained: np.ndarray  # float32 [B, T], 1 where the target has a loss in training
    # int64 [B, T], positions of the targets in the target text; -1 for padding
    positions: np.ndarray


def source_batch(sentences: Sequence[Sequence[int]], longest: int = 0, rows: int = 0):
    """Pads source sentences on the left to a batch."""
    lengths = np.ones(max(rows, len(sentences)), np.int32)
    lengths[: len(sentences)] = [len(sentence) for sentence in sentences]
    words = np.zeros((len(lengths), max(longest, int(lengths.max(initial=1)))), np.int32)
    for row, sentence in zip(words, sentences, strict=False):
        row[len(row) - len(sentence) :] = sentence
    return words, lengths


class PairedText:
    """Sources and targets as word ids, in the orders in which they are read and predicted."""

    def __init__(
        self, source: EncodedText, target: EncodedText, boundary: int, marks: int, order: str
    ):
        self.source, self.target, self.boundary, self.marks = source, target, boundary, marks
        self.source_lengths, self.target_lengths = source.lengths, target.lengths
        self._source_positions = np.arange(len(source.words))
        self._target_positions = np.arange(len(target.words))
        if order == "source_reversed":
            self._source_positions = _reversed(source, 0)
        if order == "target_reversed":
            self._target_positions = _reversed(target, marks)

    def __len__(self):
        return len(self.source_lengths)

    def batch(self, pairs: np.ndarray, shape: tuple[int, int]) -> PairBatch:
        """Makes the batch of pairs by their numbers, -1 for an empty row, padded to a shape."""
        real = pairs >= 0
        lengths = np.where(real, self.source_lengths[pairs], 0)
        columns = np.arange(shape[0])[None] - (shape[0] - lengths)[:, None]
        source, _ = _look_up(self.source, self._source_positions, pairs, columns, columns >= 0)
        columns = np.arange(shape[1])[None]
        inside = columns < np.where(real, self.target_lengths[pairs], 0)[:, None]
        targets, positions = _look_up(self.target, self._target_positions, pairs, columns, inside)
        words = np.concatenate([np.full((len(pairs), 1), self.boundary), targets[:, :-1]], axis=1)
        trained = inside & self.target.trained[positions]
        return PairBatch(
            source,
            np.maximum(lengths, 1).astype(np.int32),
            np.where(inside, words, 0).astype(np.int32),
            targets,
            trained.astype(np.float32),
            positions,
        )


def _look_up(text, order, pairs, columns, inside):
    """Returns (words, 0 for padding; their positions, -1 for padding) of columns of sentences."""
    positions = np.where(inside, text.starts[pairs][:, None] + columns, -1)
    positions = np.where(inside, order[positions], -1)
    return np.where(inside, text.words[positions], 0).astype(np.int32), positions


def _reversed(text: EncodedText, marks: int) -> np.ndarray:
    """Returns positions that reverse each sentence of a text, but for its last `marks` words."""
    numbers = np.repeat(np.arange(len(text.starts)), text.lengths)
    positions = np.arange(len(text.words))
    inside = positions - text.starts[numbers]
    lengths = text.lengths[numbers] - marks
    return np.where(inside < lengths, text.starts[numbers] + lengths - 1 - inside, positions)


# ----------------------------- length buckets: pairs of sentences in batches of few shapes
# A pair goes into the smallest of some shapes (source words, target words) that it fits, and a
# batch has one shape: so there is little padding, and few programs are compiled. A batch depends on
# its index only, not on the batches read before or on the number of devices.

# The number of candidate shapes, quantiles of the pairs' lengths.
_CANDIDATES = 64
# The greatest number of shapes: a program is compiled for each.
_MOST_SHAPES = 16


@dataclasses.dataclass(frozen=True)
class Buckets:
    """The settings of length buckets.

    Attributes:
      padding: the greatest share of padding in the positions of an epoch's batches. The fewest
        shapes that reach it are taken, at most 16 (then padding may exceed it).
      longest: training leaves out pairs with more words than this on a side, without the boundary;
        evaluation never leaves out pairs.

    Example:
      >>> from zoo.data.batches import choose_shapes
      >>> buckets = data.Buckets(padding=0.15)
      >>> lengths = np.array([[2, 3], [3, 3], [9, 8], [10, 9]])  # words of four pairs
      >>> choose_shapes(lengths, 2, buckets.padding)
      [(3, 3), (10, 9)]
    """

    padding: float = 0.15
    longest: int = 100

    def __post_init__(self):
        check_rates(self, "training.buckets", "padding")
        check_least(self, "training.buckets", longest=1)


class BucketedPairs:
    """Pairs in buckets; `epoch(generator)` lays them out in batches."""

    def __init__(self, text: PairedText, batch: int, padding: float, longest: int = 0):
        """Drops pairs longer than `longest`, chooses the shapes, and assigns each pair a shape."""
        self.text, self.batch = text, batch
        sources, targets = text.source_lengths, text.target_lengths
        limit = longest or np.inf
        self.pairs = np.flatnonzero((sources <= limit) & (targets - text.marks <= limit))
        self.dropped = len(text) - len(self.pairs)
        if not len(self.pairs):
            raise UserError(
                f"training.buckets.longest={longest}: all {len(text):,} pairs are longer: raise it."
            )
        lengths = np.stack([sources, targets], axis=1)[self.pairs]
        self.shapes = choose_shapes(lengths, batch, padding)
        self._bucket = bucket_of(lengths, self.shapes)
        counts = np.bincount(self._bucket, minlength=len(self.shapes))
        batches = -(-counts // batch)
        self.steps = int(batches.sum())
        positions = batch * int((batches * np.sum(self.shapes, axis=1)).sum())
        self.padding = 1 - int(lengths.sum()) / positions
        starts = text.target.starts[self.pairs]
        sums = np.concatenate([[0], np.cumsum(text.target.trained)])
        self.tokens = int((sums[starts + targets[self.pairs]] - sums[starts]).sum())

    def epoch(self, generator: np.random.Generator | None = None) -> "PairBatches":
        """Lays out the batches of an epoch, which has each pair once."""
        count = len(self.pairs)
        order = np.arange(count) if generator is None else generator.permutation(count)
        order = order[np.argsort(self._bucket[order], kind="stable")]
        rows, shapes = [], []
        for bucket, shape in enumerate(self.shapes):
            members = self.pairs[order[self._bucket[order] == bucket]]
            padded = np.full(-(-len(members) // self.batch) * self.batch, -1)
            padded[: len(members)] = members
            rows += list(padded.reshape(-1, self.batch))
            shapes += [shape] * (len(padded) // self.batch)
        if generator is None:
            batches = np.argsort([row[0] for row in rows], kind="stable")
        else:
            batches = generator.permutation(len(rows))
        return PairBatches(self.text, [(rows[i], shapes[i]) for i in batches])


class PairBatches(Sequence):
    """Batches of pairs; `batches[i]` is the i-th, in any order of access."""

    def __init__(self, text: PairedText, rows: list[tuple[np.ndarray, tuple[int, int]]]):
        self.text, self.rows = text, rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.part(index)

    def part(self, index: int, rows: slice = slice(None)) -> PairBatch:
        """Makes some rows of a batch, in its shape, without reading the other rows."""
        if not 0 <= index < len(self.rows):
            raise IndexError(index)
        pairs, shape = self.rows[index]
        return self.text.batch(pairs[rows], shape)


def bucket_of(lengths: np.ndarray, shapes: np.typing.ArrayLike) -> np.ndarray:
    """Returns the number of the first shape that each pair fits, int64 [n]."""
    sides = np.asarray(shapes)
    return np.maximum(*(np.searchsorted(sides[:, side], lengths[:, side]) for side in (0, 1)))


def choose_shapes(lengths: np.ndarray, batch: int, padding: float) -> list[tuple[int, int]]:
    """Chooses the fewest shapes (S, T) whose batches have at most a share `padding` of padding."""
    # For each number of shapes dynamic programming finds the best among quantiles of the lengths.
    levels = np.linspace(0, 1, _CANDIDATES + 1)[1:]
    ends = np.quantile(lengths, levels, axis=0, method="higher")
    ends = np.unique(ends, axis=0)  # ascending in both columns
    counts = np.concatenate(
        [[0], np.cumsum(np.bincount(bucket_of(lengths, ends), minlength=len(ends)))]
    )
    size, words = ends.sum(axis=1), lengths.sum()
    # cost[i, j]: positions of the batches if pairs of candidates i to j take the shape of j.
    pair_counts = counts[None, 1:] - counts[:-1, None]
    cost = -(-pair_counts // batch) * batch * size[None]
    cost = np.where(np.tri(len(ends), dtype=bool).T, cost, np.iinfo(np.int64).max // 4)
    cuts: list[np.ndarray] = []
    best, fewest = cost[0], (cost[0, -1], 0)
    while 1 - words / fewest[0] > padding and len(cuts) + 1 < min(_MOST_SHAPES, len(ends)):
        # The last shape begins at candidate i, the others end at i - 1.
        totals = best[:-1, None] + cost[1:]
        cuts.append(totals.argmin(axis=0))
        best = totals.min(axis=0)
        fewest = min(fewest, (best[-1], len(cuts)))
    choice, end = [len(ends) - 1], len(ends) - 1
    for cut in reversed(cuts[: fewest[1]]):
        end = int(cut[end])
        choice.append(end)
    return [(int(s), int(t)) for s, t in ends[sorted(set(choice))]]
