"""Batches of sentence pairs: sources padded on the left, and targets with the words before them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from zoo.data.encoded_text import EncodedText


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
