"""Loads the model of this folder with jax, numpy, flatbuffers and safetensors, and nothing else.

    pip install jax flatbuffers safetensors
    python load.py "a sentence" "another one"

prints the log-probability of each, in nats. From Python:

    model = Model(FOLDER)
    model.warm_up(16, 64)  # compiles `log_prob` for up to 16 sentences of up to 64 words
    model.log_prob(["a sentence"])  # float64 [sentences], each with the boundary after it
    model.outside("a sentence")  # its words outside the lexicon, which are read as the unknown word
    log_probs, carry = model.step(ids, model.initial_carry(rows))  # [rows, V], of the next word

An encoder-decoder's arguments are a source, its translation and so on:

    model = Translator(FOLDER)
    model.warm_up(16, 64)  # also of sources
    model.log_prob(["une phrase"], ["a sentence"])  # float64 [pairs]
    carry, constant = model.encode(*model.read_sources(["une phrase"]))
    log_probs, carry = model.step(ids, carry, constant)  # [rows, V], of the next word

The programs run on the platforms that export.json names. README.md tells how a text was made and
how its words were read in training; this file takes words as they are. A sentence is a string whose
words stand between blanks, or a sequence of words. A program is compiled for
each new shape of its arguments: `log_prob` pads rows and lengths to powers of two, so that few are,
and none within the limits of `warm_up`. A damaged folder raises ValueError.
"""

import hashlib
import io
import itertools
import json
import pathlib
import sys
from collections.abc import Sequence

try:
    import flatbuffers  # noqa: F401 (jax.export reads programs with it)
    import jax
    import numpy as np
    import safetensors.numpy
    from jax import export
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"{error.name} is not installed: pip install jax flatbuffers safetensors", name=error.name
    ) from None

Sentence = str | Sequence[str]
Sentences = Sequence[Sentence]


class Words:
    """The words of a language.

    Attributes:
      words: the word of each id.
      boundary: the word that begins and ends sentences, or None.
      unknown: the word that stands for all others, or None.
    """

    def __init__(self, content: bytes):
        """Reads the content of the file of a lexicon."""
        with np.load(io.BytesIO(content)) as lexicon:
            self.words, (self.unknown, self.boundary) = (
                json.loads(lexicon[name].tobytes().decode()) for name in ("words", "marks")
            )
        self._ids = {word: number for number, word in enumerate(self.words)}
        self._is_character_level = any(not word.strip() for word in self.words)

    def ids(self, sentence: Sentence) -> list[int]:
        """Returns the ids of words.

        Raises:
          ValueError: a word is outside the lexicon, and the model does not have an unknown word.
        """
        words = self._words_of(sentence)
        if self.unknown is None:
            for word in words:
                if word not in self._ids:
                    raise ValueError(f"{word!r} is not among the words of the model.")
        return [self._ids[word if word in self._ids else self.unknown] for word in words]

    def outside(self, sentence: Sentence) -> list[str]:
        """Returns the words of a sentence that are outside the lexicon."""
        return [word for word in self._words_of(sentence) if word not in self._ids]

    def _words_of(self, sentence):
        """Returns the words of a string or of a sequence."""
        return self.split(sentence) if isinstance(sentence, str) else sentence

    def split(self, text: str) -> list[str]:
        """Splits a text at blanks; into characters if one of the words is a blank.

        Args:
          text: words as they were in training, such as punctuation apart.
        """
        return list(text) if self._is_character_level else text.split()


