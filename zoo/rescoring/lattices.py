"""Lattices under a language model: paths that share their last words are one.

A path's score is, over its links,

    sum (acoustic_scale * a + language_scale * l + word_penalty) + weight * log p(words </s>).

Hypotheses are passed along the lattice from node to node. At a node those with the same last n
words are merged, the best ones stay, and the state of the best stands for all; with n unbounded
only those of equal words are, and the result is exact (Sundermeyer et al. 2014, section III).
"""

import collections
import dataclasses
import functools
import heapq
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from zoo.data import Corpus
from zoo.errors import UserError
from zoo.evaluation import tree_scores
from zoo.evaluation.perplexity import PRECISION
from zoo.evaluation.run import Run
from zoo.sources.lattices import Lattice

# States that there is room for at first, and rows computed together.
ROOM, BLOCK = 1024, 64


class Path(NamedTuple):
    """A path through a lattice.

    Attributes:
      score: the recogniser's and the model's parts together, larger is better.
      words: those of its links.
      first: the recogniser's part of the score, scaled.
      log_prob: of the words and the boundary under the model, nats.
    """

    score: float
    words: tuple[str, ...]
    first: float
    log_prob: float


@dataclasses.dataclass(frozen=True)
class LatticeSearch:
    """How paths are searched for.

    Attributes:
      weight: of the model's log-probability.
      language_weight: of the recogniser's language scores, beside the header's scale.
      word_penalty: added for each word, beside the header's.
      history: n, how many last words hypotheses of a node share to be merged; None: all.
      beam: hypotheses of a node that are so much below its best, in score, are let go.
      nbest: how many paths the search returns, of different words.

    Raises:
      UserError: a number is out of range.
    """

    weight: float = 1.0
    language_weight: float = 1.0
    word_penalty: float = 0.0
    history: int | None = None
    beam: float = math.inf
    nbest: int = 1

    def __post_init__(self):
        if self.history is not None and self.history < 1:
            raise UserError(f"history is {self.history}: give 1 or more, or None for all words.")
        if not self.beam > 0 or self.nbest < 1:
            raise UserError(f"beam {self.beam} and nbest {self.nbest}: give more than 0 of each.")

    def search(self, run: Run, lattice: Lattice) -> list[Path]:
        """The best paths of a lattice, of different words, the best first.

        Args:
          run: of a language model whose words are words.
        """
        with jax.default_matmul_precision(PRECISION):
            return _Search(self, run, lattice).paths()


class _Hypothesis(NamedTuple):
    """A path from the start of a lattice to one of its nodes.

    Attributes:
      score: see `Path`.
      words: their numbers in the lattice.
      first: see `Path`.
      log_prob: see `Path`.
      state: the slot of the state before the last word, and that word's id.
    """

    score: float
    words: tuple[int, ...]
    first: float
    log_prob: float
    state: tuple[int, int]


