"""Text as arrays of the ids of its words, in memory or, if it is larger, memory-mapped files:

    types.txt        the distinct words, a line each; the id of a word is its line, from 0
    ids.npy          int32 [words], the ids of the words
    lengths.npy      int32 [sentences], the number of words of each sentence
    encoded.json     the numbers of words, sentences and types, and the files' checksums

The arrays do not depend on a lexicon: the vocabulary maps rare words to `<unk>` later.
"""

import array
import collections
import dataclasses
import functools
import hashlib
import itertools
import json
import operator
import pathlib
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from zoo.base import regular_files, strict_json, temporary_files
from zoo.base.arrays import array_files
from zoo.errors import UserError
from zoo.sources import files

RECORD = "encoded.json"
BLANK_LINES = ("skipped", "kept")
_FILES = ("types.txt", "ids.npy", "lengths.npy")
_SHAPE = {
    **dict.fromkeys(("words", "sentences", "types"), int),
    "blank_lines": str,
    "sha256": dict.fromkeys(_FILES, str),
}
# Words that are written, or converted to strings, at a time.
_AT_ONCE = 1 << 16


# ------------------------------------------------------------ writing


def write(
    paths: Sequence[str],
    out: str | pathlib.Path,
    keep_blank_lines: bool = False,
    column: str = "text",
) -> dict:
    """Encodes texts line by line; the folder is made whole or not at all."""
    with temporary_files.folder(out) as folder:
        # A data set of a hub is not copied to the disk.
        lines = (files.lines_at(path, column, True, "--column") for path in paths)
        record = _write(itertools.chain.from_iterable(lines), folder, keep_blank_lines)
        if not record["words"]:
            raise UserError(f"{', '.join(paths)} has no words: give a text with at least one.")
    return record


def _write(lines: Iterable[str], folder, keep_blank_lines) -> dict:
    """Writes the files of some lines to an existing folder; returns the record."""
    # A new word gets the next id.
    types: dict[str, int] = collections.defaultdict(itertools.count().__next__)
    lengths, total = array.array("i"), 0
    split = (words for words in map(str.split, lines) if words or keep_blank_lines)
    with open(folder / "ids.npy", "wb") as file:
        _header(file, total)
        for ids in _encode(split, types, lengths):
            total += len(ids)
            file.write(ids)
        file.seek(0)
        _header(file, total)
    with open(folder / "lengths.npy", "wb") as file:
        _header(file, len(lengths))
        file.write(lengths)
    (folder / "types.txt").write_text("\n".join(types), encoding="utf-8")
    record = {
        "words": total,
        "sentences": len(lengths),
        "types": len(types),
        "blank_lines": "kept" if keep_blank_lines else "skipped",
        "sha256": {name: _digest(folder / name) for name in _FILES},
    }
    (folder / RECORD).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    return record


def _header(file, length: int):
    """Writes the header of an int32 array, whose size does not depend on the array's length."""
    # Not by np.save, whose errors do not name a full disk.
    header = {"descr": np.dtype(np.int32).str, "fortran_order": False, "shape": (length,)}
    np.lib.format.write_array_header_1_0(file, header)


def _digest(path: pathlib.Path) -> str:
    """Computes the SHA-256 of a file."""
    with regular_files.open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _encode(sentences, types, lengths) -> Iterator[array.array]:
    """Yields the ids of the words of many sentences at a time, and adds types and lengths."""
    ids = array.array("i")
    for words in sentences:
        ids.extend(map(types.__getitem__, words))
        lengths.append(len(words))
        if len(ids) >= _AT_ONCE:
            yield ids
            ids = array.array("i")
    yield ids


# ------------------------------------------------------------ reading


@dataclasses.dataclass(eq=False)
class TextArrays:
    """The arrays of a text in memory."""

    types: tuple[str, ...]
    ids: np.ndarray  # int32 [words]
    lengths: np.ndarray

    @functools.cached_property
    def starts(self) -> np.ndarray:
        return np.cumsum(self.lengths, dtype=np.int64) - self.lengths


class Mapped(TextArrays):
    """The memory-mapped arrays of a folder; parts that are not read take no memory."""

    def __init__(self, folder: pathlib.Path):
        """Opens a folder; raises UserError if it is damaged."""
        record = strict_json.read(folder / RECORD, _SHAPE)
        self.blank_lines: str = record["blank_lines"]
        try:
            if self.blank_lines not in BLANK_LINES:
                raise ValueError(f"blank_lines is {self.blank_lines!r}, neither kept nor skipped")
            for name in _FILES:
                if _digest(folder / name) != record["sha256"][name]:
                    raise ValueError(f"{name} is not as it was written")
            self.types = _types(folder / "types.txt", record["types"])
            self.ids = _int32(folder / "ids.npy", record["words"])
            self.lengths = np.array(_int32(folder / "lengths.npy", record["sentences"]))
            self._check()
        except (OSError, ValueError) as error:
            raise UserError(
                f"{folder} has encoded text that cannot be read ({error}): encode the text again."
            ) from error

    def _check(self):
        """Raises ValueError for ids without a type, and lengths that are not of all words."""
        low, high = int(self.ids.min()), int(self.ids.max())
        if low < 0 or high >= len(self.types):
            wrong = low if low < 0 else high
            raise ValueError(f"ids.npy has the id {wrong}, and there are {len(self.types)} types")
        if self.lengths.min() < (self.blank_lines == "skipped"):
            raise ValueError(f"lengths.npy has a sentence of {self.lengths.min()} words")
        total = self.lengths.sum(dtype=np.int64)
        if total != len(self.ids):
            raise ValueError(f"lengths.npy has {total} words in all, ids.npy {len(self.ids)}")


