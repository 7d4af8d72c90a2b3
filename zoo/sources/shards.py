"""Text that is larger than the memory: encoded once, into shards that are mapped when it is read.

    types.txt        its distinct words, a line each; the number of a word is its line, from 0
    ids-00000.npy    int32, numbers of words, `SHARD` of them a file; the last file has the rest
    lengths.npy      int32 [sentences], words of each
    shards.json      how many of all there are, and digests of the files

A shard knows no lexicon: which words become `<unk>` is the vocabulary's business, later.
"""

import array
import bz2
import collections
import dataclasses
import gzip
import hashlib
import io
import itertools
import json
import lzma
import pathlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from zoo.errors import UserError
from zoo.processes import unfinished
from zoo.sources import files, folders
from zoo.sources.corpus import Corpus

RECORD = "shards.json"
SHARD = 1 << 24
_OPEN: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\0": lzma.open}
# Words that are turned into strings at a time.
_AT_ONCE = 1 << 20


def is_one(folder: pathlib.Path) -> bool:
    """Whether there are shards in a folder."""
    return (folder / RECORD).is_file()


# ------------------------------------------------------------ writing


def write(
    paths: Sequence[str], out: str | pathlib.Path, keep_blank_lines: bool = False, size: int = SHARD
) -> dict:
    """Encodes files of text, a line at a time; the folder is there whole or not at all.

    Args:
      paths: of plain text, a sentence a line, perhaps compressed; folders and patterns of such.
      out: the folder to make.
      keep_blank_lines: whether a blank line is a sentence without words, or skipped.
      size: words of a shard.

    Returns:
      What `shards.json` has.

    Raises:
      UserError: a file is no plain text in UTF-8, none has words, or there is something at `out`.
    """
    members = [member for path in paths for member in folders.text_files(path)]
    for member in members:
        if folders.kind(member) in (".json", ".jsonl", ".parquet", ".csv", ".tsv"):
            raise UserError(f"{member} is a table: give plain text, a sentence a line.")
    with unfinished.folder(out) as folder:
        lines = itertools.chain.from_iterable(map(_lines, members))
        record = _write(lines, folder, keep_blank_lines, size)
        if not record["words"]:
            raise UserError(f"{', '.join(paths)} has no words: give a text with at least one.")
    return record


def _write(lines: Iterable[str], folder, keep_blank_lines, size) -> dict:
    """Writes all files of a folder that is there."""
    numbers: collections.defaultdict = collections.defaultdict()
    numbers.default_factory = numbers.__len__  # a new word has the next number
    ids, lengths = array.array("i"), array.array("i")
    digests: dict[str, str] = {}
    total = 0

    def put(name, values):
        with open(folder / name, "wb") as file:
            np.save(file, np.array(values, np.int32))
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


def _lines(path: pathlib.Path) -> Iterator[str]:
    """The lines of a file of text, one in memory at a time."""
    try:
        with open(path, "rb") as file:
            begin = file.read(6)
        opened = next((of for magic, of in _OPEN.items() if begin.startswith(magic)), open)
        with opened(path, "rb") as file:
            # utf-8-sig: without the mark that some editors put first. All line ends are one.
            text = io.TextIOWrapper(file, encoding="utf-8-sig", newline=None)
            for number, line in enumerate(text, 1):
                if "\0" in line:
                    raise UserError(f"{path}, line {number}, is binary: give a UTF-8 text file.")
                yield line
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8: convert it, for instance with iconv.") from error
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise UserError(f"{path} cannot be read ({error}): give a file of text.") from error