class Exported(Words):
    """Base of all exported models: programs, arrays, and the words that they predict.

    Attributes:
      record: the content of export.json.
    """

    def __init__(self, folder):
        """Reads programs, parameters and words of a folder."""
        self._folder = pathlib.Path(folder)
        self.record = self._read_record()
        super().__init__(self._read("lexicon.npz"))
        if self.record.get("open_classes"):
            self.unknown = None  # other strings may be words of these classes, which Zoo reads
        params = safetensors.numpy.load(self._read("params.safetensors"))
        tables = safetensors.numpy.load(self._read("tables.safetensors"))
        carry = [tables.pop(f"carry/{number}") for number in range(self.record["carry"])]
        arrays = {f"params/{name}": array for name, array in params.items()} | tables
        self._arrays, self._carry = jax.device_put((arrays, tuple(carry)))
        self._programs = {
            name: jax.jit(export.deserialize(bytearray(self._read(file))).call)
            for name, file in self.record["programs"].items()
        }

    def _row(self, words: Sentence) -> list[int]:
        """Returns the ids of a sentence between its boundaries, in the decoder's order."""
        marks = [] if self.boundary is None else [self._ids[self.boundary]]
        order = -1 if self.record["order"] == "target_reversed" else 1
        return marks + self.ids(words)[::order] + marks * self.record["boundary_marks"]

    def _check_ids(self, ids) -> np.ndarray:
        """Returns word ids as an array; raises ValueError if an id is outside the lexicon."""
        ids = np.asarray(ids, np.int32)
        if ids.size and not 0 <= ids.min() <= ids.max() < len(self.words):
            raise ValueError(
                f"the ids of words are from 0 to {len(self.words) - 1}: give such ids."
            )
        return ids

    def _read_record(self) -> dict:
        """Reads export.json; raises ValueError if its digest is wrong."""
        file = self._folder / "export.json"
        try:
            record = json.loads(_content(file).decode())
        except (OSError, ValueError, RecursionError) as error:
            raise ValueError(f"{file} cannot be read ({error}): put back a copy of it.") from error
        digest = record.pop("digest", None) if isinstance(record, dict) else None
        if digest != _sha256(json.dumps(record, sort_keys=True).encode()):
            raise ValueError(f"{file} is not as it was written: put back a copy of it.")
        return record

    def _read(self, name: str) -> bytes:
        """Reads a file of the folder; raises ValueError if its digest is wrong."""
        file = self._folder / name
        try:
            content = _content(file)
        except OSError as error:
            raise ValueError(f"{file} cannot be read ({error}): put back a copy of it.") from error
        if (self.record.get("sha256") or {}).get(name) != _sha256(content):
            raise ValueError(f"{file} is not as it was written: put back a copy of it.")
        return content


class Model(Exported):
    """A language model."""

    def initial_carry(self, rows: int) -> tuple:
        """Returns the carry of rows before any word; step with the boundary first."""
        return tuple(leaf.repeat(rows, axis=0) for leaf in self._carry)

    def step(self, words, carry):
        """Returns (log p of every word after these, [rows, V], nats; the carry after them).

        Args:
          words: int32 [rows].
          carry: before these words.
        """
        return self._programs["step"](self._arrays, self._check_ids(words), carry)

    def score(self, words, targets, reset, carry):
        """Computes (log p(targets), log Z, carry), nats, exact.

        Args:
          words: int32 [rows, length], the word before each position.
          targets: int32 [rows, length], the word at it.
          reset: bool [rows, length], where the carry is emptied before the position.
          carry: before these words.
        """
        words, targets = self._check_ids(words), self._check_ids(targets)
        return self._programs["score"](self._arrays, words, targets, np.asarray(reset), carry)

    def log_prob(self, sentences: Sentences) -> np.ndarray:
        """Computes log p of each sentence and the boundaries after it, from an empty carry, nats.

        Without a boundary the first word is given and not predicted.

        Returns:
          float64 [sentences].

        Raises:
          ValueError: the sentences are one string; see also `ids`.
        """
        _check_several(sentences)
        words, targets, is_target = _positions([self._row(words) for words in sentences])
        reset, carry = np.zeros(words.shape, bool), self.initial_carry(len(words))
        log_prob, _, _ = self.score(words, targets, reset, carry)
        return _sums(log_prob, is_target)[: len(sentences)]

    def warm_up(self, rows: int, length: int):
        """Compiles `log_prob` for all calls within limits.

        Args:
          rows: the greatest number of sentences.
          length: the greatest number of words in a sentence.
        """
        positions = len(self._row(self.words[:1] * length)) - 1
        for shape in itertools.product(_powers_of_two(rows), _powers_of_two(positions)):
            words = np.zeros(shape, np.int32)
            self.score(words, words, np.zeros(shape, bool), self.initial_carry(shape[0]))


