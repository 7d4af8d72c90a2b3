"""Features of language models for the hypotheses of n-best lists: log-probabilities, and counts."""

import collections
import dataclasses
import glob
import math
import operator
import pathlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from zoo.errors import UserError, shortened
from zoo.lab.evaluation import sentence_scores, unknown_words
from zoo.lab.evaluation.nbest import NBestList
from zoo.lab.evaluation.run import Run
from zoo.lab.rescoring import run_interpolation
from zoo.lab.rescoring.lattices import Lattice, read_lattices
from zoo.lab.rescoring.run_interpolation import Interpolation
from zoo.priors.arpa import SentenceScorer
from zoo.sources import files

# Hypotheses scored together: enough to fill batches, few enough for memory. From PROGRESS_SIZE
# hypotheses on, progress is reported.
BATCH_SIZE, PROGRESS_SIZE = 8192, 1000
WORDS, UNKNOWN, RANK = "words", "unknown", "rank"
# Fields of a hypothesis in JSON.
_FIELDS = ("text", "score")


# ---- acoustic and language scores of n-best hypotheses, read from the recogniser's lattices
# They are separate on the best path with a hypothesis's words, by the recogniser's own score
# sum (acoustic_scale * a + language_scale * l + word_penalty a word): each can be weighed anew.

ACOUSTIC, LANGUAGE = "acoustic", "language"


class PathScores(NamedTuple):
    """Scaled scores of a path through a lattice, nats; `score` is the recogniser's total."""

    score: float
    acoustic: float
    language: float


def best_scores(lattice: Lattice, sentences: Sequence[Sequence[str]]) -> list[PathScores | None]:
    """Returns for each sentence the scores of the best path with its words, None without a path."""
    # All sentences are followed along the lattice together, as a tree of their prefixes.
    tree: list[dict[str, int]] = [{}]
    leaves = []
    for words in sentences:
        prefix = 0
        for token in words:
            if token not in tree[prefix]:
                tree[prefix][token] = len(tree)
                tree.append({})
            prefix = tree[prefix][token]
        leaves.append(prefix)
    links = collections.defaultdict(list)
    for link in lattice.links:
        acoustic = lattice.acoustic_scale * link.acoustic
        language = lattice.language_scale * link.language
        score = acoustic + language + lattice.word_penalty * (link.word is not None)
        links[link.start].append((link.word, link.end, PathScores(score, acoustic, language)))
    # The best scores at each node, {prefix: scores}.
    reached: list[dict[int, PathScores]] = [{} for _ in range(lattice.nodes)]
    reached[0][0] = PathScores(0.0, 0.0, 0.0)
    for node in range(lattice.nodes - 1):  # no link goes back
        for prefix, scores in reached[node].items():
            for word, end, link_scores in links[node]:
                next_prefix = prefix if word is None else tree[prefix].get(word)
                if next_prefix is None:
                    continue
                path = PathScores(*map(operator.add, scores, link_scores))
                rival = reached[end].get(next_prefix)
                if math.isfinite(path.score) and (rival is None or path.score > rival.score):
                    reached[end][next_prefix] = path
        reached[node] = {}
    return [reached[-1].get(leaf) for leaf in leaves]