def _digest(path: pathlib.Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# ------------------------------------------------------------ reading


class Shards:
    """The shards of a folder, mapped into memory: what is not looked at takes none.

    Attributes:
      types: its distinct words.
      lengths: int32 [sentences], words of each.
      starts: int64 [sentences], where each begins among all words.
    """

    def __init__(self, folder: pathlib.Path):
        """Opens a folder; UserError if it is damaged."""
        try:
            self.record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
            for name, digest in self.record["sha256"].items():
                if _digest(folder / name) != digest:
                    raise ValueError(f"{name} is not as it was written")
            self._size = int(self.record["shard"])
            names = sorted(name for name in self.record["sha256"] if name.startswith("ids-"))
            self._ids = [np.load(folder / name, mmap_mode="r") for name in names]
            self.lengths = np.load(folder / "lengths.npy")
            types = (folder / "types.txt").read_text(encoding="utf-8")
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise UserError(
                f"{folder} has shards that cannot be read ({error}): encode the text again."
            ) from error
        self.types = tuple(types.split("\n"))
        self.starts = np.cumsum(self.lengths, dtype=np.int64) - self.lengths

    @property
    def blank_lines(self) -> str:
        """Whether blank lines were "skipped" or "kept"."""
        return self.record["blank_lines"]

    def ids(self, positions: np.ndarray) -> np.ndarray:
        """The words at positions among all words, as numbers of types, int32 of their shape."""
        shard, within = np.divmod(positions, self._size)
        found = np.empty(positions.shape, np.int32)
        for number in np.unique(shard):
            chosen = shard == number
            found[chosen] = self._ids[number][within[chosen]]
        return found

    def slice(self, first: int, last: int) -> np.ndarray:
        """The words from a position to before another, as numbers of types, int32."""
        parts = [
            self._ids[number][max(first - number * self._size, 0) : last - number * self._size]
            for number in range(first // self._size, -(-last // self._size))
        ]
        return np.concatenate([np.zeros(0, np.int32), *parts])


@dataclasses.dataclass(frozen=True, eq=False)
class ShardedSentences(Sequence):
    """Some sentences of shards, each made a list of words when it is asked for.

    Attributes:
      shards: what they are of.
      words: a spelling for each type.
      ends: the words after each sentence, as its boundaries.
      numbers: which sentences.
    """

    shards: Shards
    words: tuple[str, ...]
    ends: tuple[str, ...] = ()
    numbers: range = range(0)

    def __len__(self):
        return len(self.numbers)

    def __getitem__(self, index):
        if isinstance(index, slice):
            numbers = self.numbers[index]
            if numbers.step != 1 and len(numbers) > 1:
                raise ValueError("sentences of shards are taken one after the other")
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
        """(first sentence, the one after the last, their words as numbers of types)."""
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
        """How often each word occurs."""
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
    """A split whose sentences lie in shards; nothing but its distinct words is held as strings."""

    sentences: ShardedSentences  # type: ignore[assignment]

    @classmethod
    def of(cls, name: str, folder: pathlib.Path) -> "ShardedCorpus":
        """All the sentences of a folder."""
        shards = Shards(folder)
        numbers = range(len(shards.lengths))
        return cls(name, ShardedSentences(shards, shards.types, (), numbers))

    def token_counts(self) -> collections.Counter:
        """How often each word occurs."""
        return self.sentences.counts()

    def lower_cased(self) -> "ShardedCorpus":
        """The corpus with every word in lower case."""
        return self._respelled(tuple(word.lower() for word in self.sentences.words))

    def as_seen(self, words: set[str], unknown: str, ends: Sequence[str]) -> "ShardedCorpus":
        """The corpus with a mark in the place of unknown words, and marks after each sentence."""
        spelled = (word if word in words else unknown for word in self.sentences.words)
        return self._respelled(tuple(spelled), tuple(ends))

    def _respelled(self, words, ends=()):
        sentences = dataclasses.replace(self.sentences, words=words, ends=ends)
        return dataclasses.replace(self, sentences=sentences)


def found_at(path: str) -> pathlib.Path | None:
    """The folder at a path if it has shards, else None."""
    try:
        folder = files.find(path)
    except UserError:
        return None
    return folder if is_one(folder) else None