class Translator(Exported):
    """An encoder-decoder.

    Attributes:
      source: the words of the sources.
    """

    def __init__(self, folder):
        """Reads programs, parameters and the words of both sides of a folder."""
        super().__init__(folder)
        self.source = Words(self._read("source.npz"))

    def read_sources(self, sentences: Sentences) -> tuple[np.ndarray, np.ndarray]:
        """Returns (words int32 [rows, S], their numbers int32 [rows]) of sources.

        Words are in the order of the encoder, padded on the left.
        """
        order = -1 if self.record["order"] == "source_reversed" else 1
        rows = [self.source.ids(words)[::order] for words in sentences]
        longest = _power_of_two(max(map(len, rows), default=1))
        padded = [[0] * (longest - len(row)) + row for row in rows]
        return np.array(padded, np.int32), np.array([max(1, len(row)) for row in rows], np.int32)

    def encode(self, source, lengths) -> tuple[tuple, tuple]:
        """Returns (the carry before the first word; the constant input of all steps of these rows).

        Both have leaves [rows, ...] that may be repeated and reordered together; step with the
        boundary first. `source` and `lengths` are the results of `read_sources`.
        """
        return self._programs["encode"](self._arrays, source, lengths)

    def step(self, words, carry, constant):
        """Returns (log p of every word after these, [rows, V], nats; the carry after them).

        Words come in the order of the decoder: with "target_reversed" the last one first.

        Args:
          words: int32 [rows].
          carry: before these words.
          constant: of `encode`.
        """
        return self._programs["step"](self._arrays, self._check_ids(words), carry, constant)

    def log_prob(self, sources: Sentences, translations: Sentences) -> np.ndarray:
        """Computes log p of each translation and the boundaries after it, given its source, nats.

        Returns:
          float64 [pairs].

        Raises:
          ValueError: there are not as many sources as translations, or one of both is one string.
        """
        _check_several(sources)
        _check_several(translations)
        if len(sources) != len(translations):
            raise ValueError(
                f"{len(sources)} sources and {len(translations)} translations: give one of each."
            )
        words, targets, is_target = _positions([self._row(words) for words in translations])
        padding: list[list[str]] = [[]] * (len(words) - len(sources))
        inputs = (*self.read_sources([*sources, *padding]), words, targets)
        log_prob, _ = self._programs["score"](self._arrays, *inputs)
        return _sums(log_prob, is_target)[: len(sources)]

    def warm_up(self, rows: int, length: int):
        """Compiles `log_prob` for all calls within limits.

        Args:
          rows: the greatest number of pairs.
          length: the greatest number of words in a source, and in a translation.
        """
        positions = len(self._row(self.words[:1] * length)) - 1
        sizes = _powers_of_two(rows), _powers_of_two(length), _powers_of_two(positions)
        for count, before, after in itertools.product(*sizes):
            source, lengths = np.zeros((count, before), np.int32), np.ones(count, np.int32)
            words = np.zeros((count, after), np.int32)
            self._programs["score"](self._arrays, source, lengths, words, words)


def _check_several(sentences):
    """Raises ValueError for a string in place of a list of sentences."""
    if isinstance(sentences, str):
        raise ValueError("the sentences are one string: give a list of sentences.")


def _sums(log_prob, is_target) -> np.ndarray:
    """Sums log p over the target positions of each row, float64 [R]."""
    return np.where(is_target, np.asarray(log_prob, np.float64), 0).sum(axis=1)


def _positions(rows: list[list[int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns (the word before each position, the word at it, whether it is a target), each [R, L].

    R and L are powers of two, and padding is 0.
    """
    shape = _power_of_two(len(rows)), _power_of_two(max(map(len, rows), default=1) - 1)
    words, targets, is_target = (np.zeros(shape, kind) for kind in (np.int32, np.int32, bool))
    for number, row in enumerate(rows):
        length = max(0, len(row) - 1)
        words[number, :length], targets[number, :length] = row[:-1], row[1:]
        is_target[number, :length] = True
    return words, targets, is_target


def _power_of_two(minimum: int) -> int:
    """Returns the smallest power of two that is at least `minimum`, and at least 1."""
    return 1 << max(0, minimum - 1).bit_length()


def _powers_of_two(maximum: int) -> list[int]:
    """Returns the powers of two from 1 to the smallest that is at least `maximum`."""
    return [1 << power for power in range(_power_of_two(maximum).bit_length())]


def _content(file: pathlib.Path) -> bytes:
    """Reads a file; OSError for a Git LFS pointer, and for a pipe or device, on which it would wait
    for ever."""
    if file.exists() and not (file.is_file() or file.is_dir()):
        raise OSError(f"{file.name} is not a regular file")
    content = file.read_bytes()
    if content.startswith(b"version https://git-lfs.github.com/spec/"):
        raise OSError(f"{file.name} is a Git LFS pointer, which git lfs pull replaces by the file")
    return content


def _sha256(content: bytes) -> str:
    """Computes the SHA-256 in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def _log_probs(folder: pathlib.Path, texts: list[str]) -> np.ndarray:
    """Computes log p of texts, or of translations behind their sources, by a folder's model."""
    if not texts:
        raise ValueError("there is nothing to score: give sentences, each in quotation marks.")
    if (folder / "source.npz").exists():
        return Translator(folder).log_prob(texts[::2], texts[1::2])
    model = Model(folder)
    outside = sorted({word for text in texts for word in model.outside(text)})
    if outside and model.unknown is not None:  # else `log_prob` refuses them
        print(f"read as {model.unknown}: {' '.join(outside)}", file=sys.stderr)
    return model.log_prob(texts)


if __name__ == "__main__":
    try:
        for value in _log_probs(pathlib.Path(__file__).resolve().parent, sys.argv[1:]).tolist():
            print(value)
    except ValueError as problem:
        print(f"error: {problem}", file=sys.stderr)
        sys.exit(2)
