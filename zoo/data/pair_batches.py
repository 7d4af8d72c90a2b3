"""Batches of sentence pairs: sources padded on the left, and targets with the words before them."""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from zoo.data.encoded_text import EncodedText
from zoo.errors import UserError, check_least, check_rates


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
        """Puts both sides in their orders."""
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
        """Makes a batch of some pairs."""
        there = pairs >= 0
        starts, lengths = self.source.starts[pairs], np.where(there, self.source_lengths[pairs], 0)
        columns = np.arange(shape[0])[None] - (shape[0] - lengths)[:, None]
        positions = np.where(columns >= 0, starts[:, None] + columns, -1)
        positions = np.where(columns >= 0, self._source_positions[positions], -1)
        source = _taken(self.source.words, positions)
        columns = np.arange(shape[1])[None]
        inside = columns < np.where(there, self.target_lengths[pairs], 0)[:, None]
        positions = np.where(inside, self.target.starts[pairs][:, None] + columns, -1)
        positions = np.where(inside, self._target_positions[positions], -1)
        targets = _taken(self.target.words, positions)
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


def _taken(words, positions):
    """Returns words[positions], 0 where a position is -1."""
    return np.where(positions >= 0, words[positions], 0).astype(np.int32)


def _reversed(text: EncodedText, marks: int) -> np.ndarray:
    """Returns positions that reverse each sentence of a text, but for its last `marks` words."""
    numbers = np.repeat(np.arange(len(text.starts)), text.lengths)
    positions = np.arange(len(text.words))
    inside = positions - text.starts[numbers]
    kept = text.lengths[numbers] - marks
    return np.where(inside < kept, text.starts[numbers] + kept - 1 - inside, positions)


# ----------------------------- length buckets: pairs of sentences in batches of few shapes
# A pair goes into the smallest of some shapes (source words, target words) that it fits, and a
# batch has one shape: so there is little padding, and few programs are compiled. A batch depends on
# its index only, not on the batches read before or on the number of devices.

# The number of candidate shapes, quantiles of the pairs' lengths.
_CANDIDATES = 64
# The greatest number of shapes: a program is compiled for each.
_MOST = 16


@dataclasses.dataclass(frozen=True)
class Buckets:
    """The settings of length buckets.

    Attributes:
      padding: the greatest share of padding in the positions of an epoch's batches. The fewest
        shapes that reach it are taken, at most 16 (then padding may exceed it).
      longest: training leaves out pairs with more words than this on a side, without the boundary;
        evaluation never leaves out pairs.

    Example:
      >>> from zoo.data.pair_batches import choose_shapes
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
        """Chooses the shapes."""
        self.text, self.batch = text, batch
        sources, targets = text.source_lengths, text.target_lengths
        fitting = np.ones(len(text), bool)
        if longest:
            fitting = (sources <= longest) & (targets - text.marks <= longest)
        self.pairs = np.flatnonzero(fitting)
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
            whole = np.full(-(-len(members) // self.batch) * self.batch, -1)
            whole[: len(members)] = members
            rows += list(whole.reshape(-1, self.batch))
            shapes += [shape] * (len(whole) // self.batch)
        if generator is None:
            batches = np.argsort([row[0] for row in rows], kind="stable")
        else:
            batches = generator.permutation(len(rows))
        return PairBatches(self.text, [(rows[i], shapes[i]) for i in batches])


class PairBatches(Sequence):
    """Batches of pairs; `batches[i]` is the i-th, in any order of access."""

    def __init__(self, text: PairedText, rows: list[tuple[np.ndarray, tuple[int, int]]]):
        """Takes the pairs of each batch."""
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
    """Chooses the fewest shapes (S, T) whose batches have at most a share `padding` of padding.

    Candidates are equally spaced quantiles of the lengths of sources and targets. For each number
    of shapes dynamic programming finds the best. Empty rows in the last batch of a bucket count as
    padding too.
    """
    levels = np.linspace(0, 1, _CANDIDATES + 1)[1:]
    ends = np.quantile(lengths, levels, axis=0, method="higher")
    ends = np.unique(ends, axis=0)  # ascending in both columns
    counts = np.concatenate(
        [[0], np.cumsum(np.bincount(bucket_of(lengths, ends), minlength=len(ends)))]
    )
    size, words = ends.sum(axis=1), lengths.sum()
    # cost[i, j]: positions of the batches if pairs of candidates i to j take the shape of j.
    held = counts[None, 1:] - counts[:-1, None]
    cost = -(-held // batch) * batch * size[None]
    cost = np.where(np.tri(len(ends), dtype=bool).T, cost, np.iinfo(np.int64).max // 4)
    cuts: list[np.ndarray] = []
    best, least = cost[0], (cost[0, -1], 0)
    while 1 - words / least[0] > padding and len(cuts) + 1 < min(_MOST, len(ends)):
        # The last shape begins at candidate i, the others end at i - 1.
        totals = best[:-1, None] + cost[1:]
        cuts.append(totals.argmin(axis=0))
        best = totals.min(axis=0)
        least = min(least, (best[-1], len(cuts)))
    chosen, end = [len(ends) - 1], len(ends) - 1
    for cut in reversed(cuts[: least[1]]):
        end = int(cut[end])
        chosen.append(end)
    return [(int(s), int(t)) for s, t in ends[sorted(set(chosen))]]
