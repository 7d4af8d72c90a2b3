"""Priors that were estimated on a text before it was judged.

A lexicon of all types, or a unigram background over all splits (as in Dymetman and Xiao 2016), is
estimated on the test text too. That is a choice, not a mistake, but a figure must report it.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

from zoo.configuration import component_walk
from zoo.data import Mixed, Source
from zoo.errors import UserError
from zoo.evaluation import overlap
from zoo.experiment import Experiment
from zoo.lexicon import Lexicon
from zoo.priors import TopWords
from zoo.runs.seen_texts import Texts
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
    """Returns the names of the priors that were estimated on the splits of the judged text.

    Args:
      experiment: the recipe, with its source, vocabulary and priors.
      lexicon: that the experiment made.
      split: the name of the text.
      path: its file.
      sentences: of the text, as read. A text that is none of the experiment's splits belongs to the
        splits that are read, in part at least, from the same file, and to the splits that have its
        sentences (see `zoo.evaluation.overlap`).

    Returns:
      A list of "vocabulary" (the choice of the words), "features: NAME" for each feature prior and
      "background: NAME"; empty if none saw the text. `zoo.runs.inherited_texts` tells which texts a
      background from elsewhere (another run, an ARPA file) was estimated on, and which texts the
      start values from another run have seen.
    """
    source, vocabulary = experiment.data, experiment.vocabulary
    of_text = {whole for whole in source.splits() if split in (whole, *source.parts(whole))}
    of_text = of_text or _splits_from(source, path) | _splits_with(source, sentences, lexicon)
    of_files = _splits_of_files(source, getattr(source.within(), "words", ()))
    estimates = {"vocabulary": [vocabulary.splits, *of_files]}
    for prior in vocabulary.features:
        if isinstance(prior, TopWords) and prior.count >= len(lexicon):
            continue  # every word is a feature of its own, whatever the counts are
        of_files = _splits_of_files(source, getattr(prior, "treebanks", ()))
        choices = [*_choices(prior), *of_files]
        estimates.setdefault(f"features: {type(prior).__name__}", []).extend(choices)
    if lexicon.log_background is not None:
        background = vocabulary.background
        estimates[f"background: {type(background).__name__}"] = [*_choices(background)]
    contextual = experiment.head.background
    if contextual is not None and contextual.splits:  # here no split named means none
        estimates[f"background: {type(contextual).__name__}"] = [contextual.splits]
    return [
        name
        for name, choices in estimates.items()
        # Where no split is named, all of them are read.
        if any(of_text & set(splits or source.splits()) for splits in choices)
    ]


def _choices(prior) -> list[tuple[str, ...]]:
    """Returns the `splits` of a prior and of the priors within it."""
    return [
        value
        for path, _, value in component_walk.values(prior)
        if path.rpartition(".")[2] == "splits"
    ]


def _splits_of_files(source: Source, paths: Any) -> list[tuple[str, ...]]:
    """Returns the splits that are read from each file of a field, for files of the source."""
    given = paths if isinstance(paths, tuple) else ()
    return [tuple(splits) for path in given if (splits := _splits_from(source, path))]


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
