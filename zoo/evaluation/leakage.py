"""Priors that were estimated on a text before it was judged.

A lexicon of all types, or a unigram background over all splits (as in Dymetman and Xiao 2016), is
estimated on the test text too. That is a choice, not a mistake, but a figure must report it.
"""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

from zoo.data import Mixed, Source, Vocabulary
from zoo.errors import UserError
from zoo.evaluation import overlap
from zoo.experiment import Experiment
from zoo.lexicon import Lexicon
from zoo.priors import Background, TopWords
from zoo.runs import word_sources
from zoo.runs.seen_texts import Texts
from zoo.runs.word_sources import WordSource
from zoo.sources import files

# The splits of a run with more training words are not read to look for a text in them.
MOST_WORDS = 20_000_000


def priors_that_saw(
    experiment: Experiment,
    lexicon: Lexicon,
    split: str,
    path: str,
    sentences: Sequence[list[str]] = (),
) -> list[str]:
    """Returns the names of the priors that were estimated on the splits of the judged text."""
    source = experiment.data
    of_text = {whole for whole in source.splits() if split in (whole, *source.parts(whole))}
    of_text = of_text or _splits_from(source, path) | _splits_with(source, sentences, lexicon)

    def saw(part: WordSource) -> bool:
        of_treebanks = [_splits_from(source, treebank) for treebank in part.treebanks]
        # Where no split is named, all of them are read.
        read = [splits or source.splits() for splits in part.splits] + of_treebanks
        others = [
            treebank
            for treebank, splits in zip(part.treebanks, of_treebanks, strict=True)
            if not splits
        ]
        return any(of_text & {*splits} for splits in read) or any(
            _has(treebank, experiment.vocabulary, sentences) for treebank in others
        )

    parts = [part for part in word_sources.of_experiment(experiment) if _estimated(part, lexicon)]
    return [*dict.fromkeys(part.gave for part in parts if saw(part))]


def _estimated(part: WordSource, lexicon: Lexicon) -> bool:
    """Whether a part of a recipe is used by the model and depends on the texts it is made from."""
    prior = part.prior
    if isinstance(prior, TopWords):  # if all words are on top, whatever the counts are
        return prior.count < len(lexicon)
    return not (isinstance(prior, Background) and lexicon.log_background is None)


def _has(treebank: str, vocabulary: Vocabulary, sentences) -> bool:
    """Whether a treebank contains a text's sentences; False if it cannot be read."""
    try:
        texts = _texts_of(treebank, vocabulary)
    except UserError:
        return False
    return bool(sentences) and overlap.is_seen(overlap.found_in(sentences, texts))


@functools.lru_cache(maxsize=8)
def _texts_of(treebank: str, vocabulary: Vocabulary) -> Texts:
    return Texts.of(treebank, word_sources.sentences_of(treebank, vocabulary))


def _splits_from(source: Source, path: str) -> set[str]:
    """Returns the splits of a source that are read from the file at `path` or from a part of it."""
    source = source.within()
    if isinstance(source, Mixed):
        parts = {
            f"{name}.{split}"
            for name, corpus in zip(source.names, source.corpora, strict=True)
            for split in _splits_from(corpus, path)
        }
        return {whole for whole in source.splits() if parts & {whole, *source.parts(whole)}}
    fields = {field.name for field in dataclasses.fields(source)}
    if not {"train", "validation", "tests"} <= fields:
        return set()  # the source does not read files
    given: Any = source
    paths = zip(source.splits(), (given.train, given.validation, *given.tests), strict=True)
    # Pairs are read from two files.
    several = ((split, other if isinstance(other, tuple) else (other,)) for split, other in paths)
    return {split for split, others in several if _file(path) in map(_file, others)}


def _splits_with(source: Source, sentences, lexicon: Lexicon) -> set[str]:
    """Returns the splits of a source that contain a text's sentences, whatever their files are."""
    splits: set = set()
    if not sentences or lexicon.counts.sum() > MOST_WORDS:
        return splits
    for split in source.splits():
        try:
            texts = Texts.of(split, source.read(split).sentences)
        except UserError:  # its file is missing
            continue
        if overlap.is_seen(overlap.found_in(sentences, texts)):
            splits.add(split)
    return splits


def _file(path: str):
    """Resolves a path without its range to its file; keeps the path if the file is missing."""
    path = files.Part.parse(path).path
    try:
        return files.locate(path).resolve()
    except UserError:
        return path
