"""Lattices under a language model: paths that share their last words are one.

A path's score is, over its links,

    sum (acoustic_scale * a + language_scale * l + word_penalty) + weight * log p(words </s>).

Hypotheses are passed along the lattice from node to node. At a node those with the same last n
words are merged, the best ones stay, and the state of the best stands for all; with n unbounded
only those of equal words are, and the result is exact (Sundermeyer et al. 2014, section III).
Nodes that no path joins, of several lattices, are computed together.
"""

import collections
import dataclasses
import heapq
import itertools
import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import jax
import numpy as np

from zoo.data import Corpus
from zoo.errors import UserError
from zoo.evaluation.perplexity import PRECISION
from zoo.evaluation.run import Run
from zoo.rescoring import model_states
from zoo.sources.lattices import Lattice, lattice_of

# Hypotheses of a node, and lattices side by side, by default.
MOST, TOGETHER = 1000, 16


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


class Searched(NamedTuple):
    """The result of a search in a lattice.

    Attributes:
      id: of the lattice.
      paths: the best, of different words, the best first.
      dropped: how many hypotheses were let go because a node had too many; 0 where nothing but
        history and beams bounds the search.
      lattice: the lattice with new scores, if it was asked for: see `LatticeSearch.search_all`.
    """

    id: str
    paths: list[Path]
    dropped: int
    lattice: Lattice | None


@dataclasses.dataclass(frozen=True)
class LatticeSearch:
    """How paths are searched for.

    Attributes:
      weight: of the model's log-probability.
      language_weight: of the recogniser's language scores, beside the header's scale.
      word_penalty: added for each word, beside the header's.
      history: n, how many last words hypotheses of a node share to be merged; None: all.
      beam: hypotheses of a node that are so much below its best, in score, are let go.
      look_ahead: of all nodes that are computed together, hypotheses are let go whose score with
        the recogniser's best way to the end is so much below the best such sum.
      most: hypotheses of a node, the best ones; None for no limit, which takes a time and memory
        that grow with the number of paths where `history` is None.
      nbest: how many paths the search returns, of different words.

    Raises:
      UserError: a number is out of range.
    """

    weight: float = 1.0
    language_weight: float = 1.0
    word_penalty: float = 0.0
    history: int | None = None
    beam: float = math.inf
    look_ahead: float = math.inf
    most: int | None = MOST
    nbest: int = 1

    def __post_init__(self):
        if self.history is not None and self.history < 1:
            raise UserError(f"history is {self.history}: give 1 or more, or None for all words.")
        if not self.beam > 0 or self.nbest < 1:
            raise UserError(f"beam {self.beam} and nbest {self.nbest}: give more than 0 of each.")
        if not self.look_ahead > 0 or (self.most is not None and self.most < 1):
            raise UserError(
                f"look-ahead {self.look_ahead} and most {self.most}: give more than 0 of each."
            )
        for name in ("weight", "language_weight", "word_penalty"):
            if not math.isfinite(getattr(self, name)):
                raise UserError(f"{name} is {getattr(self, name)}: give a finite number.")

    def search(self, run: Run, lattice: Lattice) -> list[Path]:
        """The best paths of a lattice, of different words, the best first.

        Args:
          run: of a language model whose words are words.
        """
        (searched,) = self.search_all(run, [lattice])
        return searched.paths

    def search_all(
        self,
        run: Run,
        lattices: Iterable[Lattice],
        together: int = TOGETHER,
        expand: bool = False,
    ) -> Iterator[Searched]:
        """Searches several lattices, and gives their results in their order.

        Args:
          run: of a language model whose words are words.
          lattices: are taken as they are needed.
          together: how many are searched side by side.
          expand: whether each is given back with new scores: a node for each node and history that
            the search kept, and on each link the language score

                language_weight * language_scale * l + weight * log p(word | history),

            whose scale is 1, so that a path's score is the search's. log p(</s> | history) is on
            links without a word to a last node.
        """
        waiting = iter(lattices)
        states = None
        while some := [*itertools.islice(waiting, together)]:
            states = states or model_states.ModelStates(run)
            with jax.default_matmul_precision(PRECISION):
                fronts = [_Front(self, run, lattice, expand) for lattice in some]
                for level in range(max(len(front.levels) for front in fronts)):
                    _pass_on([f for f in fronts if level < len(f.levels)], level, states)
                    states.keep(slot for front in fronts for slot in front.slots(states))
            yield from (front.result() for front in fronts)


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