@dataclasses.dataclass(frozen=True)
class LatticeFolder:
    """A folder with a file for each lattice, ID.slf, ID.slf.gz or another ending."""

    path: str

    def read(self, id: str) -> Lattice:
        """Reads the lattice of the list with an id; raises UserError unless there is exactly
        one."""
        folder = files.find(self.path)
        members = folder.glob(f"{glob.escape(id)}.*") if pathlib.PurePath(id).name == id else ()
        lattice_files = [*filter(pathlib.Path.is_file, members)]
        if len(lattice_files) != 1:
            raise UserError(
                f"{folder} has {len(lattice_files)} files for the list {shortened(id, 80)!r}: give "
                "a folder with one lattice a list, ID.slf or ID.slf.gz."
            )
        lattices = [*read_lattices(str(lattice_files[0]), id)]
        if len(lattices) != 1:
            raise UserError(f"{lattice_files[0]} has {len(lattices)} lattices: give one a file.")
        return lattices[0]

    def features(self, nbest: NBestList) -> dict[str, list[float]]:
        """Returns {feature: value of each hypothesis}; raises UserError if no hypothesis is a path.

        The features are "acoustic", and "language" if links have language scores. A hypothesis
        without a path gets the lowest value of the list.
        """
        lattice = self.read(nbest.id)
        scores = best_scores(lattice, [hypothesis.words for hypothesis in nbest.hypotheses])
        path_scores = [path for path in scores if path is not None]
        if not path_scores:
            raise UserError(
                f"no hypothesis of the list {shortened(nbest.id, 80)!r} (line "
                f"{nbest.hypotheses[0].line}) is a path of its lattice in {self.path}: give "
                "the lattices from which the lists were made."
            )
        names = (ACOUSTIC, *([LANGUAGE] if any(link.language for link in lattice.links) else []))
        lowest = {name: min(getattr(path, name) for path in path_scores) for name in names}
        return {
            name: [low if path is None else getattr(path, name) for path in scores]
            for name, low in lowest.items()
        }


# ---- features of any kind


def check_model_names(model_names: Iterable[str], reserved_names: Iterable[str]):
    """Raises UserError for a model name that is reserved, or has blanks, '=' or '|||'."""
    reserved_names = {*reserved_names}
    for name in model_names:
        if name in reserved_names:
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
    # called with a description of the work if there are `PROGRESS_SIZE` hypotheses or more
    tell: Callable[[str], object] = str

    def __post_init__(self):
        """Raises UserError if names of features collide or are malformed."""
        models = {**self.runs, **self.ngrams}
        reserved = collections.Counter(self.names) - collections.Counter([*models])
        check_model_names(models, (*reserved, *_FIELDS, *([LANGUAGE] if self.lattices else [])))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the added features; lattices may add "language" besides, which is not listed."""
        model_columns = [
            name
            for model in (*self.runs, *self.ngrams)
            for name in ((model, f"{model}.{UNKNOWN}") if self.unknown_count else (model,))
        ]
        optional_columns = (
            (run_interpolation.NAME, self.interpolation is not None),
            (ACOUSTIC, self.lattices is not None),
            (WORDS, self.word_count),
            (RANK, self.rank),
        )
        return (*model_columns, *(name for name, is_added in optional_columns if is_added))

    def add(self, lists: Iterable[NBestList]) -> Iterator[NBestList]:
        """Yields the lists with the added features, some thousand hypotheses at a time; at the end
        fills `notes`. Raises UserError if a list has such a feature already."""
        remaining = iter(lists)
        if not self.names:
            yield from remaining
            return
        counts = {name: np.zeros(2, np.int64) for name in (*self.runs, *self.ngrams)}
        phrases: dict[str, dict] = {name: {} for name in self.runs}
        for run in self.runs.values():
            sentence_scores.check_hypotheses(run)
        if self.interpolation is not None:
            self.interpolation.check(self.runs)
        lattice_features: list[str] = []
        for first_list in remaining:
            batch, size = [first_list], len(first_list.hypotheses)
            while size < BATCH_SIZE and (nbest := next(remaining, None)) is not None:
                batch.append(nbest)
                size += len(nbest.hypotheses)
            yield from self._add_to_batch(batch, counts, phrases, lattice_features)
        for name, totals in counts.items():
            words, unknown = totals.tolist()
            self.notes.append(unknown_words.describe_share(words, unknown, "the lists", name))
        for name, run in self.runs.items():
            self.notes.extend(unknown_words.unknown_notes(run, [*map(list, phrases[name])]))

    def _add_to_batch(self, batch, counts, phrases, lattice_features):
        """Yields the lists of a batch with the added features.

        Words go to `counts`, words for notes to `phrases`; the first batch fills `lattice_features`
        with the features of its first list.
        """
        texts = [hypothesis.text for nbest in batch for hypothesis in nbest.hypotheses]
        columns: dict[str, Sequence[float]] = {}
        tell = self.tell if len(texts) >= PROGRESS_SIZE else str
        for name, model in {**self.runs, **self.ngrams}.items():
            tell(f"scoring {len(texts):,} hypotheses under {name}")
            log_prob, words, unknown = _score_texts(model, texts, phrases.get(name))
            counts[name] += int(words.sum()), int(unknown.sum())
            columns[name] = log_prob.tolist()
            if self.unknown_count:
                columns[f"{name}.{UNKNOWN}"] = unknown.astype(float).tolist()
        if self.interpolation is not None:
            run = next(self.runs[name] for name in self.runs if name in self.interpolation.weights)
            sentences = [sentence_scores.words_by(run, text) for text in texts]
            log_prob = self.interpolation.score(self.runs, sentences, "the n-best lists")
            columns[run_interpolation.NAME] = log_prob.tolist()
        if self.lattices is not None:
            tell(f"reading the lattices of {len(batch):,} lists")
            features_by_list = [self.lattices.features(nbest) for nbest in batch]
            lattice_features += [] if lattice_features else [*features_by_list[0]]
            for name in lattice_features:
                columns[name] = [
                    value
                    for nbest, list_features in zip(batch, features_by_list, strict=True)
                    for value in list_features.get(name, [0.0] * len(nbest.hypotheses))
                ]
        if self.word_count:
            columns[WORDS] = [float(len(text.split())) for text in texts]
        if self.rank:
            ranks = [rank for nbest in batch for rank, _ in enumerate(nbest.hypotheses, 1)]
            columns[RANK] = [-math.log(rank) for rank in ranks]
        values = zip(*columns.values(), strict=True)
        for nbest in batch:
            for name in columns:
                if name in nbest.hypotheses[0].features:
                    raise UserError(
                        f"the list {nbest.id!r} has a feature {name!r} already: rename the "
                        "model's folder or file, or leave the option out."
                    )
            hypotheses = []
            for hypothesis in nbest.hypotheses:
                features = {**hypothesis.features, **dict(zip(columns, next(values), strict=True))}
                hypotheses.append(dataclasses.replace(hypothesis, features=features))
            yield dataclasses.replace(nbest, hypotheses=hypotheses)


def _score_texts(model, texts, phrases):
    """Scores texts by a run or an n-gram model: (log p in nats, words, unknown words) of each; adds
    a run's words for notes to `phrases`."""
    if isinstance(model, SentenceScorer):
        return model.score(texts)
    sentences = [sentence_scores.words_by(model, text) for text in texts]
    phrases |= unknown_words.phrases(model, sentences)
    scores = sentence_scores.score(model, sentences, "the n-best lists")
    return scores.log_prob, scores.words, scores.unknown


