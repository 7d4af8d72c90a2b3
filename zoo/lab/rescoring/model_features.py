"""Features of language models for the hypotheses of n-best lists: log-probabilities, and counts."""

import collections
import dataclasses
import glob
import math
import pathlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from zoo.errors import UserError, shortened
from zoo.lab.evaluation import sentence_scores
from zoo.lab.evaluation.nbest import NBestList
from zoo.lab.evaluation.run import Run
from zoo.lab.rescoring import run_interpolation
from zoo.lab.rescoring.lattices import Lattice, read_lattices
from zoo.lab.rescoring.run_interpolation import Interpolation
from zoo.priors.arpa import SentenceScorer
from zoo.sources import files

# Hypotheses that are scored together: enough to fill batches, few enough to hold.
TOGETHER, MANY = 8192, 1000
WORDS, UNKNOWN, RANK = "words", "unknown", "rank"
# Fields of a hypothesis in JSON.
_FIELDS = ("text", "score")


# ---- acoustic and language scores of n-best hypotheses, read from the recogniser's lattices
# They are separate on the best path with a hypothesis's words, by the recogniser's own score
# sum (acoustic_scale * a + language_scale * l + word_penalty a word): each can be weighed anew.

ACOUSTIC, LANGUAGE = "acoustic", "language"


class Parts(NamedTuple):
    """Scores of the best path with some words, nats, scaled; `score` is the recogniser's whole."""

    score: float
    acoustic: float
    language: float


def best_parts(lattice: Lattice, sentences: Sequence[Sequence[str]]) -> list[Parts | None]:
    """Returns the scores of the best path with the words of each sentence, if there is one."""
    # All sentences are followed along the lattice together, as a tree of their prefixes.
    tree: list[dict[str, int]] = [{}]
    leaves = []
    for words in sentences:
        prefix = 0
        for spoken in words:
            if spoken not in tree[prefix]:
                tree[prefix][spoken] = len(tree)
                tree.append({})
            prefix = tree[prefix][spoken]
        leaves.append(prefix)
    links = collections.defaultdict(list)
    for link in lattice.links:
        acoustic = lattice.acoustic_scale * link.acoustic
        language = lattice.language_scale * link.language
        score = acoustic + language + lattice.word_penalty * (link.word is not None)
        links[link.start].append((link.word, link.end, Parts(score, acoustic, language)))
    arrived: list[dict[int, Parts]] = [{} for _ in range(lattice.nodes)]
    arrived[0][0] = Parts(0.0, 0.0, 0.0)
    for node in range(lattice.nodes - 1):  # no link goes back
        for prefix, before in arrived[node].items():
            for word, end, parts in links[node]:
                after = prefix if word is None else tree[prefix].get(word)
                if after is None:
                    continue
                old, score = arrived[end].get(after), before.score + parts.score
                if math.isfinite(score) and (old is None or score > old.score):
                    acoustic, language = before.acoustic + parts.acoustic, parts.language
                    arrived[end][after] = Parts(score, acoustic, before.language + language)
        arrived[node] = {}
    return [arrived[-1].get(leaf) for leaf in leaves]


@dataclasses.dataclass(frozen=True)
class LatticeFolder:
    """A folder with a file for each lattice, ID.slf, ID.slf.gz or another ending."""

    path: str

    def read(self, id: str) -> Lattice:
        folder = files.find(self.path)
        plain = pathlib.PurePath(id).name == id
        members = folder.glob(f"{glob.escape(id)}.*") if plain else ()
        found = [*filter(pathlib.Path.is_file, members)]
        if len(found) != 1:
            raise UserError(
                f"{folder} has {len(found)} files for the list {shortened(id, 80)!r}: give a "
                "folder with one lattice a list, ID.slf or ID.slf.gz."
            )
        lattices = [*read_lattices(str(found[0]), id)]
        if len(lattices) != 1:
            raise UserError(f"{found[0]} has {len(lattices)} lattices: give one a file.")
        return lattices[0]

    def features(self, one: NBestList) -> dict[str, list[float]]:
        """Returns {"acoustic", and "language" where links have such scores: values of each
        hypothesis}; without a path, the lowest of the list."""
        lattice = self.read(one.id)
        parts = best_parts(lattice, [hypothesis.words for hypothesis in one.hypotheses])
        known = [some for some in parts if some is not None]
        if not known:
            raise UserError(
                f"no hypothesis of the list {shortened(one.id, 80)!r} (line "
                f"{one.hypotheses[0].line}) is a path of its lattice in {self.path}: give the "
                "lattices from which the lists were made."
            )
        names = (ACOUSTIC, *([LANGUAGE] if any(link.language for link in lattice.links) else []))
        lowest = {name: min(getattr(some, name) for some in known) for name in names}
        return {
            name: [low if some is None else getattr(some, name) for some in parts]
            for name, low in lowest.items()
        }


