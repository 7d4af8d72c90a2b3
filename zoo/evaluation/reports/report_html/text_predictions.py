"""The first sentences of a text with the predictions of a run."""

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from zoo.data.encoded_text import EncodedText
from zoo.errors import UserError
from zoo.evaluation import best_words
from zoo.evaluation.best_words import BestWords, Contributions
from zoo.evaluation.perplexity import Scores
from zoo.evaluation.reports.report_html.subjects import Subject
from zoo.evaluation.run import Run
from zoo.heads import LogLinear
from zoo.sources import evaluation_texts
from zoo.sources.evaluation_texts import GivenText

# Best words at a position, and words of a text that are shown at most.
BEST, WORDS = 5, 1500


class Shown(NamedTuple):
    """A text with the predictions of a run."""

    run: str
    number: int
    name: str
    rows: list[best_words.Row]
    text: EncodedText  # as word ids
    best: BestWords
    features: list[Contributions] | None
    why: str
    words: tuple[str, ...]
    sources: list[list[str]] | None
    of_characters: bool


def predict(subject: Subject, split: str | None, file: str | None, sentences: int) -> Shown:
    """Predicts the words of a text."""
    if subject.run is None:
        raise UserError(subject.no_run)
    run, name = subject.run, subject.text_name(split)
    if file is not None:
        given = run.given(file)
        run = run.for_text(given, None, lines=True)
    else:
        given = run.given_split(name, run.read(name))
    given = first_sentences(run, given, sentences)
    corpus = given.corpus
    encoded, states = best_words.states(run, corpus)
    best = best_words.best_words(run, encoded, states, BEST)
    scores = Scores(best.log_prob, encoded.counted & states.predicted)
    rows = best_words.rows(given, encoded, scores, run.lexicon)
    features, why = _features(run, encoded, states)
    return Shown(
        run=subject.name,
        number=subject.number,
        name=file or f"{name}, {corpus.name}",
        rows=[best_words.Row(*row[: len(best_words.COLUMNS)]) for row in rows],
        text=encoded,
        best=best,
        features=features,
        why=why,
        words=run.lexicon.words,
        sources=None if corpus.source_text is None else corpus.source_text.sentences,
        of_characters=run.lexicon.of_characters,
    )


def first_sentences(run: Run, given: GivenText, sentences: int) -> GivenText:
    """Returns the first sentences of a text, as far as the page has room for their words."""
    lengths = np.cumsum([len(sentence.words) for sentence in given.judged])
    count = min(sentences, max(1, int((lengths <= WORDS).sum())))
    if given.source is None:
        return dataclasses.replace(given, sentences=given.judged[:count])
    cut = best_words.first_sentences(given.source, count)
    cut = dataclasses.replace(
        cut, features=None, sentences=[sentence[:WORDS] for sentence in cut.sentences]
    )
    return evaluation_texts.of_corpus(cut, "" if run.lexicon.of_characters else " ")


def _features(run, encoded, states):
    """Returns (contributions at each position, why there are none)."""
    model: Any = run.experiment.model
    head = model.head
    if not isinstance(head, LogLinear):
        return None, f"a {type(head).__name__} does not have features of words."
    arguments = run.lexicon, states.hidden, encoded.words, states.context
    params = model.head_params(run.params)
    return best_words.of_words(head, params, run.tables["head"], *arguments), ""
