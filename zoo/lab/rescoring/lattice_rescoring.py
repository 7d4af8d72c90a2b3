"""Search of lattices under language models, which merges paths with the same last words.

A path's score is, over its links and the models k,

    sum (acoustic_weight * acoustic_scale * a + language_weight * language_scale * l
         + posterior_weight * log p + word_penalty) + sum_k weight_k log p_k(words </s>),

with the links' posteriors p. The models' mean, word by word, can take the place of the models.

Hypotheses are passed along the lattice from node to node. At a node hypotheses with the same last n
words are merged: the best ones stay, with the state of the best. With n unbounded only hypotheses
of equal words are merged, and the result is exact (Sundermeyer et al. 2014, section III). Nodes
that no path joins, of several lattices, are computed together.
"""

import collections
import dataclasses
import functools
import heapq
import itertools
import math
import operator
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from zoo.data import Corpus
from zoo.errors import UserError, quote
from zoo.lab.evaluation import nbest, sentence_scores
from zoo.lab.evaluation.perplexity import PRECISION
from zoo.lab.evaluation.run import Run
from zoo.lab.rescoring import reranking, run_interpolation
from zoo.lab.rescoring.lattices import Lattice, lattice_of

# Default numbers of hypotheses of a node, and of lattices of a batch. Nodes of a lattice that are
# computed together keep at most FULL_NODES times as many hypotheses as one node.
MOST, TOGETHER, FULL_NODES = 1000, 16, 10
# Links of a lattice whose search without `history` takes minutes.
LARGE = 20_000
# Features of paths in lists and in files of weights: {name: its setting of the search}.
FEATURES = {
    "acoustic": "acoustic_weight",
    "language": "language_weight",
    "posterior": "posterior_weight",
    "words": "word_penalty",
}


class Path(NamedTuple):
    """A path through a lattice."""

    score: float
    words: tuple[str, ...]
    parts: tuple[float, ...]  # scaled acoustic and language scores and the sum of log p, nats
    # log p of the words and the boundary under each model, or under their mean, nats
    log_probs: tuple[float, ...]


class Searched(NamedTuple):
    """The result of a search in a lattice."""

    id: str
    paths: list[Path]
    dropped: int
    lattice: Lattice | None

    def lines(self, columns: Sequence[str] | None = None) -> Iterator[str]:
        """Yields the best path as id and words, or, with names of the models, all as a list."""
        if columns is None:
            yield reranking.best_line(self.id, " ".join(self.paths[0].words))
            return
        for path in self.paths:
            values = *path.parts, float(len(path.words)), *path.log_probs
            features = dict(zip((*FEATURES, *columns), values, strict=True))
            yield nbest.line(self.id, path.words, features, path.score) + "\n"


@dataclasses.dataclass(frozen=True)
class LatticeSearch:
    """Settings of the search for paths."""

    weights: tuple[float, ...] = (1.0,)  # of the models, or of their mean
    language_weight: float = 1.0
    word_penalty: float = 0.0
    history: int | None = None
    beam: float = math.inf
    look_ahead: float = math.inf
    most: int | None = MOST
    nbest: int = 1
    shares: tuple[float, ...] | None = None
    # factor of the logarithm of the links' posteriors, which contain the recogniser's language
    # model where its scores are not written; posteriors are clamped to [1e-6, 1]
    posterior_weight: float = 0.0
    acoustic_weight: float = 1.0

    def search_all(
        self,
        runs: Sequence[Run],
        lattices: Iterable[Lattice],
        together: int = TOGETHER,
        expand: bool = False,
    ) -> Iterator[Searched]:
        """Searches several lattices, and yields their results in their order, the best paths first.

        With `expand` a lattice gets a node for each node and history that the search kept. Each
        link then has the language score

            language_weight * language_scale * l + sum_k weight_k log p_k(word | history),

        whose scale is 1, so that a path's score is the search's. Links without a word to a last
        node have log p(</s> | history).
        """
        if self.shares is not None:
            run_interpolation.check_same_words({f"model {n}": one for n, one in enumerate(runs, 1)})
        waiting = iter(lattices)
        states = None
        while some := [*itertools.islice(waiting, together)]:
            states = states or ModelStates(runs)
            with jax.default_matmul_precision(PRECISION):
                fronts = [_Front(self, runs, lattice, expand) for lattice in some]
                for level in range(max(len(front.levels) for front in fronts)):
                    _pass_on([f for f in fronts if level < len(f.levels)], level, states)
                    states.keep(slot for front in fronts for slot in front.slots(states))
            yield from (front.result() for front in fronts)

    def size_note(self, lattice: Lattice) -> str | None:
        if self.history is None and len(lattice.links) >= LARGE:
            return (
                f"note: the search of {lattice.id}, {lattice.nodes:,} nodes and "
                f"{len(lattice.links):,} links, may take minutes: give --history 2 --beam 30"
            )
        return None

    def posterior_note(self, lattice: Lattice, path: str) -> str | None:
        if not self.posterior_weight and lattice.language_in_posteriors:
            return (
                f"{path} has no language scores l=, and its posteriors p=, which contain the "
                "recogniser's language model, have weight 0: give --posterior-weight W, or "
                "--weights FILE"
            )
        return None

    def dropped_note(self, result: Searched) -> str | None:
        if self.most is not None and result.dropped:
            return (
                f"note: {result.id}: {result.dropped:,} hypotheses beyond {self.most:,} of a node, "
                f"or {FULL_NODES * self.most:,} of nodes computed together, were dropped: the best "
                "path may be among them; --history N merges more, --most N keeps more."
            )
        return None


