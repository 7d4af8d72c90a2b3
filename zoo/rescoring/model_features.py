"""Features of language models for the hypotheses of n-best lists: log-probabilities, and counts."""

import collections
import dataclasses
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from zoo.errors import UserError
from zoo.rescoring import run_interpolation
from zoo.rescoring.lattice_scores import ACOUSTIC, LANGUAGE, LatticeFolder
from zoo.rescoring.run_interpolation import Interpolation
from zoo.sources.hypotheses import NBestList

if TYPE_CHECKING:
    from zoo.evaluation.run import Run

# Hypotheses that are scored together: enough to fill batches, few enough to hold.
TOGETHER = 8192
WORDS, UNKNOWN, RANK = "words", "unknown", "rank"
# Fields of a hypothesis in JSON.
_FIELDS = ("text", "score")


def check_names(runs: Iterable[str], others: Iterable[str]):
    """Checks that the names of runs can be names of features."""
    others = {*others}
    for name in runs:
        if name in others:
            raise UserError(
                f"the run {name!r} has the name of another feature or field of the lists: rename "
                "its folder, or give a link to it."
            )
        if name.split() != [name] or "|||" in name or "=" in name:
            raise UserError(
                f"the run {name!r} cannot give its name to a feature of the lists: rename its "
                "folder, or give a link to it, without blanks, '=' and '|||'."
            )


@dataclasses.dataclass(frozen=True, eq=False)
class Columns:
    """Features of models, and counts, that are added to each hypothesis."""

    # {name: a run}; each adds NAME, the log-probability of the words and the boundary, nats
    runs: dict[str, "Run"] = dataclasses.field(default_factory=dict)
    word_count: bool = False
    unknown_count: bool = False
    rank: bool = False
    interpolation: Interpolation | None = None
    lattices: LatticeFolder | None = None
    # notes on the shares of unknown words in the lists that features were added to
    notes: list[str | None] = dataclasses.field(default_factory=list)

    def __post_init__(self):
        others = collections.Counter(self.names) - collections.Counter([*self.runs])
        check_names(self.runs, (*others, *_FIELDS, *([LANGUAGE] if self.lattices else [])))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the features that are added, in their order."""
        of_runs = [
            name
            for run in self.runs
            for name in ((run, f"{run}.{UNKNOWN}") if self.unknown_count else (run,))
        ]
        others = (
            (run_interpolation.NAME, self.interpolation is not None),
            (ACOUSTIC, self.lattices is not None),
            (WORDS, self.word_count),
            (RANK, self.rank),
        )
        return (*of_runs, *(name for name, wanted in others if wanted))

    def add(self, lists: Iterable[NBestList]) -> Iterator[NBestList]:
        """Yields the lists with the added features; some thousand hypotheses are held at a time."""
        from zoo.evaluation import sentence_scores

        waiting = iter(lists)
        if not self.names:
            yield from waiting
            return
        scorers = {name: sentence_scores.CachedScores(run) for name, run in self.runs.items()}
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
            yield from self._added(chunk, scorers, of_lattices)
        for name, scorer in scorers.items():
            of = f"the lists, by {name},"
            self.notes.append(sentence_scores.share(scorer.words, scorer.unknown, of))

    def _added(self, chunk, scorers, of_lattices):
        """Yields the lists of a chunk; `of_lattices` keeps the names of lattice features once a
        list was seen."""
        texts = [hypothesis.text for one in chunk for hypothesis in one.hypotheses]
        columns: dict[str, Sequence[float]] = {}
        for name, scorer in scorers.items():
            scores = _scores(scorer, texts)
            columns[name] = scores.log_prob.tolist()
            if self.unknown_count:
                columns[f"{name}.{UNKNOWN}"] = scores.unknown.astype(float).tolist()
        if self.interpolation is not None:
            columns[run_interpolation.NAME] = self._interpolated(texts)
        if self.lattices is not None:
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
                        f"the list {one.id!r} has a feature {name!r} already: rename the folder of "
                        "the run, or leave the option out."
                    )
            yield dataclasses.replace(
                one,
                hypotheses=[
                    dataclasses.replace(
                        hypothesis,
                        features={**hypothesis.features, **dict(zip(columns, row, strict=True))},
                    )
                    for hypothesis, row in zip(
                        one.hypotheses, itertools.islice(values, len(one.hypotheses)), strict=True
                    )
                ],
            )

    def _interpolated(self, texts):
        """Returns log p of texts under the mean of the runs."""
        from zoo.evaluation import sentence_scores

        assert self.interpolation is not None
        run = next(run for name, run in self.runs.items() if name in self.interpolation.weights)
        numbers = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        sentences = [sentence_scores.words_by(run, text) for text in numbers]
        scores = self.interpolation.score(self.runs, sentences, "the n-best lists").tolist()
        return [scores[numbers[text]] for text in texts]


def _scores(scorer, texts):
    """Returns the `SentenceScores` of texts under a run."""
    from zoo.evaluation import sentence_scores

    sentences = [sentence_scores.words_by(scorer.run, text) for text in texts]
    return scorer.score(sentences, "the n-best lists")
