"""States of language models shared by many hypotheses, in one array a model on the device."""

import functools
from collections.abc import Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from zoo.evaluation import sentence_scores

# Number of states in the array at first.
ROOM = 1024
# The slot of the state before any word, and the slot for padding.
BEFORE, FILLING = 0, 1
# The slot of a state, and the ids of the word after it under each model.
Pair = tuple[int, tuple[int, ...]]


class ModelStates:
    """States after words, each computed once, of one model or of several side by side.

    A word is the tuple of its ids, one for each model. Batches have two shapes and the arrays grow
    fourfold, so that few programs are compiled for any search. Free slots are used again, so that
    memory is bounded by the states held at once.
    """

    def __init__(self, runs: Sequence[Any]):
        """Allocates the states of runs."""
        self.models = [_Model(run) for run in runs]
        self.slots: dict[Pair, int] = {}
        self.free = [*range(ROOM - 1, FILLING, -1)]
        self.used: set[int] = set()

    def read(self, asked: Iterable[Pair]):
        """Computes the states after words, unless they are computed already."""
        new = [pair for pair in dict.fromkeys(asked) if pair not in self.slots]
        while len(self.free) < len(new):
            size = self.models[0].grow()
            for other in self.models[1:]:
                other.grow()
            self.free = [*range(4 * size - 1, size - 1, -1), *self.free]
        for some in sentence_scores.chunks(len(new)):
            pairs, size = new[some], some.stop - some.start
            slots = [self.free.pop() for _ in pairs]
            self.used.update(slots)
            self.slots.update(zip(pairs, slots, strict=True))
            rows = sentence_scores.filled(np.array([slot for slot, _ in pairs]), size)
            to = np.full(size, FILLING, np.int32)
            to[: len(slots)] = slots
            words = [word for _, word in pairs]
            for model, ids in zip(self.models, zip(*words, strict=True), strict=True):
                model.read(rows, sentence_scores.filled(np.array(ids), size), to)

    def keep(self, held: Iterable[int]):
        """Frees all states but the ones in some slots, and the state before any word."""
        stay = {BEFORE, *held}
        self.free += sorted(self.used - stay, reverse=True)
        self.used &= stay
        # A slot may hold another state later: entries that name it are removed.
        self.slots = {
            pair: slot for pair, slot in self.slots.items() if slot in stay and pair[0] in stay
        }

    def log_probs(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Computes log p of words after states under each model, float64 [models, n], nats."""
        rows = np.array([slot for slot, _ in pairs], np.int64)
        ids = np.array([word for _, word in pairs], np.int64).reshape(len(pairs), len(self.models))
        # All are dispatched before any result is awaited.
        asked = [[*model.log_probs(rows, ids[:, k])] for k, model in enumerate(self.models)]
        log_probs = np.zeros((len(self.models), len(pairs)))
        for of_model, parts in zip(log_probs, asked, strict=True):
            for some, values in parts:
                part = of_model[some]
                part[:] = np.asarray(values)[: len(part)]
        return log_probs


class _Model:
    """The array of states of one model."""

    def __init__(self, run):
        self.model = run.experiment.language_model
        self.given = run.params, run.tables, self.model.prepared(run.params, run.tables)
        self.step, self.log_prob = compiled(self.model)
        self.states = self._room(ROOM)

    def _room(self, rows):
        """Allocates states; all rows have the state before any word."""
        return sentence_scores.levels(self.model, *self.given, rows)[1]

    def grow(self):
        """Makes the array four times as large, and returns its size before."""
        size = len(jax.tree.leaves(self.states)[0])
        more = self._room(3 * size)
        self.states = jax.tree.map(lambda *x: jnp.concatenate(x), self.states, more)
        return size

    def read(self, rows, ids, to):
        """Computes the states after words, and writes them into other rows."""
        self.states = self.step(*self.given, self.states, rows, ids, to)

    def log_probs(self, rows, ids):
        """Yields (slice, log p on the device) of words after the states of rows, batch by batch."""
        for some in sentence_scores.chunks(len(ids)):
            given = (sentence_scores.filled(x[some], some.stop - some.start) for x in (rows, ids))
            yield some, self.log_prob(*self.given, sentence_scores.outputs(self.states), *given)


@functools.cache
def compiled(model):
    """Returns two compiled functions: one writes the states after words into rows, one computes log
    p of words after states."""

    def step(params, tables, prepared, states, rows, words, slots):
        carry = jax.tree.map(lambda leaf: leaf[rows], states[2])
        new = sentence_scores.states_after(model, params, tables, prepared, words, carry)
        return jax.tree.map(lambda room, added: room.at[slots].set(added), states, new)

    return jax.jit(step, donate_argnames="states"), sentence_scores.compiled(model)[1]
