"""Features and backgrounds for a lexicon of the user's own, without a source or a run."""

import collections
import dataclasses
import functools
import itertools
import operator
from collections.abc import Iterable, Sequence

import numpy as np

from zoo import lexicon as lexicons
from zoo.data.encoded_text import EncodedText
from zoo.lexicon import Lexicon
from zoo.priors import Background, FeaturePrior
from zoo.priors.contextual import Contextual
from zoo.priors.prior import check_background, check_features
from zoo.sources.source import Corpus, Counted


def with_priors(
    lexicon: Lexicon,
    features: Sequence[FeaturePrior],
    background: Background | None = None,
    *,
    sentences: Iterable[Sequence[str]] | None = None,
) -> Lexicon:
    """Adds the features of priors, and a background, to a lexicon.

    Args:
      lexicon: the words.
      features: priors that give the features of words, such as (priors.TopWords(1000),
        priors.Affixes()).
      background: the prior probabilities of words, such as priors.Unigram(); None: uniform.
      sentences: training text, in which priors count words; None: they use the lexicon's counts.

    Raises:
      UserError: a prior raises it, for instance because there is nothing to count.

    Example:
      >>> words = Lexicon.from_counts({"the": 5, "cat": 2, "sat": 1})
      >>> data.with_priors(words, (priors.TopWords(1),), priors.Unigram()).features_of(1)
      {'Word:@not_top': 1.0}
    """
    if sentences is None:
        counts = collections.Counter(dict(zip(lexicon.words, lexicon.counts.tolist(), strict=True)))
        corpus: Corpus = Counted("the lexicon", [list(lexicon.words)], counts=counts)
    else:
        encoded = encode(lexicon, sentences)
        ends = np.append(encoded.starts, len(encoded.words))
        seen = [lexicon.words[word_id] for word_id in encoded.words]
        corpus = Corpus("sentences", [seen[a:b] for a, b in itertools.pairwise(ends)])
    return estimated(lexicon, features, background, {"train": corpus}, {})


def estimated(lexicon, features, background, corpora, entries, trained=None) -> Lexicon:
    """Adds features and a background to a lexicon, estimated on corpora as a model sees them."""
    words = lexicon.words
    parts = [prior.features(words, corpora, entries) for prior in features]
    for prior, part in zip(features, parts, strict=True):
        check_features(prior, words, part)
    of_words = [functools.reduce(operator.or_, word) for word in zip(*parts, strict=True)]
    names = None
    if trained is not None:
        names = trained.feature_names
        of_words[: len(trained)] = map(trained.features_of, range(len(trained)))
    log_background = None
    if background is not None:
        log_background = np.asarray(background.log_probs(words, corpora), np.float64)
        check_background(background, words, log_background)
    return lexicons.with_features(lexicon, of_words, log_background, names)


def with_background(
    lexicon: Lexicon, background: Contextual, sentences: Iterable[Sequence[str]]
) -> Lexicon:
    """Adds the tables of a contextual background, estimated on text or read, to a lexicon.

    Args:
      lexicon: the words.
      background: the background of a head, such as priors.NGram(order=3).
      sentences: sentences of the background's training text, without boundaries, which are added
        if the lexicon has a boundary word.

    Raises:
      ValueError: a word is not in the lexicon, and the lexicon does not have an unknown word.

    Example:
      >>> from zoo import heads
      >>> text = [["the", "cat", "sat"], ["the", "cat"]]
      >>> head = heads.LogLinear(background=priors.NGram(order=2))
      >>> words = Lexicon.from_counts({"the": 2, "cat": 2, "sat": 1}, boundary="</s>")
      >>> known = data.with_background(words, head.background, text)
      >>> sorted(known.background_tables)[:2]
      ['backoff', 'levels']
    """
    text = encode(lexicon, sentences)
    prepared = background.prepare(lexicon, dict.fromkeys(background.splits, text))
    return dataclasses.replace(lexicon, background_tables=prepared)


def encode(lexicon: Lexicon, sentences: Iterable[Sequence[str]]) -> EncodedText:
    """Encodes sentences as word ids, with a boundary after each if the lexicon has one."""
    end = [] if lexicon.boundary is None else [lexicon.boundary]
    of_sentences = [lexicon.encode([*sentence, *end]) for sentence in sentences]
    lengths = np.array([len(ids) for ids in of_sentences], np.int64)
    words = np.concatenate([np.zeros(0, np.int32), *of_sentences])
    known = np.ones(len(words), bool)
    return EncodedText(words, known, known, np.cumsum(lengths) - lengths)
