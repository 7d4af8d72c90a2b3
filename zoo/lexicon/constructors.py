"""Lexicons from word counts, from a tokenizer, and from a data set."""

from __future__ import annotations

import collections
import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from zoo.lexicon.lexicon import Lexicon

# Attributes of tokenizers for the token between texts, in the order in which they are tried.
BOUNDARIES = ("eos_token", "sep_token")


def from_counts(
    lexicon_class: type[Lexicon],
    counts: Mapping[str, int],
    *,
    unknown: str | None = None,
    boundary: str | None = None,
    minimum_count: int = 1,
    maximum_size: int = 0,
) -> Lexicon:
    """Makes a lexicon from word counts; see `Lexicon.from_counts`."""
    for word, count in counts.items():
        if not isinstance(count, numbers.Integral) or count < 0:
            raise ValueError(f"counts has {count!r} for {word!r}: give whole numbers, at least 0")
    for name, limit in {"minimum_count": minimum_count, "maximum_size": maximum_size}.items():
        if limit < 0:
            raise ValueError(f"{name} is {limit}: give at least 0")
    marks = [mark for mark in (boundary, unknown) if mark is not None]
    others = collections.Counter({word: n for word, n in counts.items() if word not in marks})
    kept = [word for word, count in others.most_common() if count >= minimum_count]
    if maximum_size:
        kept = kept[: max(0, maximum_size - len(marks))]
    words = (*marks, *kept)
    left_out = {word: int(others[word]) for word in others.keys() - set(kept) if others[word]}
    of_words = np.array([counts.get(word, 0) for word in words], np.int64)
    if unknown is not None:
        of_words[len(marks) - 1] += sum(left_out.values())
    return lexicon_class(
        words=words, counts=of_words, unknown=unknown, boundary=boundary, left_out=left_out
    )


def from_tokenizer(
    lexicon_class: type[Lexicon],
    tokenizer: Any,
    *,
    counts: Sequence[int] | np.ndarray | None = None,
    unknown: str | None = None,
    boundary: str | None = None,
) -> Lexicon:
    """Makes a lexicon from a tokenizer; see `Lexicon.from_tokenizer`."""
    vocabulary = tokenizer.get_vocab()
    for token, token_id in vocabulary.items():
        if token_id < 0:
            raise ValueError(
                f"the tokenizer has {token!r} with the id {token_id}: ids must be at least 0"
            )
    size = 1 + max(vocabulary.values(), default=-1)
    words: list[str | None] = [None] * size
    for token, token_id in vocabulary.items():
        if words[token_id] is not None:
            raise ValueError(
                f"the tokenizer has the tokens {words[token_id]!r} and {token!r} with the same id, "
                f"{token_id}"
            )
        words[token_id] = token
    named = tuple(
        f"<id {token_id}>" if word is None else word for token_id, word in enumerate(words)
    )
    if counts is None:
        counts = np.zeros(size, np.int64)
    occurrences = np.asarray(counts)
    if occurrences.shape != (size,):
        raise ValueError(
            f"counts has the shape {occurrences.shape}, and the tokenizer {size:,} ids: give an "
            "occurrence count for each, as np.bincount(ids, minlength=...) does"
        )
    if unknown is None:
        unknown = _special(tokenizer, ("unk_token",), vocabulary)
    if boundary is None:
        boundary = _special(tokenizer, BOUNDARIES, vocabulary)
    return lexicon_class(words=named, counts=occurrences, unknown=unknown, boundary=boundary)


def _special(tokenizer, names, vocabulary):
    """Returns the first special token of these names that the vocabulary has, or None.

    A tokenizer of `transformers` has special tokens as attributes; a tokenizer of `tokenizers` has
    the unknown token in its model.
    """
    for owner in (tokenizer, getattr(tokenizer, "model", None)):
        for name in names:
            token = getattr(owner, name, None)
            if isinstance(token, str) and token in vocabulary:
                return token
    return None


def from_dataset(
    lexicon_class: type[Lexicon],
    dataset: Iterable[Mapping[str, Any]],
    column: str,
    *,
    split: Callable[[str], Iterable[str]] = str.split,
    boundary: str | None = "</s>",
    **options: Any,
) -> Lexicon:
    """Makes a lexicon from a column of a data set; see `Lexicon.from_dataset`."""
    if hasattr(dataset, "select_columns"):  # the others need not be read
        dataset = dataset.select_columns([column])
    counts: collections.Counter = collections.Counter()
    for row in dataset:
        if column not in row:
            raise ValueError(f"the rows have no column {column!r}: {', '.join(row)}")
        text = row[column]
        counts.update(split(text) if isinstance(text, str) else text)
        if boundary is not None:
            counts[boundary] += 1
    return from_counts(lexicon_class, counts, boundary=boundary, **options)
