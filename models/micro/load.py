"""Loads the model of this folder with jax, numpy and safetensors, and nothing else.

    python load.py "a sentence" "another one"

prints the log-probability of each, in nats. From Python:

    model = Model(FOLDER)
    model.log_prob([["a", "sentence"]])  # float64 [sentences], each with the boundary after it
    log_probs, carry = model.step(ids, model.initial_carry(rows))  # [rows, V], of the next word

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


class Model:
    """A language model.

    Attributes:
      words: the word of each id.
      boundary: the word that begins and ends sentences, or None.
      unknown: the word that stands for all others, or None.
    """

    def __init__(self, folder):
        """Reads programs, parameters and words of a folder."""
        folder = pathlib.Path(folder)
        self.record = json.loads((folder / "export.json").read_text(encoding="utf-8"))
        with np.load(folder / "lexicon.npz") as lexicon:
            self.words, (self.unknown, self.boundary) = (
                json.loads(lexicon[name].tobytes().decode()) for name in ("words", "marks")
            )
        self._ids = {word: number for number, word in enumerate(self.words)}
        params = safetensors.numpy.load_file(folder / "params.safetensors")
        others = safetensors.numpy.load_file(folder / "tables.safetensors")
        carry = [others.pop(f"carry/{number}") for number in range(self.record["carry"])]
        arrays = {f"params/{name}": array for name, array in params.items()} | others
        self._arrays, self._carry = jax.device_put((arrays, tuple(carry)))
        self._programs = {
            name: jax.jit(export.deserialize((folder / file).read_bytes()).call)
            for name, file in self.record["programs"].items()
        }

    def ids(self, words: Sequence[str]) -> list[int]:
        """The ids of words; KeyError for one that the model has no way to read."""
        return [
            self._ids[word if word in self._ids or self.unknown is None else self.unknown]
            for word in words
        ]

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


if __name__ == "__main__":
    model = Model(pathlib.Path(__file__).resolve().parent)
    # Where words are characters, blanks are among them.
    split = list if any(not word.strip() for word in model.words) else str.split
    for value in model.log_prob([split(text) for text in sys.argv[1:]]).tolist():
        print(value)
