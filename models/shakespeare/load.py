"""Loads the model of this folder with jax, numpy and safetensors, and nothing else.

    python load.py "a sentence" "another one"

prints the log-probability of each, in nats. From Python:

    model = Model(FOLDER)
    model.log_prob([["a", "sentence"]])  # float64 [sentences], each with the boundary after it
    log_probs, carry = model.step(ids, model.initial_carry(rows))  # [rows, V], of the next word

Of a folder with an encoder-decoder, whose arguments are a source, its translation and so on:

    model = Translator(FOLDER)
    model.log_prob([["une", "phrase"]], [["a", "sentence"]])  # float64 [pairs]
    carry, constant = model.encode(*model.read_sources([["une", "phrase"]]))
    log_probs, carry = model.step(ids, carry, constant)  # [rows, V], of the next word

The programs run on the platforms that export.json names. What a text is made of, and how its words
were read in training, says README.md; this file takes words as they are.
"""

import json
import pathlib
import sys
from collections.abc import Sequence

import jax
import numpy as np
import safetensors.numpy
from jax import export

Sentences = Sequence[Sequence[str]]


class Words:
    """The words of a language.

    Attributes:
      words: the word of each id.
      boundary: the word that begins and ends sentences, or None.
      unknown: the word that stands for all others, or None.
    """

    def __init__(self, file):
        """Reads the file of a lexicon."""
        with np.load(file) as lexicon:
            self.words, (self.unknown, self.boundary) = (
                json.loads(lexicon[name].tobytes().decode()) for name in ("words", "marks")
            )
        self._ids = {word: number for number, word in enumerate(self.words)}

    def ids(self, words: Sequence[str]) -> list[int]:
        """The ids of words; KeyError for one that the model has no way to read."""
        return [
            self._ids[word if word in self._ids or self.unknown is None else self.unknown]
            for word in words
        ]


class Exported(Words):
    """What all exported models are: programs, arrays, and the words that they predict."""

    def __init__(self, folder):
        """Reads programs, parameters and words of a folder."""
        folder = pathlib.Path(folder)
        super().__init__(folder / "lexicon.npz")
        self.record = json.loads((folder / "export.json").read_text(encoding="utf-8"))
        params = safetensors.numpy.load_file(folder / "params.safetensors")
        others = safetensors.numpy.load_file(folder / "tables.safetensors")
        carry = [others.pop(f"carry/{number}") for number in range(self.record["carry"])]
        arrays = {f"params/{name}": array for name, array in params.items()} | others
        self._arrays, self._carry = jax.device_put((arrays, tuple(carry)))
        self._programs = {
            name: jax.jit(export.deserialize((folder / file).read_bytes()).call)
            for name, file in self.record["programs"].items()
        }


class Model(Exported):
    """A language model."""

    def initial_carry(self, rows: int) -> tuple:
        """The carry of so many rows before any word; step with the boundary first."""
        return tuple(leaf.repeat(rows, axis=0) for leaf in self._carry)

    def step(self, words, carry):
        """(log p of every word after these, [rows, V], nats; the carry after them).

        Args:
          words: int32 [rows].
          carry: before these words.
        """
        return self._programs["step"](self._arrays, np.asarray(words, np.int32), carry)

    def score(self, words, targets, reset, carry):
        """(log p(targets), log Z, carry), nats, exact.

        Args:
          words: int32 [rows, length], the word before each position.
          targets: int32 [rows, length], the word at it.
          reset: bool [rows, length], where the carry is emptied before the position.
          carry: before these words.
        """
        words, targets = np.asarray(words, np.int32), np.asarray(targets, np.int32)
        return self._programs["score"](self._arrays, words, targets, np.asarray(reset), carry)

    def log_prob(self, sentences: Sequence[Sequence[str]]) -> np.ndarray:
        """log p of each sentence and the boundaries after it, from an empty carry, nats.

        Without a boundary the first word is given and not predicted.
        """
        marks = [] if self.boundary is None else [self._ids[self.boundary]]
        ends = marks * self.record["boundary_marks"]
        rows = [marks + self.ids(words) + ends for words in sentences]
        longest = max(map(len, rows))
        padded = np.array([row + [0] * (longest - len(row)) for row in rows], np.int32)
        words, targets = padded[:, :-1], padded[:, 1:]
        there = np.arange(longest - 1) < np.array([len(row) - 1 for row in rows])[:, None]
        reset, carry = np.zeros(words.shape, bool), self.initial_carry(len(rows))
        log_prob, _, _ = self.score(words, targets, reset, carry)
        return np.where(there, np.asarray(log_prob, np.float64), 0).sum(axis=1)


class Translator(Exported):
    """An encoder-decoder.

    Attributes:
      source: the words of the sources.
    """

    def __init__(self, folder):
        """Reads programs, parameters and the words of both sides of a folder."""
        super().__init__(folder)
        self.source = Words(pathlib.Path(folder) / "source.npz")

    def read_sources(self, sentences: Sentences) -> tuple[np.ndarray, np.ndarray]:
        """(words int32 [rows, S], in the order of the encoder, padded on the left; their numbers
        int32 [rows])."""
        order = -1 if self.record["order"] == "source_reversed" else 1
        rows = [self.source.ids(words)[::order] for words in sentences]
        longest = max(1, *map(len, rows))
        padded = [[0] * (longest - len(row)) + row for row in rows]
        return np.array(padded, np.int32), np.array([max(1, len(row)) for row in rows], np.int32)

    def encode(self, source, lengths) -> tuple[tuple, tuple]:
        """(the carry before the first word; what all steps of these rows take besides), leaves
        [rows, ...] that may be repeated and reordered together; step with the boundary first."""
        return self._programs["encode"](self._arrays, source, lengths)

    def step(self, words, carry, constant):
        """(log p of every word after these, [rows, V], nats; the carry after them).

        Words come in the order of the decoder: with "target_reversed" the last one first.

        Args:
          words: int32 [rows].
          carry: before these words.
          constant: of `encode`.
        """
        return self._programs["step"](self._arrays, np.asarray(words, np.int32), carry, constant)

    def log_prob(self, sources: Sentences, translations: Sentences) -> np.ndarray:
        """log p of each translation and the boundaries after it, given its source, nats."""
        mark = [self._ids[self.boundary]]
        order = -1 if self.record["order"] == "target_reversed" else 1
        ends = mark * self.record["boundary_marks"]
        rows = [mark + self.ids(words)[::order] + ends for words in translations]
        longest = max(map(len, rows))
        padded = np.array([row + [0] * (longest - len(row)) for row in rows], np.int32)
        words, targets = padded[:, :-1], padded[:, 1:]
        there = np.arange(longest - 1) < np.array([len(row) - 1 for row in rows])[:, None]
        given = (*self.read_sources(sources), words, targets)
        log_prob, _ = self._programs["score"](self._arrays, *given)
        return np.where(there, np.asarray(log_prob, np.float64), 0).sum(axis=1)


if __name__ == "__main__":
    here, texts = pathlib.Path(__file__).resolve().parent, sys.argv[1:]
    if (here / "source.npz").exists():
        pairs = Translator(here)
        sides = [[text.split() for text in texts[side::2]] for side in (0, 1)]
        values = pairs.log_prob(*sides)
    else:
        model = Model(here)
        # Where words are characters, blanks are among them.
        split = list if any(not word.strip() for word in model.words) else str.split
        values = model.log_prob([split(text) for text in texts])
    for value in values.tolist():
        print(value)