# ---- features of any kind


def check_names(runs: Iterable[str], others: Iterable[str]):
    """Checks that the names of models can be names of features."""
    others = {*others}
    for name in runs:
        if name in others:
            raise UserError(
                f"the model {name!r} has the name of another feature or field of the lists: rename "
                "its folder or file, or give a link to it."
            )
        if name.split() != [name] or "|||" in name or "=" in name:
            raise UserError(
                f"the model {name!r} cannot give its name to a feature of the lists: rename its "
                "folder or file, or give a link to it, without blanks, '=' and '|||'."
            )


@dataclasses.dataclass(frozen=True, eq=False)
class Columns:
    """Features of models, and counts, that are added to each hypothesis."""

    # {name: a run}; each adds NAME, the log-probability of the words and the boundary, nats
    runs: dict[str, Run] = dataclasses.field(default_factory=dict)
    word_count: bool = False
    unknown_count: bool = False
    rank: bool = False
    interpolation: Interpolation | None = None
    lattices: LatticeFolder | None = None
    # {name: an n-gram model}; each adds NAME, as a run does
    ngrams: dict[str, SentenceScorer] = dataclasses.field(default_factory=dict)
    # notes on the shares of unknown words in the lists that features were added to
    notes: list[str | None] = dataclasses.field(default_factory=list)
    # is told what is computed of `MANY` hypotheses and more, which takes a while
    tell: Callable[[str], object] = str

    def __post_init__(self):
        models = {**self.runs, **self.ngrams}
        others = collections.Counter(self.names) - collections.Counter([*models])
        check_names(models, (*others, *_FIELDS, *([LANGUAGE] if self.lattices else [])))

    @property
    def names(self) -> tuple[str, ...]:
        of_models = [
            name
            for model in (*self.runs, *self.ngrams)
            for name in ((model, f"{model}.{UNKNOWN}") if self.unknown_count else (model,))
        ]
        others = (
            (run_interpolation.NAME, self.interpolation is not None),
            (ACOUSTIC, self.lattices is not None),
            (WORDS, self.word_count),
            (RANK, self.rank),
        )
        return (*of_models, *(name for name, wanted in others if wanted))

    def add(self, lists: Iterable[NBestList]) -> Iterator[NBestList]:
        """Yields the lists with the added features; some thousand hypotheses are held at a time."""
        waiting = iter(lists)
        if not self.names:
            yield from waiting
            return
        counts = {name: np.zeros(2, np.int64) for name in (*self.runs, *self.ngrams)}
        noted: dict[str, dict] = {name: {} for name in self.runs}
        for run in self.runs.values():
            sentence_scores.check_hypotheses(run)
        if self.interpolation is not None:
            self.interpolation.check(self.runs)
        of_lattices: list[str] = []
        for first in waiting:
            chunk, size = [first], len(first.hypotheses)
            while size < TOGETHER and (one := next(waiting, None)) is not None:
                chunk.append(one)
                size += len(one.hypotheses)
            yield from self._added(chunk, counts, noted, of_lattices)
        for name, counted in counts.items():
            words, unknown = counted.tolist()
            self.notes.append(sentence_scores.share(words, unknown, "the lists", name))
        for name, run in self.runs.items():
            self.notes.extend(run.notes([*map(list, noted[name])]))

    def _added(self, chunk, counts, noted, of_lattices):
        """Yields a chunk's lists; `of_lattices` keeps the names of the first list's features."""
        texts = [hypothesis.text for one in chunk for hypothesis in one.hypotheses]
        columns: dict[str, Sequence[float]] = {}
        tell = self.tell if len(texts) >= MANY else str
        for name, model in {**self.runs, **self.ngrams}.items():
            tell(f"scoring {len(texts):,} hypotheses under {name}")
            log_prob, words, unknown = _scores(model, texts, noted.get(name))
            counts[name] += int(words.sum()), int(unknown.sum())
            columns[name] = log_prob.tolist()
            if self.unknown_count:
                columns[f"{name}.{UNKNOWN}"] = unknown.astype(float).tolist()
        if self.interpolation is not None:
            columns[run_interpolation.NAME] = self._interpolated(texts)
        if self.lattices is not None:
            tell(f"reading the lattices of {len(chunk):,} lists")
            parts = [self.lattices.features(one) for one in chunk]
            of_lattices += [] if of_lattices else [*parts[0]]
            for name in of_lattices:
                columns[name] = [
                    value
                    for one, of_list in zip(chunk, parts, strict=True)
                    for value in of_list.get(name, [0.0] * len(one.hypotheses))
                ]
        if self.word_count:
            columns[WORDS] = [float(len(text.split())) for text in texts]
        if self.rank:
            ranks = [n for one in chunk for n, _ in enumerate(one.hypotheses, 1)]
            columns[RANK] = [-math.log(rank) for rank in ranks]
        values = zip(*columns.values(), strict=True)
        for one in chunk:
            for name in columns:
                if name in one.hypotheses[0].features:
                    raise UserError(
                        f"the list {one.id!r} has a feature {name!r} already: rename the model's "
                        "folder or file, or leave the option out."
                    )
            hypotheses = []
            for hypothesis in one.hypotheses:
                features = {**hypothesis.features, **dict(zip(columns, next(values), strict=True))}
                hypotheses.append(dataclasses.replace(hypothesis, features=features))
            yield dataclasses.replace(one, hypotheses=hypotheses)

    def _interpolated(self, texts):
        """Returns log p of texts under the mean of the runs."""
        assert self.interpolation is not None
        run = next(run for name, run in self.runs.items() if name in self.interpolation.weights)
        sentences = [sentence_scores.words_by(run, text) for text in texts]
        return self.interpolation.score(self.runs, sentences, "the n-best lists").tolist()