def read_settings(path: str, columns: Sequence[str]) -> dict[str, Any]:
    """Reads a file of weights as settings of `LatticeSearch`; columns name the models."""
    tuned = reranking.Weights.read(path)
    tuned.check((*FEATURES, *columns), path)
    settings = {setting: tuned.weights[name] for name, setting in FEATURES.items()}
    return {"weights": tuple(tuned.weights[name] for name in columns), **settings}


def unknown_notes(words: Collection[str], run: Run, name: str) -> list[str | None]:
    """Returns notes on the words of lattices that a run does not know."""
    text = [sorted(words)]
    unknown = [*run.experiment.vocabulary.missing(text, run.lexicon)]
    place = f"the lattices, each counted once, by {name},"
    note = sentence_scores.share(len(words), len(unknown), place)
    return [note and f"{note}: {quote(unknown)}", *run.notes(text)]


# ---- states of language models shared by many hypotheses, in one array a model on the device

# Number of states in the array at first.
ROOM = 1024
# The slot of the state before any word, and the slot for padding.
BEFORE, FILLING = 0, 1
# The slot of a state, and the ids of the word after it under each model.
Pair = tuple[int, tuple[int, ...]]


class ModelStates:
    """States after words, each computed once, of models side by side, in slots used again."""

    def __init__(self, runs: Sequence[Any]):
        self.models = [_Model(run) for run in runs]
        self.slots: dict[Pair, int] = {}
        self.free = [*range(ROOM - 1, FILLING, -1)]
        self.used: set[int] = set()

    def read(self, asked: Iterable[Pair]):
        """Computes the states after words, unless they are computed already."""
        new = [pair for pair in dict.fromkeys(asked) if pair not in self.slots]
        while len(self.free) < len(new):
            size, *_ = [model.grow() for model in self.models]
            self.free = [*range(4 * size - 1, size - 1, -1), *self.free]
        for some in sentence_scores.chunks(len(new)):
            pairs, size = new[some], some.stop - some.start
            slots = [self.free.pop() for _ in pairs]
            self.used.update(slots)
            self.slots.update(zip(pairs, slots, strict=True))
            rows = sentence_scores.pad(np.array([slot for slot, _ in pairs]), size)
            to = np.full(size, FILLING, np.int32)
            to[: len(slots)] = slots
            words = [word for _, word in pairs]
            for model, ids in zip(self.models, zip(*words, strict=True), strict=True):
                model.read(rows, sentence_scores.pad(np.array(ids), size), to)

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
    """The array of states of one model, at first all before any word."""

    def __init__(self, run):
        self.model = run.experiment.language_model
        self.given = run.params, run.tables, self.model.prepared(run.params, run.tables)
        self.step, self.log_prob = compiled(self.model)
        self.states = sentence_scores.compile_levels(self.model)(*self.given, ROOM)[1]

    def grow(self):
        """Makes the array four times as large (few programs), and returns its size before."""
        size = len(jax.tree.leaves(self.states)[0])
        more = sentence_scores.compile_levels(self.model)(*self.given, 3 * size)[1]
        self.states = jax.tree.map(lambda *x: jnp.concatenate(x), self.states, more)
        return size

    def read(self, rows, ids, to):
        """Computes the states after words, and writes them into other rows."""
        self.states = self.step(*self.given, self.states, rows, ids, to)

    def log_probs(self, rows, ids):
        """Yields (slice, log p on the device) of words after the states of rows, batch by batch."""
        for some in sentence_scores.chunks(len(ids)):
            given = (sentence_scores.pad(x[some], some.stop - some.start) for x in (rows, ids))
            yield some, self.log_prob(*self.given, sentence_scores.outputs(self.states), *given)


