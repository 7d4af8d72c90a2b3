"""Text larger than memory: encoded once into arrays, which are memory-mapped for reading.

    types.txt        the distinct words, a line each; the id of a word is its line, from 0
    ids.npy          int32 [words], the ids of the words
    lengths.npy      int32 [sentences], the number of words of each sentence
    encoded.json     the numbers of words, sentences and types, and the files' checksums

The arrays do not depend on a lexicon: the vocabulary maps rare words to `<unk>` later.
"""

import array
import collections
import dataclasses
import hashlib
import json
import pathlib
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from zoo import strict_json, temporary_files
from zoo.arrays import array_files
from zoo.errors import UserError
from zoo.sources import files, table_rows
from zoo.sources.source import Corpus

RECORD = "encoded.json"
BLANK_LINES = ("skipped", "kept")
_FILES = ("types.txt", "ids.npy", "lengths.npy")
_SHAPE = {
    **dict.fromkeys(("words", "sentences", "types"), int),
    "blank_lines": str,
    "sha256": dict.fromkeys(_FILES, str),
}
# Words that are written, or converted to strings, at a time.
_AT_ONCE = 1 << 20


# ------------------------------------------------------------ writing


def write(
    paths: Sequence[str],
    out: str | pathlib.Path,
    keep_blank_lines: bool = False,
    column: str = "text",
) -> dict:
    """Encodes texts line by line; the folder is made whole or not at all."""
    with temporary_files.folder(out) as folder:
        lines = (line for path in paths for line in _lines(path, column))
        record = _write(lines, folder, keep_blank_lines)
        if not record["words"]:
            raise UserError(f"{', '.join(paths)} has no words: give a text with at least one.")
    return record


def _lines(path: str, column: str) -> Iterator[str]:
    """Yields the lines of what `Text` reads; a data set of a hub is not copied to the disk."""
    if table := table_rows.data_set(path, streaming=True):
        yield from table_rows.lines_of(table, path, column, "--column")
        return
    for member in files.text_files(path):
        if reader := table_rows.READERS.get(files.kind(member)):
            yield from table_rows.lines_of(reader(member), member, column, "--column")
        else:
            yield from (line for _, line in files.read_lines(str(member)))


def _write(lines: Iterable[str], folder, keep_blank_lines) -> dict:
    """Writes the files of some lines to an existing folder; returns the record."""
    numbers: collections.defaultdict = collections.defaultdict()
    numbers.default_factory = numbers.__len__  # a new word gets the next id
    ids, lengths, total = array.array("i"), array.array("i"), 0
    with open(folder / "ids.npy", "wb") as file:
        _header(file, total)
        for line in lines:
            words = line.split()
            if words or keep_blank_lines:
                ids.extend(map(numbers.__getitem__, words))
                lengths.append(len(words))
            if len(ids) >= _AT_ONCE:
                total += len(ids)
                file.write(ids)
                ids = array.array("i")
        total += len(ids)
        file.write(ids)
        file.seek(0)
        _header(file, total)
    with open(folder / "lengths.npy", "wb") as file:
        _header(file, len(lengths))
        file.write(lengths)
    (folder / "types.txt").write_text("\n".join(numbers), encoding="utf-8")
    record = {
        "words": total,
        "sentences": len(lengths),
        "types": len(numbers),
        "blank_lines": "kept" if keep_blank_lines else "skipped",
        "sha256": {name: _digest(folder / name) for name in _FILES},
    }
    text = json.dumps(record, indent=2) + "\n"
    (folder / RECORD).write_text(text, encoding="utf-8")
    return record


def _header(file, length: int):
    """Writes the header of an int32 array, whose size does not depend on the array's length."""
    # Not by np.save, whose errors do not name a full disk.
    header = {"descr": np.dtype(np.int32).str, "fortran_order": False, "shape": (length,)}
    np.lib.format.write_array_header_1_0(file, header)


def _digest(path: pathlib.Path) -> str:
    """Computes the SHA-256 of a file; raises ValueError for a pipe, which would block."""
    if path.exists() and not path.is_file():
        raise ValueError(f"{path.name} is not a regular file")
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# ------------------------------------------------------------ reading


