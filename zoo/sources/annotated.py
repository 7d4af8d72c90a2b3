"""Pairs whose unknown words are marked for training; see `zoo.alignment.unknown_words`."""

import collections
from collections.abc import Container, Sequence

from zoo.alignment import UnknownWords
from zoo.errors import UserError
from zoo.sources.alignments import read_alignments
from zoo.sources.corpus import Corpus


def most_frequent(sentences: Sequence[Sequence[str]], size: int) -> frozenset[str]:
    """The most frequent words; of equally frequent ones the first in order of code points."""
    counts = collections.Counter(word for sentence in sentences for word in sentence)
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return frozenset(word for word, _ in ranked[:size])


def annotate(
    corpus: Corpus,
    strategy: UnknownWords,
    known: tuple[Container[str], Container[str]],
    alignments: str | None,
) -> Corpus:
    """A corpus of pairs as training sees it.

    Args:
      corpus: translations with their sources as `source_text`.
      strategy: how unknown words are marked.
      known: the source and target words that are not.
      alignments: a file of links, a line a pair; None leaves the translations as they are, and the
        sources are marked alone.

    Raises:
      UserError: the alignments are not of these pairs, or a text has a word that is a mark.
    """
    source = corpus.source_text
    if source is None:
        raise ValueError(f"{corpus.name} has no sources")
    sources = [strategy.annotate_source(words, known[0]) for words in source.sentences]
    targets = corpus.sentences
    if alignments is not None:
        links = read_alignments(alignments, source.sentences, targets)
        pairs = enumerate(zip(source.sentences, targets, links, strict=True), 1)
        targets = [_target(strategy, *pair, known, corpus, number) for number, pair in pairs]
    return Corpus(corpus.name, targets, source_text=Corpus(source.name, sources))


def _target(strategy, source, target, links, known, corpus, number):
    try:
        return strategy.annotate(source, target, links, *known)[1]
    except ValueError as error:  # a word of the text is a mark; links were checked with their file
        raise UserError(f"{corpus.name}, pair {number}: {error}.") from error