@functools.cache
def compiled(model):
    """Returns compiled functions: one writes states after words into rows, one computes log p."""

    def step(params, tables, prepared, states, rows, words, slots):
        carry = jax.tree.map(lambda leaf: leaf[rows], states[2])
        new = sentence_scores.states_after(model, params, tables, prepared, words, carry)
        return jax.tree.map(lambda room, added: room.at[slots].set(added), states, new)

    return jax.jit(step, donate_argnames="states"), sentence_scores.compile_steps(model)[1]


# ---- the search


class _Hypothesis(NamedTuple):
    """A path from the start of a lattice to one of its nodes."""

    score: float
    words: tuple[int, ...]
    parts: tuple[float, ...]
    log_probs: tuple[float, ...]
    state: Pair  # the slot of the state before the last word, and the word's ids


_score = operator.attrgetter("score")


def _pass_on(fronts, level, states):
    """Extends the hypotheses of a level of each lattice along the links that leave its nodes."""
    for front in fronts:
        front.merge(level)
    states.read(one.state for front in fronts for some in front.kept.values() for one in some)
    asked = [front.asked(states) for front in fronts]
    pairs = [*dict.fromkeys(pair for some in asked for _, _, _, pair in some if pair is not None)]
    log_probs = dict(zip(pairs, states.log_probs(pairs).T, strict=True))
    for front, some in zip(fronts, asked, strict=True):
        front.extend(some, log_probs)


