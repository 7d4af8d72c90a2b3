"""States of a step function that a decoder of one's own keeps, forks and batches.

Rows are held in arrays of 1, 2, 4, 8 ... slots, so that a decoder whose beam grows and shrinks has
a program compiled for each of a few sizes, and not for each number of rows.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def _taken(carry, rows):
    return jax.tree.map(lambda leaf: leaf[rows], carry)


@jax.jit
def _stepped(step, words, carry):
    return step(words, carry)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, eq=False)
class States:
    """The states of some rows, each that of a prefix. They do not change: keep them as you like.

    `states[2]`, `states[[0, 0, 1]]` and `states[1:]` are new ones of these rows: so they are
    selected, reordered and forked. `len(states)` is how many rows there are.

    Attributes:
      carry: every leaf [slots, ...], of at least `size` slots.
      size: rows.
    """

    carry: Any
    size: int = dataclasses.field(metadata={"static": True})

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, rows) -> "States":
        """The rows at these numbers: an int, a slice, or a sequence of ints.

        Raises:
          IndexError: there is no such row, or none is asked for.
        """
        chosen = np.atleast_1d(np.arange(self.size)[_index(rows)])
        if chosen.ndim != 1 or not len(chosen):
            raise IndexError(f"{rows!r} chooses no rows of {self.size} states: give some of them")
        return States(_taken(self.carry, _padded(chosen)), len(chosen))

    @classmethod
    def of_carry(cls, carry: Any) -> "States":
        """The states whose carry has leaves [rows, ...]."""
        rows = len(jax.tree.leaves(carry)[0])
        return cls(_taken(carry, _padded(np.arange(rows))), rows)

    @classmethod
    def batched(cls, states: Sequence["States"]) -> "States":
        """The rows of all of these, one after the other.

        Raises:
          ValueError: there are none.
        """
        if not states:
            raise ValueError("states to be batched are at least one")
        if len(states) == 1:
            return states[0]
        carries = [one.carry for one in states]
        slots = [len(jax.tree.leaves(carry)[0]) for carry in carries]
        # As many as a power of two, the last again and again: few shapes are compiled.
        carries += carries[-1:] * (_slots(len(states)) - len(states))
        joined = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *carries)
        first = np.cumsum([0, *slots[:-1]])
        rows = [
            start + np.arange(one.size) for start, one in zip(first.tolist(), states, strict=True)
        ]
        chosen = np.concatenate(rows)
        return cls(_taken(joined, _padded(chosen)), len(chosen))

    def stepped(self, step: jax.tree_util.Partial, words: np.ndarray) -> tuple[Any, "States"]:
        """Reads a word in each row.

        Args:
          step: see `zoo.decoding.steps`.
          words: int32 [rows].

        Returns:
          (log-probabilities of the word after it [rows, V], nats; the states after it).
        """
        filled = np.zeros(len(jax.tree.leaves(self.carry)[0]), np.int32)
        filled[: self.size] = words
        log_probs, carry = _stepped(step, filled, self.carry)
        return log_probs[: self.size], States(carry, self.size)


def _index(rows):
    return rows if isinstance(rows, int | slice | np.integer) else np.asarray(rows)


def _slots(rows):
    """The least power of two that is not below."""
    return 1 << (rows - 1).bit_length()


def _padded(chosen):
    """Row numbers in a power of two of slots, the last again and again."""
    return np.append(chosen, np.repeat(chosen[-1:], _slots(len(chosen)) - len(chosen)))