def _types(path, count) -> tuple[str, ...]:
    """Reads the distinct words; raises ValueError if they are malformed."""
    types = tuple(regular_files.read_text(path).split("\n"))
    if len(types) != count:
        raise ValueError(f"types.txt has {len(types)} lines, and types is {count}")
    if len({*types}) < len(types):
        raise ValueError("types.txt has a word twice")
    for number, word in enumerate(types, 1):
        if word.split() != [word]:
            raise ValueError(f"types.txt, line {number}, is not a word")
    return types


def _int32(path, length) -> np.ndarray:
    """Maps an array of a file; raises ValueError unless it is int32 [length], and not empty."""
    array = array_files.map_array(path)
    if array.dtype != np.int32 or array.shape != (length,) or not length:
        raise ValueError(f"{path.name} is {array.dtype}{[*array.shape]}, not int32[{length}]")
    return array


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class ArraySentences(Sequence):
    """Sentences as arrays of ids, in half the memory of lists; each is decoded on access."""

    text: TextArrays
    words: tuple[str, ...]  # the spelling of each id
    numbers: range
    ends: tuple[str, ...] = ()

    @classmethod
    def encode(cls, sentences: Iterable[Collection[Any]]) -> "ArraySentences":
        """Encodes sentences, of words or other keys, whose ids are in the order in which distinct
        words occur."""
        types: dict[Any, int] = collections.defaultdict(itertools.count().__next__)
        lengths = array.array("i")
        ids = array.array("i")  # grows in place: joining arrays would take twice the memory
        for sentence in sentences:
            ids.extend(map(types.__getitem__, sentence))
            lengths.append(len(sentence))
        # One object for the same word of several texts.
        words = (sys.intern(word) if isinstance(word, str) else word for word in types)
        text = TextArrays(tuple(words), np.asarray(ids), np.array(lengths))
        return cls(text, text.types, range(len(lengths)))

    def __len__(self):
        return len(self.numbers)

    def __getitem__(self, index):
        if isinstance(index, slice):
            numbers = self.numbers[index]
            if numbers.step != 1 and len(numbers) > 1:
                return [self[number] for number in range(len(self))[index]]
            return dataclasses.replace(self, numbers=numbers)
        number = self.numbers[index]
        first = int(self.text.starts[number])
        ids = self.text.ids[first : first + int(self.text.lengths[number])]
        return [*map(self.words.__getitem__, ids.tolist()), *self.ends]

    def __iter__(self):
        spelled, ends = np.fromiter(self.words, object, len(self.words)), [*self.ends]
        for first, last, ids in self.blocks():
            words, end = spelled[ids].tolist(), 0
            for length in self.text.lengths[first:last].tolist():
                start, end = end, end + length
                yield words[start:end] + ends

    def __eq__(self, other):
        is_sequence = isinstance(other, Sequence)
        return is_sequence and len(self) == len(other) and all(map(operator.eq, self, other))

    def __repr__(self):
        return repr([*self])

    @property
    def lengths(self) -> np.ndarray:
        return self.text.lengths[self.numbers.start : self.numbers.start + len(self)]

    def blocks(self) -> Iterator[tuple[int, int, np.ndarray]]:
        """Yields (first sentence, last sentence + 1, the ids of their words) of parts of a text."""
        text = self.text
        first, last = self.numbers.start, self.numbers.start + len(self.numbers)
        while first < last:
            limit = text.starts[first] + _AT_ONCE
            after = max(first + 1, int(np.searchsorted(text.starts[:last], limit)))
            end = int(text.starts[after - 1] + text.lengths[after - 1])
            yield first, after, text.ids[int(text.starts[first]) : end]
            first = after

    def totals(self) -> np.ndarray:
        """Counts the words of each id."""
        totals = np.zeros(len(self.words), np.int64)
        for *_, ids in self.blocks():
            np.add.at(totals, ids, 1)
        return totals

    def counts(self) -> collections.Counter:
        totals, counts = self.totals(), collections.Counter[str]()
        for number in np.flatnonzero(totals).tolist():
            counts[self.words[number]] += int(totals[number])
        for word in self.ends:
            counts[word] += len(self)
        return counts

    def respelled(self, words: Iterable[Any], ends: Sequence[str] = ()) -> "ArraySentences":
        """Returns the sentences with other spellings of all ids, and words after each sentence."""
        return dataclasses.replace(self, words=tuple(words), ends=tuple(ends))