class _Front:
    """The hypotheses of one lattice that wait at its nodes."""

    def __init__(self, settings, runs, lattice, expand):
        self.settings, self.lattice, self.words = settings, lattice, lattice.words
        read = [_read_words(run, lattice) for run in runs]
        # The boundary is the last of the words.
        self.ids = [*zip(*(ids for ids, _ in read), strict=True)]
        self.within = np.stack([within for _, within in read], axis=1)
        self.numbers = {word: number for number, word in enumerate(self.words)}
        self.links = collections.defaultdict(list)
        for link in lattice.links:
            self.links[link.start].append(link)
        self.parts = {id(link): self._parts(link) for link in lattice.links}
        self.levels = _levels(lattice)
        # The recogniser's best score from each node to the end; links are ordered by their starts.
        self.ahead = [-math.inf] * (lattice.nodes - 1) + [0.0]
        for link in reversed(lattice.links):
            onwards = self.parts[id(link)][0] + self.ahead[link.end]
            self.ahead[link.start] = max(self.ahead[link.start], onwards)
        self.arrived: dict[int, list[_Hypothesis]] = collections.defaultdict(list)
        before = (BEFORE, self.ids[-1])
        self.arrived[0] = [_Hypothesis(0.0, (), (0.0,) * 3, (0.0,) * len(settings.weights), before)]
        self.kept: dict[int, list[_Hypothesis]] = {}
        self.dropped = 0
        self.records: list | None = [] if expand else None

    def _parts(self, link):
        """Returns (the recogniser's weighted score of a link, its parts without the weights)."""
        settings, lattice = self.settings, self.lattice
        acoustic = lattice.acoustic_scale * link.acoustic
        parts = acoustic, lattice.language_scale * link.language, link.log_posterior
        if not all(map(math.isfinite, parts)):  # a probability of 0, also where its weight is 0
            return -math.inf, parts
        penalty = (lattice.word_penalty + settings.word_penalty) * (link.word is not None)
        return settings.acoustic_weight * acoustic + self._language(link) + penalty, parts

    def _language(self, link):
        language = self.settings.language_weight * self.lattice.language_scale * link.language
        return language + self.settings.posterior_weight * link.log_posterior

    def slots(self, states):
        """Yields the slots of the states from which waiting hypotheses are extended."""
        for some in self.arrived.values():
            for one in some:
                yield one.state[0]
                if one.state in states.slots:  # after a link without a word
                    yield states.slots[one.state]

    def merge(self, level):
        """Chooses the hypotheses of a level that are extended."""
        arrived = {node: self.arrived.pop(node, []) for node in self.levels[level]}
        estimates = (one.score + self.ahead[n] for n, some in arrived.items() for one in some)
        least = max(estimates, default=0.0) - self.settings.look_ahead
        self.kept = {
            node: self._merged(node, [h for h in some if h.score + self.ahead[node] >= least])
            for node, some in arrived.items()
        }
        scores = [one.score + self.ahead[node] for node, some in self.kept.items() for one in some]
        if (most := FULL_NODES * (self.settings.most or len(scores))) < len(scores):
            least = heapq.nlargest(most, scores)[-1]
            self.dropped += sum(score < least for score in scores)
            for node, some in self.kept.items():
                self.kept[node] = [one for one in some if one.score + self.ahead[node] >= least]

    def _merged(self, node, hypotheses):
        """Returns the best hypotheses of each history, within the beam and `most`."""
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
        return words if self.settings.history is None else words[-self.settings.history :]

    def asked(self, states):
        """Returns (hypothesis, link or None, number of its word or -1, (slot of the state, ids of
        the word) or None) of each hypothesis and link to extend it by."""
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
        for one, link, number, pair in asked:
            weighted, total = 0.0, one.log_probs
            if pair is not None:
                weighted, of_word = self._model_part(log_probs[pair] + self.within[number])
                total = tuple(map(operator.add, total, of_word))
            if self.records is not None:
                self.records.append((one.words, link, number, weighted))
            score = one.score + weighted
            if link is None:
                self.arrived[self.lattice.nodes].append(one._replace(score=score, log_probs=total))
                continue
            score += self.parts[id(link)][0]
            parts = tuple(map(operator.add, one.parts, self.parts[id(link)][1]))
            words, state = one.words, one.state
            if number >= 0:
                words, state = (*words, number), pair
            new = _Hypothesis(score, words, parts, total, state)
            self.arrived[link.end].append(new)

    def _model_part(self, log_probs):
        """Returns (the models' weighted part of a word's score, log p under each or their mean)."""
        shares = self.settings.shares
        if shares is not None:
            log_probs = run_interpolation.mix(log_probs[:, None], np.array(shares))
        of_word = log_probs.tolist()
        return math.fsum(map(operator.mul, self.settings.weights, of_word)), of_word

    def result(self) -> Searched:
        best: dict[tuple[int, ...], _Hypothesis] = {}
        for one in sorted(self.arrived[self.lattice.nodes], key=_score, reverse=True):
            if math.isfinite(one.score):
                best.setdefault(one.words, one)
        if not best:
            raise UserError(
                f"no path of the lattice {self.lattice.id} has a finite score: give a lattice "
                "with a probability above 0."
            )
        paths = [
            Path(one.score, tuple(self.words[n] for n in one.words), one.parts, one.log_probs)
            for one in [*best.values()][: self.settings.nbest]
        ]
        lattice = None if self.records is None else self._expanded()
        return Searched(self.lattice.id, paths, self.dropped, lattice)

    def _expanded(self) -> Lattice:
        """Returns the lattice of all extended hypotheses: a node for each node and history."""
        last = self.lattice.nodes - 1
        links: dict[tuple, tuple] = {}
        for words, link, number, weighted in self.records or []:
            key = self._key(words)
            ends: tuple
            if link is None:
                ends = (last, key), "end"
                values: tuple = (None, 0.0, weighted, 0)
            else:
                after = key if number < 0 else self._key((*key, number))
                ends = (link.start, key), (link.end, after)
                language = self._language(link) + weighted
                values = (link.word, link.acoustic, language, link.line, 0.0, link.alignment)
            if math.isfinite(values[1]) and math.isfinite(values[2]):
                # Hypotheses of one history go along a link once.
                links[*ends, id(link)] = (*ends, *values)
        penalty = self.lattice.word_penalty + self.settings.word_penalty
        scales = self.settings.acoustic_weight * self.lattice.acoustic_scale, 1.0, penalty
        return lattice_of(self.lattice.id, [*links.values()], (0, ()), "end", "the search", scales)


def _read_words(run, lattice):
    """Returns (ids, log p within their classes [words + 1]) of the words and the boundary."""
    if run.lexicon.boundary_id is None:
        raise UserError(
            f"{run.path} has no sentence boundary, with which paths begin and end: train with "
            "vocabulary.boundary=counted or uncounted."
        )
    if not lattice.words:  # only silence
        return [run.lexicon.boundary_id], np.zeros(1)
    corpus = Corpus(f"the lattice {lattice.id}", [[word] for word in lattice.words])
    text = run.experiment.vocabulary.encode(corpus, run.lexicon)
    within = np.zeros(len(text.words)) if text.strings is None else text.strings.log_within
    starts = text.starts[: len(lattice.words)]
    ids = [*map(int, text.words[starts]), run.lexicon.boundary_id]
    return ids, np.append(within[starts], 0.0)


def _levels(lattice):
    """Returns lists of nodes that no path joins, in the order of the links between the lists."""
    depth = [0] * lattice.nodes
    for link in lattice.links:
        depth[link.end] = max(depth[link.end], depth[link.start] + 1)
    levels = collections.defaultdict(list)
    for node, number in enumerate(depth):
        levels[number].append(node)
    return [levels[number] for number in sorted(levels)]