class Mapped:
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
        self.starts = np.cumsum(self.lengths, dtype=np.int64) - self.lengths

    def _check(self):
        """Raises ValueError for ids without a type, and lengths that are not of all words."""
        low, high = int(self.ids.min()), int(self.ids.max())
        if low < 0 or high >= len(self.types):
            wrong = low if low < 0 else high
            raise ValueError(f"ids.npy has the id {wrong}, and there are {len(self.types)} types")
        if self.lengths.min() < (self.blank_lines == "skipped"):
            raise ValueError(f"lengths.npy has a sentence of {self.lengths.min()} words")
        if (total := self.lengths.sum(dtype=np.int64)) != len(self.ids):
            raise ValueError(f"lengths.npy has {total} words in all, ids.npy {len(self.ids)}")


def _types(path, count) -> tuple[str, ...]:
    """Reads the distinct words; raises ValueError if they are malformed."""
    types = tuple(path.read_text(encoding="utf-8").split("\n"))
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
    array = array_files.mapped(path)
    if array.dtype != np.int32 or array.shape != (length,) or not length:
        raise ValueError(f"{path.name} is {array.dtype}{[*array.shape]}, not int32[{length}]")
    return array


@dataclasses.dataclass(frozen=True, eq=False)
class MappedSentences(Sequence):
    """A sequence of mapped sentences; each is decoded to a list of words on access."""

    text: Mapped
    words: tuple[str, ...]  # the spelling of each id
    ends: tuple[str, ...] = ()
    numbers: range = range(0)

    def __len__(self):
        return len(self.numbers)

    def __getitem__(self, index):
        if isinstance(index, slice):
            numbers = self.numbers[index]
            if numbers.step != 1 and len(numbers) > 1:
                raise ValueError("mapped sentences are sliced with step 1 alone")
            return dataclasses.replace(self, numbers=numbers)
        number = self.numbers[index]
        first = int(self.text.starts[number])
        ids = self.text.ids[first : first + int(self.text.lengths[number])]
        return [*map(self.words.__getitem__, ids.tolist()), *self.ends]

    def __iter__(self):
        for first, last, ids in self._blocks():
            words = list(map(self.words.__getitem__, ids.tolist()))
            end = 0
            for length in self.text.lengths[first:last].tolist():
                start, end = end, end + length
                yield [*words[start:end], *self.ends]

    def _blocks(self) -> Iterator[tuple[int, int, np.ndarray]]:
        """Yields blocks: (first sentence, last sentence + 1, the ids of their words)."""
        text = self.text
        first, last = self.numbers.start, self.numbers.start + len(self.numbers)
        while first < last:
            limit = text.starts[first] + _AT_ONCE
            after = max(first + 1, int(np.searchsorted(text.starts[:last], limit)))
            end = int(text.starts[after - 1] + text.lengths[after - 1])
            yield first, after, text.ids[int(text.starts[first]) : end]
            first = after

    def counts(self) -> collections.Counter:
        totals = np.zeros(len(self.words), np.int64)
        for *_, ids in self._blocks():
            totals += np.bincount(ids, minlength=len(totals))
        found: collections.Counter = collections.Counter()
        for number in np.flatnonzero(totals).tolist():
            found[self.words[number]] += int(totals[number])
        for word in self.ends:
            found[word] += len(self)
        return found


@dataclasses.dataclass(frozen=True)
class MappedCorpus(Corpus):
    """A split whose sentences are mapped; only its distinct words are held as strings."""

    sentences: MappedSentences  # type: ignore[assignment]

    @classmethod
    def of(cls, name: str, folder: pathlib.Path) -> "MappedCorpus":
        """Makes the corpus of all sentences of a folder."""
        text = Mapped(folder)
        return cls(name, MappedSentences(text, text.types, (), range(len(text.lengths))))

    def token_counts(self) -> collections.Counter:
        return self.sentences.counts()

    def lower_cased(self) -> "MappedCorpus":
        return self._respelled(tuple(word.lower() for word in self.sentences.words))

    def as_seen(self, words: set[str], unknown: str, ends: Sequence[str]) -> "MappedCorpus":
        """Returns the corpus with unknown words replaced by a mark."""
        spelled = (word if word in words else unknown for word in self.sentences.words)
        return self._respelled(tuple(spelled), tuple(ends))

    def _respelled(self, words, ends=()):
        sentences = dataclasses.replace(self.sentences, words=words, ends=ends)
        return dataclasses.replace(self, sentences=sentences)
