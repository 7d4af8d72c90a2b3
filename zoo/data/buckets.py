"""Pairs of sentences in batches of few shapes: length buckets.

A pair goes into the smallest of some shapes (source words, target words) that it fits, and a batch
is of one shape: so little is computed on padding, and few programs are compiled. Batches are found
by their index alone, whatever was taken before, and do not depend on the number of devices.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from zoo.data.encoded import EncodedText
from zoo.errors import UserError, check_least, check_rates

# Shapes are chosen among so many, at equal steps through the pairs by their lengths.
_CANDIDATES = 64
# So many shapes at most: each is a program to be compiled.
_MOST = 16


@dataclasses.dataclass(frozen=True)
class Buckets:
    """How pairs are put into batches by their lengths.

    Attributes:
      padding: at most this share of the positions of an epoch's batches is padding; the fewest
        shapes with so little are taken, or 16 if none of so few have it.
      longest: pairs with more words than this on a side, the boundary not counted, are left out of
        training; none is ever left out of a figure.

    Example:
      >>> from zoo.data.buckets import choose_shapes
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


class PairBatch(NamedTuple):
    """B pairs of one shape.

    Attributes:
      source: int32 [B, S], in the order in which it is read, padded on the left with 0.
      lengths: int32 [B], words of each source; 1 in rows without a pair, so that none is empty.
      words: int32 [B, T], the word before each position, the boundary first; padded on the right
        with 0.
      targets: int32 [B, T], the word at each position; padded on the right with 0.
      trained: float32 [B, T], 1 where the target has a loss in training.
      positions: int64 [B, T], where in the target's text it stands; -1 where there is none.
    """

    source: np.ndarray
    lengths: np.ndarray
    words: np.ndarray
    targets: np.ndarray
    trained: np.ndarray
    positions: np.ndarray


def source_batch(sentences: Sequence[Sequence[int]], longest: int = 0, rows: int = 0):
    """(words int32 [B, S], lengths int32 [B]) of sources as word ids, padded on the left.

    Args:
      sentences: in the order in which the encoder reads.
      longest: S, or that of the longest sentence.
      rows: B, or as many as sentences; rows without one have a single word.
    """
    lengths = np.ones(max(rows, len(sentences)), np.int32)
    lengths[: len(sentences)] = [len(sentence) for sentence in sentences]
    words = np.zeros((len(lengths), max(longest, int(lengths.max(initial=1)))), np.int32)
    for row, sentence in zip(words, sentences, strict=False):
        row[len(row) - len(sentence) :] = sentence
    return words, lengths


class PairedText:
    """Sources and translations as word ids, in the orders in which they are read and predicted."""

    def __init__(
        self, source: EncodedText, target: EncodedText, boundary: int, marks: int, order: str
    ):
        """Puts both sides in their orders.

        Args:
          source: the sources, as word ids.
          target: their translations, as many.
          boundary: the id of the word that a target starts from.
          marks: how many boundaries a target ends with, which stay at its end.
          order: see `zoo.models.SequenceToSequence`.
        """
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
        """The batch of the pairs with these numbers, -1 for none, in a shape (S, T)."""
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
    """words[positions], 0 where a position is -1."""
    return np.where(positions >= 0, words[positions], 0).astype(np.int32)


def _reversed(text: EncodedText, marks: int) -> np.ndarray:
    """The positions of a text's words, those of each sentence but its last `marks` turned round."""
    numbers = np.repeat(np.arange(len(text.starts)), text.lengths)
    positions = np.arange(len(text.words))
    inside = positions - text.starts[numbers]
    kept = text.lengths[numbers] - marks
    return np.where(inside < kept, text.starts[numbers] + kept - 1 - inside, positions)


class BucketedPairs:
    """Pairs in buckets; `epoch(generator)` lays them out in batches.

    Attributes:
      shapes: [(S, T), ...] from the smallest.
      steps: batches of an epoch.
      padding: the share of their positions that holds no word.
      dropped: pairs that are too long.
      tokens: targets that have a loss in training, an epoch.
    """

    def __init__(self, text: PairedText, batch: int, padding: float, longest: int = 0):
        """Chooses the shapes.

        Args:
          batch: B.
          padding: see `Buckets`.
          longest: as there; 0 for no limit.

        Raises:
          UserError: every pair is too long.
        """
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
        """All pairs once, in an order that a generator draws; None for that of the text."""
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
    """Batches of pairs; `batches[i]` is the i-th, whichever was taken before."""

    def __init__(self, text: PairedText, rows: list[tuple[np.ndarray, tuple[int, int]]]):
        """Takes the pairs of each batch.

        Args:
          text: the pairs.
          rows: of each batch the numbers of its pairs, -1 for none, and its shape.
        """
        self.text, self.rows = text, rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.part(index)

    def part(self, index: int, rows: slice = slice(None)) -> PairBatch:
        """Some pairs of the i-th batch, in its shape; of the others nothing is read."""
        if not 0 <= index < len(self.rows):
            raise IndexError(index)
        pairs, shape = self.rows[index]
        return self.text.batch(pairs[rows], shape)


def bucket_of(lengths: np.ndarray, shapes: np.typing.ArrayLike) -> np.ndarray:
    """The number of the first shape that each pair of lengths [n, 2] fits, int64 [n].

    Args:
      shapes: int [shapes, 2], both sides growing from each to the next.
    """
    sides = np.asarray(shapes)
    return np.maximum(*(np.searchsorted(sides[:, side], lengths[:, side]) for side in (0, 1)))


def choose_shapes(lengths: np.ndarray, batch: int, padding: float) -> list[tuple[int, int]]:
    """The fewest shapes (S, T) in which at most a share `padding` of all positions is padding.

    Candidates are the lengths of source and target at equal shares of the pairs; of each number of
    shapes the best are found by dynamic programming. Rows that the last batch of a bucket has too
    many are padding too.

    Args:
      lengths: int [n, 2], words of source and target.
      batch: rows of a batch.
    """
    levels = np.linspace(0, 1, _CANDIDATES + 1)[1:]
    ends = np.quantile(lengths, levels, axis=0, method="higher")
    ends = np.unique(ends, axis=0)  # both grow, so that their order is one
    counts = np.concatenate(
        [[0], np.cumsum(np.bincount(bucket_of(lengths, ends), minlength=len(ends)))]
    )
    size, words = ends.sum(axis=1), lengths.sum()
    # cost[i, j]: positions of the batches of the pairs of candidates i to j, in the shape of j.
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
