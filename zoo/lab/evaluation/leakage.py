"""Priors that were estimated on a text before it was judged.

A lexicon of all types, or a unigram background over all splits (as in Dymetman and Xiao 2016), is
estimated on the test text too. That is a choice, not a mistake, but a figure must report it.
"""

import dataclasses
import functools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from zoo.data import Mixed, Source, Vocabulary
from zoo.errors import UserError
from zoo.experiment import Experiment
from zoo.lab.evaluation.figures import Overlap, OverlapByRole, OverlapCounts
from zoo.lab.runs import seen_texts
from zoo.lab.runs.seen_texts import ROLES, KnowledgeText, SeenTexts, Texts
from zoo.lexicon import Lexicon
from zoo.priors import Background, TopWords
from zoo.sources import files

# The splits of a run with more training words are not read to look for a text in them.
MOST_WORDS = 20_000_000


def priors_that_saw(
    experiment: Experiment,
    lexicon: Lexicon,
    split: str,
    path: str,
    sentences: Sequence[list[str]] = (),
    # with digests of texts whose files may be missing here
    knowledge: Iterable[KnowledgeText] | None = (),
) -> list[str]:
    """Returns the names of the priors that were estimated on the judged text."""
    source = experiment.data
    matches = {name for name in source.splits() if split in (name, *source.parts(name))}
    matches = matches or _splits_from(source, path) | _splits_with(source, sentences, lexicon)
    digest = seen_texts.digest_text(sentences)[0] if sentences and knowledge else None
    recorded = {gave for text in knowledge or () if text.digest == digest for gave in text.gave}
    priors = []
    for part in seen_texts.word_sources(experiment):
        if isinstance(part.prior, TopWords) and part.prior.count >= len(lexicon):
            continue  # all words are on top, whatever the counts are
        if isinstance(part.prior, Background) and lexicon.log_background is None:
            continue  # the model does not use it
        # Where no split is named, all of them are read.
        split_groups = [splits or source.splits() for splits in part.splits]
        is_seen = part.gave in recorded or any(matches & {*splits} for splits in split_groups)
        for treebank in () if is_seen else part.treebanks:
            splits = _splits_from(source, treebank)
            is_seen |= bool(matches & splits) or (
                not splits and _has(treebank, experiment.vocabulary, sentences)
            )
        if is_seen:
            priors.append(part.gave)
    return [*dict.fromkeys(priors)]


def _has(treebank: str, vocabulary: Vocabulary, sentences) -> bool:
    """Whether a treebank contains a text's sentences; False if it cannot be read."""
    try:
        texts = _texts_of(treebank, vocabulary)
    except UserError:
        return False
    return bool(sentences) and overlap(sentences, texts).is_seen


@functools.lru_cache(maxsize=8)
def _texts_of(treebank: str, vocabulary: Vocabulary) -> Texts:
    return Texts.from_text(treebank, seen_texts.read_treebank(treebank, vocabulary))


def _splits_from(source: Source, path: str) -> set[str]:
    """Returns the splits of a source that are read from the file at `path` or from a part of it."""
    source = source.within()
    if isinstance(source, Mixed):
        parts = {
            f"{name}.{split}"
            for name, corpus in zip(source.names, source.corpora, strict=True)
            for split in _splits_from(corpus, path)
        }
        return {split for split in source.splits() if parts & {split, *source.parts(split)}}
    fields = {field.name for field in dataclasses.fields(source)}
    if not {"train", "validation", "tests"} <= fields:
        return set()  # the source does not read files
    reader: Any = source
    paths = zip(source.splits(), (reader.train, reader.validation, *reader.tests), strict=True)
    # Pairs are read from two files.
    split_files = ((split, file if isinstance(file, tuple) else (file,)) for split, file in paths)
    return {split for split, names in split_files if _file(path) in map(_file, names)}


def _splits_with(source: Source, sentences, lexicon: Lexicon) -> set[str]:
    """Returns the splits of a source that contain a text's sentences, whatever their files are."""
    splits: set = set()
    if not sentences or lexicon.counts.sum() > MOST_WORDS:
        return splits
    for split in source.splits():
        try:
            texts = Texts.from_text(split, source.read(split).sentences)
        except UserError:  # its file is missing
            continue
        if overlap(sentences, texts).is_seen:
            splits.add(split)
    return splits


def _file(path: str):
    """Resolves a path without its range to its file; keeps the path if the file is missing."""
    path = files.Part.parse(path).path
    try:
        return files.locate(path).resolve()
    except UserError:
        return path


# ---- overlap of a judged text with the texts that a model has seen, by the content of sentences

# The least number of letters of a long sentence.
LETTERS = 30


def overlap_by_role(sentences: Sequence[list[str]], seen: SeenTexts) -> OverlapByRole:
    """Counts how much of a text is among the texts seen in each role."""
    return OverlapByRole(LETTERS, *(overlap(sentences, getattr(seen, role)) for role in ROLES))


def overlap(sentences: Sequence[list[str]], texts: Texts) -> Overlap:
    """Counts the sentences of a text that are among others."""
    spelled = [(text, len(words)) for words in sentences if (text := seen_texts.letters(words))]
    long = np.array([len(text) >= LETTERS for text, _ in spelled], bool)
    tokens = np.array([count for _, count in spelled], np.int64)
    is_present = np.isin(seen_texts.hash_letters(text for text, _ in spelled), texts.hashes)
    counts = []
    for chosen in (np.ones_like(is_present), long):
        shared = is_present & chosen
        numbers = shared.sum(), chosen.sum(), tokens[shared].sum(), tokens[chosen].sum()
        counts.append(OverlapCounts(*map(int, numbers)))
    return Overlap(*counts)