class _Search:
    """A search in one lattice."""

    def __init__(self, settings, run, lattice):
        self.settings, self.lattice = settings, lattice
        self.words = lattice.words
        if run.lexicon.boundary_id is None:
            raise UserError("a path begins and ends with the boundary, and this run has none.")
        text = run.experiment.vocabulary.encode(
            Corpus(lattice.id, [[word] for word in self.words] or [[]]), run.lexicon
        )
        within = np.zeros(len(text.words)) if text.strings is None else text.strings.log_within
        starts = text.starts[: len(self.words)]
        # The boundary is the last of the words.
        self.ids = np.append(text.words[starts], run.lexicon.boundary_id).astype(np.int32)
        self.within = np.append(within[starts], 0.0)
        self.states = _States(run)
        self.numbers = {word: number for number, word in enumerate(self.words)}

    def paths(self) -> list[Path]:
        """The best paths, the best first."""
        links = collections.defaultdict(list)
        for link in self.lattice.links:
            links[link.start].append(link)
        arrived: dict[int, list[_Hypothesis]] = collections.defaultdict(list)
        arrived[0] = [_Hypothesis(0.0, (), 0.0, 0.0, (0, int(self.ids[-1])))]
        for nodes in self._levels():
            kept = {node: self._merged(arrived.pop(node)) for node in nodes}
            self.states.read([one.state for some in kept.values() for one in some])
            asked = [
                (one, link)
                for node, some in kept.items()
                for link in (links[node] or [None])
                for one in some
            ]
            for (one, link), number, log_prob in zip(asked, *self._next(asked), strict=True):
                node = self.lattice.nodes if link is None else link.end
                arrived[node].append(self._longer(one, link, number, log_prob))
        by_words: dict[tuple[int, ...], _Hypothesis] = {}
        for one in sorted(arrived[self.lattice.nodes], key=lambda one: -one.score):
            by_words.setdefault(one.words, one)
        return [
            Path(one.score, tuple(self.words[n] for n in one.words), one.first, one.log_prob)
            for one in [*by_words.values()][: self.settings.nbest]
        ]

    def _levels(self):
        """Lists of nodes that are computed together: no path joins two of a list, and no link goes
        back to an earlier list."""
        depth = [0] * self.lattice.nodes
        for link in self.lattice.links:
            depth[link.end] = max(depth[link.end], depth[link.start] + 1)
        levels = collections.defaultdict(list)
        for node, number in enumerate(depth):
            levels[number].append(node)
        return [levels[number] for number in sorted(levels)]

    def _merged(self, hypotheses):
        """The best hypotheses of each history, of those within the beam."""
        best = max(one.score for one in hypotheses)
        by_history: dict[tuple[int, ...], dict] = collections.defaultdict(dict)
        last = self.settings.history
        for one in hypotheses:
            some = by_history[one.words if last is None else one.words[-last:]]
            same = some.get(one.words)
            if one.score >= best - self.settings.beam and (same is None or one.score > same.score):
                some[one.words] = one
        kept = []
        for some in by_history.values():
            chosen = heapq.nlargest(self.settings.nbest, some.values(), key=lambda one: one.score)
            kept += [one._replace(state=chosen[0].state) for one in chosen]
        return kept

    def _next(self, asked):
        """(the number of the word of each link, -1 of none; log p of it after the hypothesis)."""
        end = len(self.words)
        numbers = [end if link is None else self.numbers.get(link.word, -1) for _, link in asked]
        slots = [self.states.slots[one.state] for one, _ in asked]
        pairs = [*dict.fromkeys(pair for pair in zip(slots, numbers, strict=True) if pair[1] >= 0)]
        chosen = np.array([number for _, number in pairs], np.int64)
        values = self.states.log_probs([slot for slot, _ in pairs], self.ids[chosen])
        log_probs_of = dict(zip(pairs, (values + self.within[chosen]).tolist(), strict=True))
        return numbers, [log_probs_of.get(pair, 0.0) for pair in zip(slots, numbers, strict=True)]

    def _longer(self, one, link, number, log_prob):
        """A hypothesis after a link, or after the end of the sentence."""
        settings, lattice = self.settings, self.lattice
        score, log_prob = one.score + settings.weight * log_prob, one.log_prob + log_prob
        if link is None:
            return one._replace(score=score, log_prob=log_prob)
        part = lattice.acoustic_scale * link.acoustic
        part += settings.language_weight * lattice.language_scale * link.language
        words, state = one.words, one.state
        if number >= 0:
            part += lattice.word_penalty + settings.word_penalty
            words, state = (*words, number), (self.states.slots[state], int(self.ids[number]))
        return _Hypothesis(score + part, words, one.first + part, log_prob, state)


class _States:
    """The states after words, in an array that grows fourfold where there is no room.

    Attributes:
      slots: {(the slot of the state before a word, the word's id): the slot of the state after it}.
        Slot 0 is the state before any word.
    """

    def __init__(self, run):
        self.model, self.params, self.tables = (
            run.experiment.language_model,
            run.params,
            run.tables,
        )
        self.prepared = self.model.prepared(self.params, self.tables)
        self.step, self.log_prob = _compiled(self.model), tree_scores.compiled(self.model)[1]
        self.slots: dict[tuple[int, int], int] = {}
        self.used, self.states = 1, self._room(ROOM)

    def _room(self, rows) -> Any:
        """Room for states; the first row has those before any word."""
        _, room = tree_scores.levels(self.model, self.params, self.tables, rows)
        return room

    def read(self, states):
        """Computes the states that are not there yet, in blocks."""
        new = [state for state in dict.fromkeys(states) if state not in self.slots]
        for begin in range(0, len(new), BLOCK):
            some = new[begin : begin + BLOCK]
            size = len(jax.tree.leaves(self.states)[0])
            if self.used + BLOCK > size:
                more = self._room(3 * size)
                self.states = jax.tree.map(lambda *x: jnp.concatenate(x), self.states, more)
            rows, words = np.zeros((2, BLOCK), np.int32)
            for number, state in enumerate(some):
                rows[number], words[number] = state
                self.slots[state] = self.used + number
            start = np.int32(self.used)
            self.states = self.step(self.params, self.tables, self.states, rows, words, start)
            self.used += len(some)

    def log_probs(self, slots, ids):
        """log p of a word after each state, float64 [n], nats."""
        computed = np.zeros(len(ids))
        for begin in range(0, len(ids), BLOCK):
            some = slice(begin, begin + BLOCK)
            count = len(ids[some])
            rows, words = (
                np.pad(values[some], (0, BLOCK - count)).astype(np.int32) for values in (slots, ids)
            )
            values = self.log_prob(
                self.params, self.tables, self.prepared, *self.states[:2], rows, words
            )
            computed[some] = np.asarray(values)[:count]
        return computed


@functools.cache
def _compiled(model):
    """(params, tables, states [room], rows, words, start) -> states, with the new ones behind."""

    def step(params, tables, states, rows, words, start):
        carry = jax.tree.map(lambda leaf: leaf[rows], states[2])
        new = tree_scores.states_after(model, params, tables, words, carry)
        return jax.tree.map(
            lambda room, added: jax.lax.dynamic_update_slice_in_dim(room, added, start, 0),
            states,
            new,
        )

    return jax.jit(step, donate_argnums=2)