def _pass_on(fronts, level, states):
    """Passes the hypotheses of a level of each lattice on along the links behind its nodes."""
    for front in fronts:
        front.merge(level)
    states.read(one.state for front in fronts for some in front.kept.values() for one in some)
    asked = [front.asked(states) for front in fronts]
    pairs = [*dict.fromkeys(pair for some in asked for _, _, _, pair in some if pair is not None)]
    values = states.log_probs([slot for slot, _ in pairs], np.array([i for _, i in pairs], int))
    log_probs = dict(zip(pairs, values.tolist(), strict=True))
    for front, some in zip(fronts, asked, strict=True):
        front.extend(some, log_probs)


class _Front:
    """The hypotheses of one lattice that wait at its nodes.

    Attributes:
      levels: lists of nodes that are computed together; see `_levels`.
      kept: {node: its hypotheses that are passed on}, of the level that is computed.
    """

    def __init__(self, settings, run, lattice, expand):
        self.settings, self.lattice, self.words = settings, lattice, lattice.words
        if run.lexicon.boundary_id is None:
            raise UserError("a path begins and ends with the boundary, and this run has none.")
        text = run.experiment.vocabulary.encode(
            Corpus(lattice.id, [[word] for word in self.words] or [[]]), run.lexicon
        )
        within = np.zeros(len(text.words)) if text.strings is None else text.strings.log_within
        starts = text.starts[: len(self.words)]
        # The boundary is the last of the words.
        self.ids = [*map(int, text.words[starts]), run.lexicon.boundary_id]
        self.within = [*map(float, within[starts]), 0.0]
        self.numbers = {word: number for number, word in enumerate(self.words)}
        self.links = collections.defaultdict(list)
        for link in lattice.links:
            self.links[link.start].append(link)
        self.levels, self.ahead = _levels(lattice), self._completions()
        self.arrived: dict[int, list[_Hypothesis]] = collections.defaultdict(list)
        before = (model_states.BEFORE, self.ids[-1])
        self.arrived[0] = [_Hypothesis(0.0, (), 0.0, 0.0, before)]
        self.kept: dict[int, list[_Hypothesis]] = {}
        self.dropped = 0
        self.records: list | None = [] if expand else None

    def _part(self, link):
        """The recogniser's score of a link, scaled."""
        settings, lattice = self.settings, self.lattice
        part = lattice.acoustic_scale * link.acoustic + self._language(link)
        return part + (lattice.word_penalty + settings.word_penalty) * (link.word is not None)

    def _language(self, link):
        return self.settings.language_weight * self.lattice.language_scale * link.language

    def _completions(self):
        """The recogniser's best score from each node to the end."""
        ahead = [-math.inf] * (self.lattice.nodes - 1) + [0.0]
        for link in reversed(self.lattice.links):  # ordered by their starts
            ahead[link.start] = max(ahead[link.start], self._part(link) + ahead[link.end])
        return ahead

    def slots(self, states):
        """Of the states that waiting hypotheses go on from."""
        for some in self.arrived.values():
            for one in some:
                yield one.state[0]
                if one.state in states.slots:  # after a link without a word
                    yield states.slots[one.state]

    def merge(self, level):
        """Chooses the hypotheses of a level that are passed on."""
        arrived = {node: self.arrived.pop(node, []) for node in self.levels[level]}
        estimates = (one.score + self.ahead[n] for n, some in arrived.items() for one in some)
        least = max(estimates, default=0.0) - self.settings.look_ahead
        self.kept = {
            node: self._merged(node, [h for h in some if h.score + self.ahead[node] >= least])
            for node, some in arrived.items()
        }

    def _merged(self, node, hypotheses):
        """The best of each history, and of these the best of all and those within the beam."""
        best = max((one.score for one in hypotheses), default=0.0)
        by_history: dict[tuple[int, ...], dict] = collections.defaultdict(dict)
        for one in hypotheses:
            some = by_history[self._key(one.words)]
            same = some.get(one.words)
            if one.score >= best - self.settings.beam and (same is None or one.score > same.score):
                some[one.words] = one
        kept = []
        for some in by_history.values():
            chosen = heapq.nlargest(self.settings.nbest, some.values(), key=_score)
            kept += [one._replace(state=chosen[0].state) for one in chosen]
        most = self.settings.most
        if most is None or len(kept) <= most:
            return kept
        self.dropped += len(kept) - most
        return heapq.nlargest(most, kept, key=_score)

    def _key(self, words):
        """The history by which hypotheses are merged."""
        return words if self.settings.history is None else words[-self.settings.history :]

    def asked(self, states):
        """(hypothesis, link or None, the number of its word or -1, (slot of the state, id of the
        word) or None) of all that is passed on."""
        asked = []
        end = len(self.words)
        for node, some in self.kept.items():
            for link in self.links[node] or [None]:
                number = end if link is None else self.numbers.get(link.word, -1)
                for one in some:
                    pair = (states.slots[one.state], self.ids[number]) if number >= 0 else None
                    asked.append((one, link, number, pair))
        return asked

    def extend(self, asked, log_probs):
        """Passes hypotheses on along links, or over the end of the sentence."""
        for one, link, number, pair in asked:
            log_prob = 0.0 if pair is None else log_probs[pair] + self.within[number]
            if self.records is not None:
                self.records.append((one.words, link, number, log_prob))
            score = one.score + self.settings.weight * log_prob
            total = one.log_prob + log_prob
            if link is None:
                self.arrived[self.lattice.nodes].append(one._replace(score=score, log_prob=total))
                continue
            part = self._part(link)
            words, state = one.words, one.state
            if number >= 0:
                words, state = (*words, number), pair
            new = _Hypothesis(score + part, words, one.first + part, total, state)
            self.arrived[link.end].append(new)

    def result(self) -> Searched:
        """The best paths, and the lattice with new scores.

        Raises:
          UserError: no path has a finite score.
        """
        best: dict[tuple[int, ...], _Hypothesis] = {}
        for one in sorted(self.arrived[self.lattice.nodes], key=_score, reverse=True):
            if math.isfinite(one.score):
                best.setdefault(one.words, one)
        if not best:
            raise UserError(f"no path of the lattice {self.lattice.id} has a finite score.")
        paths = [
            Path(one.score, tuple(self.words[n] for n in one.words), one.first, one.log_prob)
            for one in [*best.values()][: self.settings.nbest]
        ]
        lattice = None if self.records is None else self._expanded()
        return Searched(self.lattice.id, paths, self.dropped, lattice)

    def _expanded(self) -> Lattice:
        """The lattice of all that was passed on: a node for each node and history."""
        weight, last = self.settings.weight, self.lattice.nodes - 1
        links: dict[tuple, tuple] = {}
        for words, link, number, log_prob in self.records or []:
            key = self._key(words)
            ends: tuple
            if link is None:
                ends = (last, key), "end"
                values = (None, 0.0, weight * log_prob, 0)
            else:
                after = key if number < 0 else self._key((*key, number))
                ends = (link.start, key), (link.end, after)
                language = self._language(link) + weight * log_prob
                values = (link.word, link.acoustic, language, link.line)
            if math.isfinite(values[1]) and math.isfinite(values[2]):
                # Hypotheses of one history go along a link once.
                links[*ends, id(link)] = (*ends, *values)
        penalty = self.lattice.word_penalty + self.settings.word_penalty
        scales = self.lattice.acoustic_scale, 1.0, penalty
        return lattice_of(self.lattice.id, [*links.values()], (0, ()), "end", "the search", scales)


def _score(hypothesis):
    return hypothesis.score


def _levels(lattice):
    """Lists of nodes that are computed together: no path joins two of a list, and no link goes
    back to an earlier list."""
    depth = [0] * lattice.nodes
    for link in lattice.links:
        depth[link.end] = max(depth[link.end], depth[link.start] + 1)
    levels = collections.defaultdict(list)
    for node, number in enumerate(depth):
        levels[number].append(node)
    return [levels[number] for number in sorted(levels)]
