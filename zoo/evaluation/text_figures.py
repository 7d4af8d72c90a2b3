"""Perplexities of the splits of a run and of other texts, kept with their passports."""

import pathlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from zoo.data import Corpus
from zoo.data.encoded_text import EncodedText
from zoo.evaluation import item_scores, passport
from zoo.evaluation.perplexity import Scores
from zoo.evaluation.run import Run
from zoo.evaluation.unseen_weight import Mixture
from zoo.sources.evaluation_texts import GivenText


class Judged(NamedTuple):
    """A text scored by a run."""

    run: Run  # under the state policy of the text
    name: str
    corpus: Corpus
    text: EncodedText  # the text as word ids
    scores: Scores
    file: GivenText | None = None  # the text as its file gives it; None for a split

    @property
    def given(self) -> GivenText:
        """The text as its file gives it."""
        return self.file or self.run.given_split(self.name, self.corpus)


class Row(NamedTuple):
    """The perplexity of a text."""

    text: str
    state: str
    sentences: int
    tokens: int
    unknown: int
    log_perplexity: float  # nats per token
    bits: float  # the same in bits
    perplexity: float
    passport: str


def unseen_splits(run: Run) -> list[str]:
    """Returns the splits of a run but the training text, each followed by its parts."""
    data = run.experiment.data
    return [
        part for split in data.splits() if split != "train" for part in (split, *data.parts(split))
    ]


def judge(
    run: Run,
    splits: Iterable[str],
    file: str | None = None,
    state: str | None = None,
    lines: bool = False,
) -> Iterator[Judged]:
    """Scores splits of a run, and then a file, one after another; see `Run.for_text`."""
    for split in splits:
        of_split = run.with_state(state)
        corpus = run.read(split)
        yield Judged(of_split, split, corpus, *of_split.score(corpus))
    if file is not None:
        given = run.given(file)
        of_file, corpus = run.for_text(given, state, lines), given.corpus
        name = f"data:{pathlib.PurePath(file).name}"
        yield Judged(of_file, name, corpus, *of_file.score(corpus), given)


def keep(
    judged: Judged, mixture: Mixture | None = None, scores: bool = True
) -> tuple[dict, pathlib.Path]:
    """Writes the passport of a text's perplexity; returns it and its file."""
    run, name, corpus, text, of_words, _ = judged
    figures = passport.of_text(run, name, corpus, text, of_words, mixture)
    kept = item_scores.of_text(text, of_words, run.lexicon) if scores else None
    return figures, passport.write(run, figures, kept)


def row(record: dict, file: pathlib.Path) -> Row:
    """Returns the figures of a passport."""
    figures = record["figures"]
    return Row(
        record["split"],
        record["policies"]["state"],
        record["data"]["sentences"],
        record["tokens"],
        record["unknown_tokens"],
        figures["log_perplexity"],
        figures["bits"],
        figures["perplexity"],
        str(file),
    )
