"""States of a step function for a decoder of one's own: kept, forked and batched.

Rows are held in arrays of 1, 2, 4, 8 ... slots, so that a decoder whose beam grows and shrinks
needs a compiled program for each of a few sizes, and not for each number of rows.
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
@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class States:
    """The states of some rows, each the state after a prefix. They are immutable.

    `states[2]`, `states[[0, 0, 1]]` and `states[1:]` are new states of these rows: so they are
    selected, reordered and forked. `len(states)` is the number of rows.
    """

    carry: Any  # every leaf [slots, ...], of at least `size` slots
    size: int = dataclasses.field(metadata={"static": True})

    def __repr__(self):
        return f"States({self.size:,} rows)"

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, rows) -> "States":
        """Selects the rows at these numbers: an int, a slice, or a sequence of ints."""
        chosen = np.atleast_1d(np.arange(self.size)[_index(rows)])
        if chosen.ndim != 1 or not len(chosen):
            raise IndexError(f"{rows!r} chooses no rows of {self.size} states: give some of them")
        return States(_taken(self.carry, _padded(chosen)), len(chosen))

    @classmethod
    def of_carry(cls, carry: Any) -> "States":
        """Makes states from a carry with leaves [rows, ...]."""
        rows = len(jax.tree.leaves(carry)[0])
        return cls(_taken(carry, _padded(np.arange(rows))), rows)

    @classmethod
    def batched(cls, states: Sequence["States"]) -> "States":
        """Concatenates the rows of several states."""
        if not states:
            raise ValueError("the list of states to batch is empty: give at least one")
        if len(states) == 1:
            return states[0]
        carries = [one.carry for one in states]
        slots = [len(jax.tree.leaves(carry)[0]) for carry in carries]
        # Padded to a power of two with copies of the last, so that few shapes are compiled.
        carries += carries[-1:] * (_slots(len(states)) - len(states))
        joined = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *carries)
        first = np.cumsum([0, *slots[:-1]])
        rows = [
            start + np.arange(one.size) for start, one in zip(first.tolist(), states, strict=True)
        ]
        chosen = np.concatenate(rows)
        return cls(_taken(joined, _padded(chosen)), len(chosen))

    def stepped(self, step: jax.tree_util.Partial, words: np.ndarray) -> tuple[Any, "States"]:
        """Reads a word in each row."""
        filled = np.zeros(len(jax.tree.leaves(self.carry)[0]), np.int32)
        filled[: self.size] = words
        log_probs, carry = _stepped(step, filled, self.carry)
        return log_probs[: self.size], States(carry, self.size)


def _index(rows):
    return rows if isinstance(rows, int | slice | np.integer) else np.asarray(rows)


def _slots(rows):
    """Returns the least power of two that is at least the number of rows."""
    return 1 << (rows - 1).bit_length()


def _padded(chosen):
    """Pads row numbers to a power of two of slots with copies of the last."""
    return np.append(chosen, np.repeat(chosen[-1:], _slots(len(chosen)) - len(chosen)))
