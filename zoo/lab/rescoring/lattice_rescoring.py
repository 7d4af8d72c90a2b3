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
from zoo.lab.evaluation import nbest, sentence_scores, unknown_words
from zoo.lab.evaluation.perplexity import PRECISION
from zoo.lab.evaluation.run import Run
from zoo.lab.rescoring import reranking, run_interpolation
from zoo.lab.rescoring.lattices import Lattice, build_lattice

# Default numbers of hypotheses of a node, and of lattices of a batch. Nodes of a lattice that are
# computed together keep at most NODES_PER_LEVEL times as many hypotheses as one node.
MAX_HYPOTHESES, LATTICES_PER_BATCH, NODES_PER_LEVEL = 1000, 16, 10
# Links of a lattice whose search without `history` takes minutes.
LARGE_LATTICE = 20_000
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


class SearchResult(NamedTuple):
    """The result of a search in a lattice."""

    id: str
    paths: list[Path]
    dropped: int
    lattice: Lattice | None

    def lines(self, columns: Sequence[str] | None = None) -> Iterator[str]:
        """Yields output lines: the best path, or an n-best list if columns name the models."""
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
    max_hypotheses: int | None = MAX_HYPOTHESES
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
        batch_size: int = LATTICES_PER_BATCH,
        expand: bool = False,
    ) -> Iterator[SearchResult]:
        """Searches lattices batch by batch, and yields the result of each, its best path first.

        With `expand` a lattice gets a node for each node and history that the search kept. Each
        link then has the language score

            language_weight * language_scale * l + sum_k weight_k log p_k(word | history),

        whose scale is 1, so that a path's score is the search's. Links without a word to a last
        node have log p(</s> | history).
        """
        if self.shares is not None:
            run_interpolation.check_same_words({f"model {n}": run for n, run in enumerate(runs, 1)})
        remaining = iter(lattices)
        states = None
        while batch := [*itertools.islice(remaining, batch_size)]:
            states = states or ModelStates(runs)
            with jax.default_matmul_precision(PRECISION):
                fronts = [_Front(self, runs, lattice, expand) for lattice in batch]
                for level in range(max(len(front.levels) for front in fronts)):
                    _search_level([f for f in fronts if level < len(f.levels)], level, states)
                    states.retain(slot for front in fronts for slot in front.slots(states))
            yield from (front.result() for front in fronts)

    def size_note(self, lattice: Lattice) -> str | None:
        """Returns a warning if the search of a large lattice may take minutes."""
        if self.history is None and len(lattice.links) >= LARGE_LATTICE:
            return (
                f"note: the search of {lattice.id}, {lattice.nodes:,} nodes and "
                f"{len(lattice.links):,} links, may take minutes: give --history 2 --beam 30"
            )
        return None

    def posterior_note(self, lattice: Lattice, path: str) -> str | None:
        """Returns a warning if language scores are only in posteriors, whose weight is 0."""
        has_posteriors = any(link.log_posterior for link in lattice.links)
        has_language = any(link.language for link in lattice.links)
        if has_posteriors and not has_language and not self.posterior_weight:
            return (
                f"{path} has no language scores l=, and its posteriors p=, which contain the "
                "recogniser's language model, have weight 0: give --posterior-weight W, or "
                "--weights FILE"
            )
        return None

    def dropped_note(self, result: SearchResult) -> str | None:
        """Returns a warning if hypotheses beyond the limit of a node were dropped."""
        if self.max_hypotheses is not None and result.dropped:
            return (
                f"note: {result.id}: {result.dropped:,} hypotheses beyond {self.max_hypotheses:,} "
                f"of a node, or {NODES_PER_LEVEL * self.max_hypotheses:,} of nodes computed "
                "together, were dropped: the best path may be among them; --history N merges more, "
                "--most N keeps more."
            )
        return None


def read_settings(path: str, columns: Sequence[str]) -> dict[str, Any]:
    """Reads fields of `LatticeSearch` from a file of weights, which has exactly `FEATURES` and the
    models named by `columns`."""
    tuned = reranking.Weights.read(path)
    tuned.check((*FEATURES, *columns), path)
    settings = {setting: tuned.weights[name] for name, setting in FEATURES.items()}
    return {"weights": tuple(tuned.weights[name] for name in columns), **settings}