def _scores(model, texts, noted):
    """Returns (log p, nats, words, unknown words) of hypotheses under a run or an n-gram model."""
    if isinstance(model, SentenceScorer):
        return model.score(texts)
    sentences = [sentence_scores.words_by(model, text) for text in texts]
    noted |= model.noted(sentences)
    scores = sentence_scores.score(model, sentences, "the n-best lists")
    return scores.log_prob, scores.words, scores.unknown


# ---- N-best lists as arrays: features and statistics of every hypothesis, in the order of the file


@dataclasses.dataclass(frozen=True, eq=False)
class Lists:
    """L lists of N hypotheses in all, of F features and S statistics.

    Attributes:
      ids: of the lists, L.
      names: of the features, F.
      starts: int64 [L + 1]: the hypotheses of list l are rows starts[l] to starts[l + 1].
      features: float64 [N, F].
      statistics: float64 [N, S], of a metric; see `metrics`.
      first: float64 [N], the scores of the system that made the lists, larger is better; None
        without scores. Its best hypothesis is the first of a list in any case.

    Example:
      >>> lists.chosen(np.array([1.0, -3])).tolist()  # the second hypothesis of each list
      [1, 3]
    """

    ids: tuple[str, ...]
    names: tuple[str, ...]
    starts: np.ndarray
    features: np.ndarray
    statistics: np.ndarray
    first: np.ndarray | None = None

    @property
    def sizes(self) -> np.ndarray:
        """Hypotheses of each list, int64 [L]."""
        return np.diff(self.starts)

    @property
    def owners(self) -> np.ndarray:
        """The list of each hypothesis, int64 [N]."""
        return np.repeat(np.arange(len(self.ids)), self.sizes)

    def best(self, scores: np.ndarray) -> np.ndarray:
        """Returns each list's first row with the highest of scores [N], int64 [L]."""
        most = np.maximum.reduceat(scores, self.starts[:-1])
        rows = np.where(scores == np.repeat(most, self.sizes), np.arange(len(scores)), len(scores))
        return np.minimum.reduceat(rows, self.starts[:-1])

    def untuned(self) -> np.ndarray:
        """Returns the row of the first system's best hypothesis of each list, int64 [L]."""
        return self.starts[:-1]

    def chosen(self, weights: np.ndarray) -> np.ndarray:
        """Returns the row of the best hypothesis of each list by feature weights [F], int64 [L]."""
        return self.best(self.features @ weights)

    def some(self, lists: np.ndarray) -> "Lists":
        """Returns some of the lists, by number."""
        sizes = self.sizes[lists]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        rows = np.repeat(self.starts[lists] - starts[:-1], sizes) + np.arange(starts[-1])
        return dataclasses.replace(
            self,
            ids=tuple(self.ids[number] for number in lists),
            starts=starts,
            features=self.features[rows],
            statistics=self.statistics[rows],
            first=None if self.first is None else self.first[rows],
        )

    def with_features(self, names: tuple[str, ...]) -> "Lists":
        """Returns the lists with features of these names [N, F]: 0 where they do not have one."""
        features = np.zeros((len(self.features), len(names)))
        for column, name in enumerate(names):
            if name in self.names:
                features[:, column] = self.features[:, self.names.index(name)]
        return dataclasses.replace(self, names=names, features=features)

    def centred(self) -> np.ndarray:
        """Returns the features less their means over the list, [N, F]."""
        sums = np.add.reduceat(self.features, self.starts[:-1], axis=0)
        return self.features - np.repeat(sums / self.sizes[:, None], self.sizes, axis=0)

    def deviations(self) -> np.ndarray:
        """Computes each feature's standard deviation within lists, [F]; 0 for a constant one."""
        deviation = np.sqrt((self.centred() ** 2).mean(0))
        # The deviation of a constant feature is a rounding error.
        least = 1e-12 * np.maximum(1, np.abs(self.features).max(0, initial=0))
        return np.where(deviation > least, deviation, 0.0)

    def scales(self) -> np.ndarray:
        """Returns the deviations, with 1 for a constant feature."""
        deviations = self.deviations()
        return np.where(deviations > 0, deviations, 1.0)

    def padded(self, values: np.ndarray, fill: float) -> np.ndarray:
        """Returns values [N, ...] as [L, most of a list, ...], `fill` beyond a list's end."""
        shape = (len(self.ids), int(self.sizes.max()), *values.shape[1:])
        array = np.full(shape, fill, values.dtype)
        array[self.owners, np.arange(len(values)) - self.starts[self.owners]] = values
        return array


def first_weights(lists: Lists) -> np.ndarray:
    """Fits weights [F] that score as the first system did, as well as the features allow."""
    # The least-squares fit of its scores within lists, which are exactly its weights if its score
    # is a weighted sum of the features, as a decoder's is.
    if lists.first is None:
        return np.zeros(len(lists.names))
    scores = lists.first[:, None]
    one = dataclasses.replace(lists, features=scores).centred()[:, 0]
    scales = lists.scales()
    weights = np.linalg.lstsq(lists.centred() / scales, one, rcond=1e-10)[0]
    weights[np.abs(weights) < 1e-12 * np.abs(weights).max(initial=0.0)] = 0.0  # a rounding error
    return weights / scales


def unit(weights: np.ndarray) -> np.ndarray:
    """Scales weights [F] to length 1, which does not change any choice; 0 stays 0."""
    return weights / (np.linalg.norm(weights) or 1.0)
