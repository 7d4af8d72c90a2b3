"""The first sentences of a text with the predictions of a run."""

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from zoo.data.encoded_text import EncodedText
from zoo.evaluation import best_words, feature_contributions, surprisal
from zoo.evaluation.best_words import BestWords
from zoo.evaluation.feature_contributions import Contributions
from zoo.evaluation.perplexity import Scores
from zoo.evaluation.run import Run
from zoo.heads import LogLinear
from zoo.sources import evaluation_texts
from zoo.sources.evaluation_texts import GivenText

# Best words at a position, and words of a text that are shown at most.
BEST, WORDS = 5, 1500


class Shown(NamedTuple):
    """A text with the predictions of a run.

    Attributes:
      name: of the text.
      rows: a row for each token and boundary.
      text: as word ids.
      best: log p of its words, and the best words, at each position.
      features: contributions at each position; None without a log-linear head.
      why: why there are no contributions; "" if there are.
      words: the lexicon.
      sources: of translations; else None.
    """

    name: str
    rows: list[surprisal.Row]
    text: EncodedText
    best: BestWords
    features: list[Contributions] | None
    why: str
    words: tuple[str, ...]
    sources: list[list[str]] | None


def predict(run: Run, name: str, file: str | None, sentences: int) -> Shown:
    """Predicts the words of a text.

    Args:
      run: whose predictions are shown.
      name: of the split.
      file: a text in place of the split; None for the split.
      sentences: how many of its first sentences are shown.

    Raises:
      UserError: the text cannot be read.
    """
    if file is not None:
        given = first_sentences(run, run.given(file), sentences)
    else:
        given = first_sentences(run, run.given_split(name, run.read(name)), sentences)
    corpus = given.corpus
    encoded, states = best_words.states(run, corpus)
    best = best_words.best_words(run, encoded, states, BEST)
    counted = encoded.counted & states.predicted
    rows = surprisal.rows(given, encoded, Scores(best.log_prob, counted), run.lexicon)
    shown = [surprisal.Row(*row[: len(surprisal.COLUMNS)]) for row in rows]
    features, why = _features(run, encoded, states)
    sources = None if corpus.source_text is None else corpus.source_text.sentences
    return Shown(
        file or f"{name}, {corpus.name}",
        shown,
        encoded,
        best,
        features,
        why,
        run.lexicon.words,
        sources,
    )


def first_sentences(run: Run, given: GivenText, sentences: int) -> GivenText:
    """Returns the first sentences of a text, as far as the page has room for their words.

    Args:
      run: that reads the text.
      given: the text.
      sentences: their number at most.
    """
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
    return feature_contributions.of_words(head, params, run.tables["head"], *arguments), ""
