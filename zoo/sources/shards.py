"""Text larger than memory: encoded once into shards, which are memory-mapped for reading.

    types.txt        the distinct words, a line each; the id of a word is its line, from 0
    ids-00000.npy    int32, the ids of `SHARD` tokens a file; the last file has the rest
    lengths.npy      int32 [sentences], the number of words of each sentence
    shards.json      the numbers of words, sentences and types, and the files' checksums

Shards do not depend on a lexicon: the vocabulary maps rare words to `<unk>` later.
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

RECORD = "shards.json"
BLANK_LINES = ("skipped", "kept")
_SHAPE = {
    **dict.fromkeys(("words", "sentences", "types", "shard"), int),
    "blank_lines": str,
    "sha256": dict,
}
SHARD = 1 << 24
# Words that are converted to strings at a time.
_AT_ONCE = 1 << 20


# ------------------------------------------------------------ writing


def write(
    paths: Sequence[str], out: str | pathlib.Path, keep_blank_lines: bool = False, size: int = SHARD
) -> dict:
    """Encodes texts into shards line by line; the folder is made whole or not at all."""
    members = [member for path in paths for member in files.text_files(path)]
    for member in members:
        if files.kind(member) in table_rows.READERS:
            raise UserError(f"{member} is a table: give plain text, a sentence a line.")
    with temporary_files.folder(out) as folder:
        lines = (line for member in members for _, line in files.read_lines(str(member)))
        record = _write(lines, folder, keep_blank_lines, size)
        if not record["words"]:
            raise UserError(f"{', '.join(paths)} has no words: give a text with at least one.")
    return record


def _write(lines: Iterable[str], folder, keep_blank_lines, size) -> dict:
    """Writes the shards of some lines to an existing folder; returns the record."""
    numbers: collections.defaultdict = collections.defaultdict()
    numbers.default_factory = numbers.__len__  # a new word gets the next id
    ids, lengths = array.array("i"), array.array("i")
    digests: dict[str, str] = {}
    total = 0

    def put(name, values):
        values = np.array(values, np.int32)
        with open(folder / name, "wb") as file:
            # As in np.save, whose errors do not name a full disk.
            header = np.lib.format.header_data_from_array_1_0(values)
            np.lib.format.write_array_header_1_0(file, header)
            file.write(values.data)
        digests[name] = _digest(folder / name)

    for line in lines:
        words = line.split()
        if words or keep_blank_lines:
            ids.extend(map(numbers.__getitem__, words))
            lengths.append(len(words))
            while len(ids) >= size:
                put(f"ids-{total // size:05}.npy", ids[:size])
                total += size
                del ids[:size]
    if ids:
        put(f"ids-{total // size:05}.npy", ids)
    put("lengths.npy", lengths)
    (folder / "types.txt").write_text("\n".join(numbers), encoding="utf-8")
    digests["types.txt"] = _digest(folder / "types.txt")
    record = {
        "words": total + len(ids),
        "sentences": len(lengths),
        "types": len(numbers),
        "shard": size,
        "blank_lines": "kept" if keep_blank_lines else "skipped",
        "sha256": digests,
    }
    text = json.dumps(record, indent=2) + "\n"
    (folder / RECORD).write_text(text, encoding="utf-8")
    return record


def _digest(path: pathlib.Path) -> str:
    """Computes the SHA-256 of a file; raises ValueError for a pipe, which would block."""
    if path.exists() and not path.is_file():
        raise ValueError(f"{path.name} is not a regular file")
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# ------------------------------------------------------------ reading


class Shards:
    """The memory-mapped shards of a folder; parts that are not read take no memory."""

    def __init__(self, folder: pathlib.Path):
        """Opens a folder; raises UserError if it is damaged."""
        self.record = strict_json.read(folder / RECORD, _SHAPE)
        try:
            names = _names(self.record)
            self._size = self.record["shard"]
            for name, digest in self.record["sha256"].items():
                if _digest(folder / name) != digest:
                    raise ValueError(f"{name} is not as it was written")
            self.types = _types(folder / "types.txt", self.record)
            self.lengths = _lengths(folder / "lengths.npy", self.record)
            paths = enumerate(folder / name for name in names)
            self._ids = [_ids(path, number, self.record) for number, path in paths]
        except (OSError, ValueError) as error:
            raise UserError(
                f"{folder} has shards that cannot be read ({error}): encode the text again."
            ) from error
        self.starts = np.cumsum(self.lengths, dtype=np.int64) - self.lengths

    @property
    def blank_lines(self) -> str:
        return self.record["blank_lines"]

    def ids(self, positions: np.ndarray) -> np.ndarray:
        """Returns the ids of the words at some positions among all words, int32 of their shape."""
        shard, within = np.divmod(positions, self._size)
        found = np.empty(positions.shape, np.int32)
        for number in np.unique(shard):
            chosen = shard == number
            found[chosen] = self._ids[number][within[chosen]]
        return found

    def slice(self, first: int, last: int) -> np.ndarray:
        """Returns the ids of the words at the positions first, ..., last - 1, int32."""
        parts = [
            self._ids[number][max(first - number * self._size, 0) : last - number * self._size]
            for number in range(first // self._size, -(-last // self._size))
        ]
        return np.concatenate([np.zeros(0, np.int32), *parts])


def _names(record) -> list[str]:
    """Lists the files of ids; raises ValueError if the record is inconsistent."""
    for name in ("words", "sentences", "types", "shard"):
        if record[name] < 1:
            raise ValueError(f"{name} is {record[name]}, which has to be at least 1")
    if record["blank_lines"] not in BLANK_LINES:
        raise ValueError(f"blank_lines is {record['blank_lines']!r}, neither kept nor skipped")
    count = -(-record["words"] // record["shard"])
    if len(record["sha256"]) == count + 2:  # checked first: the count may be a billion
        names = [f"ids-{number:05}.npy" for number in range(count)]
        if {*record["sha256"]} == {*names, "lengths.npy", "types.txt"}:
            return names
    raise ValueError(f"sha256 is not of lengths.npy, types.txt and {count} files of ids")


def _types(path, record) -> tuple[str, ...]:
    """Reads the distinct words; raises ValueError if they are malformed."""
    types = tuple(path.read_text(encoding="utf-8").split("\n"))
    if len(types) != record["types"]:
        raise ValueError(f"types.txt has {len(types)} lines, and types is {record['types']}")
    if len({*types}) < len(types):
        raise ValueError("types.txt has a word twice")
    for number, word in enumerate(types, 1):
        if word.split() != [word]:
            raise ValueError(f"types.txt, line {number}, is not a word")
    return types


def _lengths(path, record) -> np.ndarray:
    """Reads the sentence lengths; raises ValueError if they do not add up to all words."""
    lengths = np.array(_int32(path, record["sentences"]))
    least = 0 if record["blank_lines"] == "kept" else 1
    if lengths.min() < least:
        raise ValueError(f"lengths.npy has a sentence of {lengths.min()} words")
    if (total := lengths.sum(dtype=np.int64)) != record["words"]:
        raise ValueError(f"lengths.npy has {total} words in all, and words is {record['words']}")
    return lengths


def _ids(path, number, record) -> np.ndarray:
    """Maps the ids of a shard; raises ValueError for ids out of range."""
    size = record["shard"]
    ids = _int32(path, min(size, record["words"] - number * size))
    low, high = int(ids.min()), int(ids.max())
    if low < 0 or high >= record["types"]:
        wrong = low if low < 0 else high
        raise ValueError(f"{path.name} has the id {wrong}, and there are {record['types']} types")
    return ids


def _int32(path, length) -> np.ndarray:
    """Maps an array of a file; raises ValueError unless it is int32 [length]."""
    array = array_files.mapped(path)
    if array.dtype != np.int32 or array.shape != (length,):
        raise ValueError(f"{path.name} is {array.dtype}{[*array.shape]}, not int32[{length}]")
    return array


@dataclasses.dataclass(frozen=True, eq=False)
class ShardedSentences(Sequence):
    """A sequence of sentences in shards; each is decoded to a list of words on access."""

    shards: Shards
    words: tuple[str, ...]  # the spelling of each id
    ends: tuple[str, ...] = ()
    numbers: range = range(0)

    def __len__(self):
        return len(self.numbers)

    def __getitem__(self, index):
        if isinstance(index, slice):
            numbers = self.numbers[index]
            if numbers.step != 1 and len(numbers) > 1:
                raise ValueError("sentences of shards are sliced with step 1 alone")
            return dataclasses.replace(self, numbers=numbers)
        number = self.numbers[index]
        first = int(self.shards.starts[number])
        ids = self.shards.slice(first, first + int(self.shards.lengths[number]))
        return [*map(self.words.__getitem__, ids.tolist()), *self.ends]

    def __iter__(self):
        for first, last, ids in self._blocks():
            words = list(map(self.words.__getitem__, ids.tolist()))
            end = 0
            for length in self.shards.lengths[first:last].tolist():
                start, end = end, end + length
                yield [*words[start:end], *self.ends]

    def _blocks(self) -> Iterator[tuple[int, int, np.ndarray]]:
        """Yields blocks: (first sentence, last sentence + 1, the ids of their words)."""
        shards = self.shards
        first, last = self.numbers.start, self.numbers.start + len(self.numbers)
        while first < last:
            limit = shards.starts[first] + _AT_ONCE
            after = int(np.searchsorted(shards.starts[:last], limit))
            after = max(first + 1, after)
            end = int(shards.starts[after - 1] + shards.lengths[after - 1])
            yield first, after, shards.slice(int(shards.starts[first]), end)
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
class ShardedCorpus(Corpus):
    """A split whose sentences lie in shards; only its distinct words are held as strings."""

    sentences: ShardedSentences  # type: ignore[assignment]

    @classmethod
    def of(cls, name: str, folder: pathlib.Path) -> "ShardedCorpus":
        """Makes the corpus of all sentences in a folder of shards."""
        shards = Shards(folder)
        numbers = range(len(shards.lengths))
        return cls(name, ShardedSentences(shards, shards.types, (), numbers))

    def token_counts(self) -> collections.Counter:
        return self.sentences.counts()

    def lower_cased(self) -> "ShardedCorpus":
        return self._respelled(tuple(word.lower() for word in self.sentences.words))

    def as_seen(self, words: set[str], unknown: str, ends: Sequence[str]) -> "ShardedCorpus":
        """Returns the corpus with unknown words replaced by a mark."""
        spelled = (word if word in words else unknown for word in self.sentences.words)
        return self._respelled(tuple(spelled), tuple(ends))

    def _respelled(self, words, ends=()):
        sentences = dataclasses.replace(self.sentences, words=words, ends=ends)
        return dataclasses.replace(self, sentences=sentences)
