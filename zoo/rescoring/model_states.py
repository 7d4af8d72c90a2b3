"""States of a language model that many hypotheses share, in one array on the device."""

import functools
from collections.abc import Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from zoo.evaluation import tree_scores

# States that there is room for at first.
ROOM = 1024
# The slot of the state before any word, and that where filling is written.
BEFORE, FILLING = 0, 1


class ModelStates:
    """States after words, each computed once.

    Blocks have two shapes and the array grows fourfold, so that few programs are compiled, whatever
    is searched. Slots that nobody holds are used again: memory is that of the states held.

    Attributes:
      slots: {(the slot of the state before a word, the word's id): the slot of the state after it}.
    """

    def __init__(self, run: Any):
        """Room for the states of a run."""
        self.model, self.params = run.experiment.language_model, run.params
        self.tables = run.tables
        self.prepared = self.model.prepared(self.params, self.tables)
        self.step, self.log_prob = compiled(self.model)
        self.slots: dict[tuple[int, int], int] = {}
        self.states = self._room(ROOM)
        self.free = [*range(ROOM - 1, FILLING, -1)]
        self.used: set[int] = set()

    def _room(self, rows):
        """Room for states; all rows have those before any word."""
        given = self.params, self.tables, self.prepared
        return tree_scores.levels(self.model, *given, rows)[1]

    def read(self, asked: Iterable[tuple[int, int]]):
        """Computes the states after words that are not there yet.

        Args:
          asked: (the slot of the state before a word, the word's id) of each.
        """
        new = [pair for pair in dict.fromkeys(asked) if pair not in self.slots]
        while len(self.free) < len(new):
            size = len(jax.tree.leaves(self.states)[0])
            more = self._room(3 * size)
            self.states = jax.tree.map(lambda *x: jnp.concatenate(x), self.states, more)
            self.free = [*range(4 * size - 1, size - 1, -1), *self.free]
        for some in tree_scores.chunks(len(new)):
            pairs, size = new[some], some.stop - some.start
            slots = [self.free.pop() for _ in pairs]
            self.used.update(slots)
            self.slots.update(zip(pairs, slots, strict=True))
            rows, words = (tree_scores.filled(np.array(x), size) for x in zip(*pairs, strict=True))
            to = np.full(size, FILLING, np.int32)
            to[: len(slots)] = slots
            given = self.params, self.tables, self.prepared
            self.states = self.step(*given, self.states, rows, words, to)

    def keep(self, held: Iterable[int]):
        """Lets go of all states but those in some slots, and the one before any word."""
        stay = {BEFORE, *held}
        self.free += sorted(self.used - stay, reverse=True)
        self.used &= stay
        # A slot may come to hold another state: what is known by it goes with it.
        self.slots = {
            pair: slot for pair, slot in self.slots.items() if slot in stay and pair[0] in stay
        }

    def log_probs(self, slots: Sequence[int], ids: np.ndarray) -> np.ndarray:
        """log p of a word after each state, float64 [n], nats.

        Args:
          slots: of the states, n.
          ids: of the words, int [n].
        """
        log_probs = np.zeros(len(ids))
        rows = np.array(slots, np.int64)
        asked = []
        for some in tree_scores.chunks(len(ids)):
            given = (tree_scores.filled(x[some], some.stop - some.start) for x in (rows, ids))
            states = tree_scores.outputs(self.states)
            asked.append(
                (some, self.log_prob(self.params, self.tables, self.prepared, states, *given))
            )
        for some, values in asked:
            part = log_probs[some]
            part[:] = np.asarray(values)[: len(part)]
        return log_probs


@functools.cache
def compiled(model):
    """(states with new ones in some rows, log p of words after states)."""

    def step(params, tables, prepared, states, rows, words, slots):
        carry = jax.tree.map(lambda leaf: leaf[rows], states[2])
        new = tree_scores.states_after(model, params, tables, prepared, words, carry)
        return jax.tree.map(lambda room, added: room.at[slots].set(added), states, new)

    return jax.jit(step, donate_argnames="states"), tree_scores.compiled(model)[1]