def unknown_word_notes(words: Collection[str], run: Run, name: str) -> list[str | None]:
    """Returns [note on the share of unknown words in lattices, or None; notes on their forms]."""
    text = [sorted({token for word in words for token in sentence_scores.words_by(run, word)})]
    unknown = [*run.experiment.vocabulary.missing(text, run.lexicon)]
    place = f"the lattices, each counted once, by {name},"
    note = unknown_words.describe_share(len(text[0]), len(unknown), place)
    return [note and f"{note}: {quote(unknown)}", *unknown_words.unknown_notes(run, text)]


# ---- states of language models shared by many hypotheses, in one array a model on the device

# Number of states in the array at first.
INITIAL_SLOTS = 1024
# The slot of the state before any word, and the slot for padding.
START_SLOT, PADDING_SLOT = 0, 1
# Stands for an id where a model reads a label as fewer words than another model.
NO_WORD = -1
# The slot of a state, and the label after it: for each word as which models read it, its ids.
Pair = tuple[int, tuple[tuple[int, ...], ...]]


class ModelStates:
    """States of several models after words, each computed once, in slots that are reused."""

    def __init__(self, runs: Sequence[Any]):
        """Begins with the state before any word, in `START_SLOT`."""
        self.models = [_Model(run) for run in runs]
        self.slots: dict[Pair, int] = {}
        self.free = [*range(INITIAL_SLOTS - 1, PADDING_SLOT, -1)]
        self.used: set[int] = set()

    def advance(self, pairs: Iterable[Pair]):
        """Computes the state after each pair (state, label) into a free slot, unless it has one
        already; grows the arrays if slots are lacking."""
        missing = [pair for pair in dict.fromkeys(pairs) if pair not in self.slots]
        if any(len(label) > 1 for _, label in missing):  # after all words but the last
            self.advance((slot, label[:-1]) for slot, label in missing if len(label) > 1)
        while len(self.free) < len(missing):
            size, *_ = [model.grow() for model in self.models]
            self.free = [*range(4 * size - 1, size - 1, -1), *self.free]
        for chunk in sentence_scores.chunks(len(missing)):
            batch, size = missing[chunk], chunk.stop - chunk.start
            slots = [self.free.pop() for _ in batch]
            self.used.update(slots)
            self.slots.update(zip(batch, slots, strict=True))
            rows = sentence_scores.pad(self._rows(batch), size)
            target_slots = np.full(size, PADDING_SLOT, np.int32)
            target_slots[: len(slots)] = slots
            words = [label[-1] for _, label in batch]
            for model, ids in zip(self.models, zip(*words, strict=True), strict=True):
                model.advance(rows, sentence_scores.pad(np.array(ids), size), target_slots)

    def retain(self, slots: Iterable[int]):
        """Frees the slots of all states but those in `slots` and the state before any word."""
        live = {START_SLOT, *slots}
        self.free += sorted(self.used - live, reverse=True)
        self.used &= live
        # A slot may hold another state later: entries that name it are removed.
        self.slots = {pair: slot for pair, slot in self.slots.items() if {slot, pair[0]} <= live}

    def _rows(self, pairs):
        """Returns the slots of the states before the last word of each pair's label."""
        return np.array([self.slots.get((slot, label[:-1]), slot) for slot, label in pairs], int)

    def log_probs(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Computes log p of the label of each (state, label), float64 [models, pairs], nats."""
        steps = [(slot, label[:end]) for slot, label in pairs for end in range(1, len(label) + 1)]
        self.advance((slot, label[:-1]) for slot, label in pairs if len(label) > 1)
        rows = self._rows(steps)
        ids = np.array([label[-1] for _, label in steps]).reshape(len(steps), len(self.models))
        # All are dispatched before any result is awaited.
        outputs = [[*model.log_probs(rows, ids[:, k])] for k, model in enumerate(self.models)]
        log_probs = np.zeros((len(self.models), len(steps)))
        for row, parts in zip(log_probs, outputs, strict=True):
            for chunk, values in parts:
                row[chunk] = np.asarray(values)[: len(row[chunk])]
        starts = np.flatnonzero([len(label) == 1 for _, label in steps])
        return np.add.reduceat(np.where(ids.T == NO_WORD, 0.0, log_probs), starts, axis=1)


class _Model:
    """The states of one model as an array, at first the state before any word in all rows."""

    def __init__(self, run):
        self.model = run.experiment.language_model
        self.inputs = run.params, run.tables, self.model.prepared(run.params, run.tables)
        self.step, self.log_prob = compile_search_steps(self.model)
        self.states = sentence_scores.compile_levels(self.model)(*self.inputs, INITIAL_SLOTS)[1]

    def grow(self):
        """Makes the array four times as large (few sizes compile), and returns its old size."""
        size = len(jax.tree.leaves(self.states)[0])
        added_states = sentence_scores.compile_levels(self.model)(*self.inputs, 3 * size)[1]
        self.states = jax.tree.map(lambda *x: jnp.concatenate(x), self.states, added_states)
        return size

    def advance(self, rows, ids, target_rows):
        """Computes states after words from the states of rows, and writes them to other rows."""
        self.states = self.step(*self.inputs, self.states, rows, ids, target_rows)

    def log_probs(self, rows, ids):
        """Yields (slice of rows, log p on the device) of words after states, batch by batch."""
        for part in sentence_scores.chunks(len(ids)):
            words = (sentence_scores.pad(x[part], part.stop - part.start) for x in (rows, ids))
            yield part, self.log_prob(*self.inputs, sentence_scores.outputs(self.states), *words)


@functools.cache
def compile_search_steps(model):
    """Compiles, once a model, (step that writes states after words to slots of `states`, which are
    donated; log p of words after states)."""

    def step(params, tables, prepared, states, rows, words, slots):
        """Returns the states, with those after the words of the rows written to the slots."""
        inputs = params, tables, prepared, jnp.maximum(words, 0)
        carry = jax.tree.map(lambda leaf: leaf[rows], states[2])

        def write(leaf, update):
            is_word = jnp.expand_dims(words != NO_WORD, range(1, update.ndim))
            return leaf.at[slots].set(jnp.where(is_word, update, leaf[rows]))

        return jax.tree.map(write, states, sentence_scores.states_after(model, *inputs, carry))

    return jax.jit(step, donate_argnames="states"), sentence_scores.compile_steps(model)[1]


# ---- the search


class _PartialPath(NamedTuple):
    """A path from the start of a lattice to one of its nodes."""

    score: float
    words: tuple[int, ...]
    parts: tuple[float, ...]
    log_probs: tuple[float, ...]
    state: Pair  # the slot of the state before the last word, and the word's ids


_score = operator.attrgetter("score")


def _search_level(fronts, level, model_states):
    """Merges and prunes the hypotheses at the nodes of a level of each lattice, then extends them
    along the links that leave these nodes."""
    for front in fronts:
        front.merge(level)
    model_states.advance(path.state for f in fronts for beam in f.beams.values() for path in beam)
    extensions_by_front = [front.list_extensions(model_states) for front in fronts]
    pairs = [*dict.fromkeys(pair for *_, pair in itertools.chain(*extensions_by_front) if pair)]
    log_probs = dict(zip(pairs, model_states.log_probs(pairs).T, strict=True))
    for front, extensions in zip(fronts, extensions_by_front, strict=True):
        front.extend(extensions, log_probs)


class _Front:
    """The hypotheses of one lattice that wait at its nodes."""

    def __init__(self, settings, runs, lattice, expand):
        """Prepares the search of a lattice; with `expand` extensions are recorded for `result`."""
        self.settings, self.lattice, self.words = settings, lattice, lattice.words
        encoded_words = [_encode_words(run, lattice) for run in runs]
        # The boundary is the last of the words.
        labels = zip(*(ids for ids, _ in encoded_words), strict=True)
        self.ids = [tuple(itertools.zip_longest(*ids, fillvalue=NO_WORD)) for ids in labels]
        self.within = np.stack([within for _, within in encoded_words], axis=1)
        self.numbers = {word: number for number, word in enumerate(self.words)}
        self.links = collections.defaultdict(list)
        for link in lattice.links:
            self.links[link.start].append(link)
        self.parts = {id(link): self._link_scores(link) for link in lattice.links}
        self.levels = _levels(lattice)
        # The recogniser's best score from each node to the end; links are ordered by their starts.
        self.future = [-math.inf] * (lattice.nodes - 1) + [0.0]
        for link in reversed(lattice.links):
            score = self.parts[id(link)][0] + self.future[link.end]
            self.future[link.start] = max(self.future[link.start], score)
        self.arrivals: dict[int, list[_PartialPath]] = collections.defaultdict(list)
        zeros = (0.0,) * len(settings.weights)
        self.arrivals[0] = [_PartialPath(0.0, (), (0.0,) * 3, zeros, (START_SLOT, self.ids[-1]))]
        self.beams: dict[int, list[_PartialPath]] = {}
        self.dropped = 0
        self.records: list | None = [] if expand else None

    def _link_scores(self, link):
        """Returns (weighted score of a link by the recogniser, its acoustic, language and posterior
        scores without weights)."""
        settings, lattice = self.settings, self.lattice
        acoustic = lattice.acoustic_scale * link.acoustic
        parts = acoustic, lattice.language_scale * link.language, link.log_posterior
        if not all(map(math.isfinite, parts)):  # a probability of 0, also where its weight is 0
            return -math.inf, parts
        penalty = (lattice.word_penalty + settings.word_penalty) * (link.word is not None)
        return settings.acoustic_weight * acoustic + self._language_score(link) + penalty, parts

    def _language_score(self, link):
        """Returns the weighted score of a link by the recogniser's language model and posterior."""
        language = self.settings.language_weight * self.lattice.language_scale * link.language
        return language + self.settings.posterior_weight * link.log_posterior

    def slots(self, model_states):
        """Yields the slots of all states that the waiting hypotheses still need."""
        for paths in self.arrivals.values():
            for path in paths:
                yield path.state[0]
                if path.state in model_states.slots:  # after a link without a word
                    yield model_states.slots[path.state]

    def merge(self, level):
        """Replaces `beams` by the merged and pruned paths that arrived at the nodes of a level."""
        arrivals = {node: self.arrivals.pop(node, []) for node in self.levels[level]}
        threshold = max(self._total_scores(arrivals), default=0.0) - self.settings.look_ahead
        self.beams = {
            node: self._best_of_histories(self._keep_above(threshold, node, paths))
            for node, paths in arrivals.items()
        }
        totals = self._total_scores(self.beams)
        limit = NODES_PER_LEVEL * (self.settings.max_hypotheses or len(totals))
        if limit < len(totals):
            threshold = heapq.nlargest(limit, totals)[-1]
            self.dropped += sum(total < threshold for total in totals)
            for node, beam in self.beams.items():
                self.beams[node] = self._keep_above(threshold, node, beam)

    def _total_scores(self, paths_by_node):
        """Returns each path's score plus the recogniser's best score from its node to the end."""
        return [path.score + self.future[n] for n, paths in paths_by_node.items() for path in paths]

    def _keep_above(self, threshold, node, paths):
        """Filters paths to a node: score plus the recogniser's best score from there on >=
        threshold."""
        return [path for path in paths if path.score + self.future[node] >= threshold]

    def _best_of_histories(self, paths):
        """Returns the `nbest` best paths of each history, within the beam and `max_hypotheses`;
        counts paths beyond it as dropped."""
        lowest = max((path.score for path in paths), default=0.0) - self.settings.beam
        groups: dict[tuple[int, ...], dict] = collections.defaultdict(dict)
        for path in paths:
            group = groups[self._history(path.words)]
            rival = group.get(path.words)
            if path.score >= lowest and (rival is None or path.score > rival.score):
                group[path.words] = path
        beam = []
        for group in groups.values():
            ranked = heapq.nlargest(self.settings.nbest, group.values(), key=_score)
            beam += [path._replace(state=ranked[0].state) for path in ranked]
        limit = self.settings.max_hypotheses
        if limit is None or len(beam) <= limit:
            return beam
        self.dropped += len(beam) - limit
        return heapq.nlargest(limit, beam, key=_score)

    def _history(self, words):
        """Returns the last `history` words (None: all); paths that share them are merged."""
        return words if self.settings.history is None else words[-self.settings.history :]

    def list_extensions(self, model_states):
        """Lists all extensions of the beams' paths by a link or, after the last node, by None.

        Returns tuples (path, link or None, index of its word or -1, (slot of the state, ids of the
        word) or None).
        """
        extensions = []
        end = len(self.words)
        for node, beam in self.beams.items():
            for link in self.links[node] or [None]:
                index = end if link is None else self.numbers.get(link.word, -1)
                for path in beam:
                    pair = (model_states.slots[path.state], self.ids[index]) if index >= 0 else None
                    extensions.append((path, link, index, pair))
        return extensions

    def extend(self, extensions, log_probs):
        """Adds model and link scores to listed extensions, and appends these to `arrivals`."""
        shares = np.array(self.settings.shares)
        for path, link, number, pair in extensions:
            weighted, sums = 0.0, path.log_probs
            if pair is not None:
                by_model = log_probs[pair] + self.within[number]
                if self.settings.shares is not None:  # of the models' mean
                    by_model = run_interpolation.mix(by_model[:, None], shares)
                word_log_probs = by_model.tolist()
                weighted = math.fsum(map(operator.mul, self.settings.weights, word_log_probs))
                sums = tuple(map(operator.add, sums, word_log_probs))
            if self.records is not None:
                self.records.append((path.words, link, number, weighted))
            score = path.score + weighted
            if link is None:
                self.arrivals[self.lattice.nodes].append(path._replace(score=score, log_probs=sums))
                continue
            score += self.parts[id(link)][0]
            parts = tuple(map(operator.add, path.parts, self.parts[id(link)][1]))
            words, state = path.words, path.state
            if number >= 0:
                words, state = (*words, number), pair
            self.arrivals[link.end].append(_PartialPath(score, words, parts, sums, state))

    def result(self) -> SearchResult:
        """Returns the best paths and any expanded lattice; no finite score is a UserError."""
        best: dict[tuple[int, ...], _PartialPath] = {}
        for path in sorted(self.arrivals[self.lattice.nodes], key=_score, reverse=True):
            if math.isfinite(path.score):
                best.setdefault(path.words, path)
        if not best:
            raise UserError(
                f"no path of the lattice {self.lattice.id} has a finite score: give a lattice "
                "with a probability above 0."
            )
        paths = [
            Path(path.score, tuple(self.words[n] for n in path.words), path.parts, path.log_probs)
            for path in [*best.values()][: self.settings.nbest]
        ]
        lattice = None if self.records is None else self._expanded_lattice()
        return SearchResult(self.lattice.id, paths, self.dropped, lattice)

    def _expanded_lattice(self) -> Lattice:
        """Builds the lattice of all recorded extensions, with a node for each node and history."""
        lattice, settings = self.lattice, self.settings
        links: dict[tuple, tuple] = {}
        for words, link, number, weighted in self.records or []:
            history = self._history(words)
            ends: tuple
            if link is None:
                ends = (lattice.nodes - 1, history), "end"
                values: tuple = (None, 0.0, weighted, 0)
            else:
                end_history = history if number < 0 else self._history((*history, number))
                ends = (link.start, history), (link.end, end_history)
                language = self._language_score(link) + weighted
                values = (link.word, link.acoustic, language, link.line, 0.0, link.alignment)
            if math.isfinite(values[1]) and math.isfinite(values[2]):
                # Hypotheses of one history go along a link once.
                links[*ends, id(link)] = (*ends, *values)
        penalty = lattice.word_penalty + settings.word_penalty
        scales = settings.acoustic_weight * lattice.acoustic_scale, 1.0, penalty
        return build_lattice(lattice.id, [*links.values()], (0, ()), "end", "the search", scales)


def _encode_words(run, lattice):
    """Encodes the words of a lattice and the boundary: (ids, log p within classes [words + 1]);
    raises UserError for a run without boundary."""
    if run.lexicon.boundary_id is None:
        raise UserError(
            f"{run.path} has no sentence boundary, with which paths begin and end: train with "
            "vocabulary.boundary=counted or uncounted."
        )
    if " " in run.lexicon.ids:  # of characters: blanks between words would be missing
        sentence_scores.check_run(run)
    labels = [sentence_scores.words_by(run, word) for word in lattice.words]
    # A corpus has words, also where all labels are silence.
    corpus = Corpus(f"the lattice {lattice.id}", [*labels, [run.lexicon.words[0]]])
    text = run.experiment.vocabulary.encode(corpus, run.lexicon)
    within = np.zeros(len(text.words)) if text.strings is None else text.strings.log_within
    places = np.split(np.arange(len(text.words)), text.starts[1:])[:-1]
    places = [place[: -run.experiment.vocabulary.boundary_marks] for place in places]
    ids = [text.words[place].tolist() or [NO_WORD] for place in places]
    return [*ids, [run.lexicon.boundary_id]], [*(within[place].sum() for place in places), 0.0]


def _levels(lattice):
    """Groups the nodes by the number of links on the longest path from the start to them."""
    depth = [0] * lattice.nodes
    for link in lattice.links:
        depth[link.end] = max(depth[link.end], depth[link.start] + 1)
    levels = collections.defaultdict(list)
    for node, number in enumerate(depth):
        levels[number].append(node)
    return [levels[number] for number in sorted(levels)]