# ---- N-best lists as arrays: features and statistics of every hypothesis, in the order of the file


@dataclasses.dataclass(frozen=True, eq=False)
class Lists:
    """L lists of N hypotheses in all, of F features and S statistics.

    Attributes:
      ids: ids of the lists, L.
      names: names of the features, F.
      starts: int64 [L + 1]: the hypotheses of list l are rows starts[l] to starts[l + 1].
      features: float64 [N, F].
      statistics: float64 [N, S], of a metric; see `metrics`.
      system_scores: float64 [N], the scores of the system that made the lists, larger is better;
        None without scores. The system's best hypothesis is the first of a list in any case.

    Example:
      >>> lists.choose(np.array([1.0, -3])).tolist()  # the second hypothesis of each list
      [1, 3]
    """

    ids: tuple[str, ...]
    names: tuple[str, ...]
    starts: np.ndarray
    features: np.ndarray
    statistics: np.ndarray
    system_scores: np.ndarray | None = None

    @property
    def sizes(self) -> np.ndarray:
        """Hypotheses of each list, int64 [L]."""
        return np.diff(self.starts)

    @property
    def owners(self) -> np.ndarray:
        """The position of the list of each hypothesis, int64 [N]."""
        return np.repeat(np.arange(len(self.ids)), self.sizes)

    def best_rows(self, scores: np.ndarray) -> np.ndarray:
        """Returns the row with the highest score of each list, int64 [L], the first of equals."""
        best = np.maximum.reduceat(scores, self.starts[:-1])
        rows = np.where(scores == np.repeat(best, self.sizes), np.arange(len(scores)), len(scores))
        return np.minimum.reduceat(rows, self.starts[:-1])

    def first_rows(self) -> np.ndarray:
        """Returns the row of the first hypothesis of each list, int64 [L]."""
        return self.starts[:-1]

    def choose(self, weights: np.ndarray) -> np.ndarray:
        """Returns the row of each list's best hypothesis by feature weights [F], int64 [L]."""
        return self.best_rows(self.features @ weights)

    def subset(self, lists: np.ndarray) -> "Lists":
        """Returns the lists at these positions, int64 [lists]."""
        sizes = self.sizes[lists]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        rows = np.repeat(self.starts[lists] - starts[:-1], sizes) + np.arange(starts[-1])
        return dataclasses.replace(
            self,
            ids=tuple(self.ids[number] for number in lists),
            starts=starts,
            features=self.features[rows],
            statistics=self.statistics[rows],
            system_scores=None if self.system_scores is None else self.system_scores[rows],
        )

    def with_features(self, names: tuple[str, ...]) -> "Lists":
        """Returns the lists with exactly these features; a feature that they do not have is 0."""
        features = np.zeros((len(self.features), len(names)))
        for column, name in enumerate(names):
            if name in self.names:
                features[:, column] = self.features[:, self.names.index(name)]
        return dataclasses.replace(self, names=names, features=features)

    def centred_features(self) -> np.ndarray:
        """Returns the features minus their means over each list, [N, F]."""
        sums = np.add.reduceat(self.features, self.starts[:-1], axis=0)
        return self.features - np.repeat(sums / self.sizes[:, None], self.sizes, axis=0)

    def deviations(self) -> np.ndarray:
        """Computes each feature's standard deviation within lists, [F]; 0 for constant features."""
        deviation = np.sqrt((self.centred_features() ** 2).mean(0))
        # The deviation of a constant feature is a rounding error.
        rounding_error = 1e-12 * np.maximum(1, np.abs(self.features).max(0, initial=0))
        return np.where(deviation > rounding_error, deviation, 0.0)

    def scales(self) -> np.ndarray:
        """Returns the standard deviations within lists [F], with 1 for a constant feature."""
        deviations = self.deviations()
        return np.where(deviations > 0, deviations, 1.0)

    def padded(self, values: np.ndarray, fill: float) -> np.ndarray:
        """Arranges values [N, ...] as [L, longest list, ...], with `fill` beyond a list's end."""
        shape = (len(self.ids), int(self.sizes.max()), *values.shape[1:])
        array = np.full(shape, fill, values.dtype)
        array[self.owners, np.arange(len(values)) - self.starts[self.owners]] = values
        return array


def fit_system_weights(lists: Lists) -> np.ndarray:
    """Fits weights [F] by least squares to the system's scores of the lists; 0 without scores."""
    # The least-squares fit of the scores within lists. It gives exactly the system's weights if its
    # score is a weighted sum of the features, as a decoder's is.
    if lists.system_scores is None:
        return np.zeros(len(lists.names))
    scores = lists.system_scores[:, None]
    centred_scores = dataclasses.replace(lists, features=scores).centred_features()[:, 0]
    scales = lists.scales()
    weights = np.linalg.lstsq(lists.centred_features() / scales, centred_scores, rcond=1e-10)[0]
    weights[np.abs(weights) < 1e-12 * np.abs(weights).max(initial=0.0)] = 0.0  # a rounding error
    return weights / scales


def normalise(weights: np.ndarray) -> np.ndarray:
    """Scales weights [F] to length 1, which does not change any choice; zeros stay."""
    return weights / (np.linalg.norm(weights) or 1.0)
