"""Replacement of out-of-vocabulary words in translations (Luong et al. 2015, section 3).

A translator with a vocabulary of some thousand words is trained to mark the source word with which
an out-of-vocabulary target word is aligned. Its translations then get a dictionary's translation of
that source word, or the source word itself. Three strategies write the marks in different ways:

    copyable            unknown source words are <unk_1>, <unk_2> ..., the same number for the same
                        word; an unknown target word has the mark of its source word, or <unk_null>
    positional-all      after every target word comes <p_d>, or <p_null> without a link
    positional-unknown  unknown target words are <unkpos_d>, or <unkpos_null> without a link

d = j - i for the target word at position j, not counting marks, and the source word at position i
with which it is aligned. d is from -reach to reach; longer links are ignored. Of several links
the link with the least |d| counts, then the link of the earlier source word. All other unknown
words are <unk>.

M.-T. Luong, I. Sutskever, Q. Le, O. Vinyals, W. Zaremba: Addressing the Rare Word Problem in Neural
Machine Translation, ACL 2015.
"""

import abc
import collections
import dataclasses
import re
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from typing import ClassVar

import numpy as np

from zoo.base.component_registry import Component
from zoo.errors import check_least

Link = tuple[int, int]
UNKNOWN = "<unk>"
_MARK = re.compile(r"<(unk_[1-9]\d*|unk_null|p_(-?\d+|null)|unkpos_(-?\d+|null))>")


class UnknownWords(Component, abc.ABC):
    """The contract of the strategies, which are frozen dataclasses."""

    @abc.abstractmethod
    def marks(self) -> tuple[str, ...]:
        """Returns the marks that training adds to the target vocabulary, in a fixed order."""

    @abc.abstractmethod
    def annotate(
        self,
        source: Sequence[str],
        target: Sequence[str],
        links: Collection[Link],
        known_sources: Container[str],
        known_targets: Container[str],
    ) -> tuple[list[str], list[str]]:
        """Marks the unknown words of a sentence pair for training.

        Args:
          source: words.
          target: words.
          links: (source position, target position).
          known_sources: the words of the lexicon of sources.
          known_targets: the words of the lexicon of targets.

        Returns:
          (source words, target words).

        Raises:
          ValueError: a link lies outside the pair, or a word looks like a mark.
        """

    def annotate_source(self, source: Sequence[str], known_sources: Container[str]) -> list[str]:
        """Marks the unknown words of a source sentence as in training, by default as `<unk>`."""
        return [word if word in known_sources else UNKNOWN for word in source]

    @abc.abstractmethod
    def restore(
        self,
        output: Sequence[str],
        source: Sequence[str],
        dictionary: Mapping[str, str],
        known_sources: Container[str],
    ) -> list[str]:
        """Replaces the marks of a translation by words.

        Args:
          output: words of the translator, marks among them.
          source: the words of the source sentence, as written.
          dictionary: {source word: target word}; other words are copied.
          known_sources: the words of the lexicon of sources, as given to `annotate_source`.

        Returns:
          Words; `<unk>` where a mark does not point to a word of the source sentence.
        """


@dataclasses.dataclass(frozen=True)
class Copyable(UnknownWords):
    """Strategy of equal numbers for aligned unknown words: `<unk_1>`, `<unk_2>` ..., `<unk_null>`.

    Attributes:
      numbers: the largest number; further unknown words of a source sentence are `<unk>`, and
        unknown target words that are aligned with them are `<unk_null>`.

    Example:
      >>> strategy = alignment.Copyable()
      >>> annotated = strategy.annotate(source, target, links, *known_words)
      >>> annotated[1]
      ['le', '<unk_1>', 'de', '<unk_2>']
      >>> strategy.restore(annotated[1], source, dictionary, known_words[0])
      ['le', 'portique', 'de', 'Metz']
    """

    numbers: int = 7

    def __post_init__(self):
        check_least(self, "data.unknowns", numbers=1)

    def marks(self):
        """Returns the marks `<unk_1>` to `<unk_N>`, N = `numbers`, and `<unk_null>`."""
        return (*(f"<unk_{n}>" for n in range(1, self.numbers + 1)), "<unk_null>")

    def annotate_source(self, source, known_sources):
        """Numbers the unknown words of the source; equal words have equal numbers."""
        marks = self._mark_unknown(source, known_sources)
        return [word if word in known_sources else marks.get(word, UNKNOWN) for word in source]

    def annotate(self, source, target, links, known_sources, known_targets):
        """Numbers the unknown words of both sides."""
        nearest = _nearest_links(source, target, links)
        marks = self._mark_unknown(source, known_sources)

        def mark(position):
            i = nearest.get(position)
            return "<unk_null>" if i is None else marks.get(source[i], "<unk_null>")

        return self.annotate_source(source, known_sources), [
            word if word in known_targets else mark(j) for j, word in enumerate(target)
        ]

    def restore(self, output, source, dictionary, known_sources):
        """Replaces each mark by the translation of the unknown source word of its number."""
        marks = self._mark_unknown(source, known_sources)
        word_by_mark = {mark: word for word, mark in marks.items()}
        return [
            dictionary.get(word_by_mark[word], word_by_mark[word])
            if word in word_by_mark
            else (UNKNOWN if _MARK.fullmatch(word) else word)
            for word in output
        ]

    def _mark_unknown(self, source, known_sources):
        """Returns {unknown word: its mark} of the first `numbers` unknown words."""
        unknown = dict.fromkeys(word for word in source if word not in known_sources)
        return {word: f"<unk_{n}>" for n, word in enumerate(unknown, 1) if n <= self.numbers}


@dataclasses.dataclass(frozen=True)
class _Positional(UnknownWords):
    """The base of the two positional strategies."""

    reach: int = 7
    prefix: ClassVar[str] = ""

    def __post_init__(self):
        check_least(self, "data.unknowns", reach=0)

    def marks(self):
        """Returns the marks of the distances -reach to reach, and the mark without a link."""
        distances = range(-self.reach, self.reach + 1)
        return (*(f"<{self.prefix}_{d}>" for d in distances), f"<{self.prefix}_null>")

    def _mark(self, position, nearest):
        i = nearest.get(position)
        is_near = i is not None and abs(position - i) <= self.reach
        return f"<{self.prefix}_{position - i if is_near else 'null'}>"

    def _word(self, mark, position, source, dictionary):
        """Returns the word for which a mark at a target position stands."""
        distance = mark.removeprefix(f"<{self.prefix}_").removesuffix(">")
        if distance == "null":
            return UNKNOWN
        i = position - int(distance)
        return dictionary.get(source[i], source[i]) if 0 <= i < len(source) else UNKNOWN


@dataclasses.dataclass(frozen=True)
class PositionalAll(_Positional):
    """Strategy of a mark `<p_d>` after every target word; unknown words are `<unk>`.

    Example:
      >>> strategy = alignment.PositionalAll()
      >>> annotated = strategy.annotate(source, target, links, *known_words)
      >>> annotated[1]
      ['le', '<p_0>', '<unk>', '<p_0>', 'de', '<p_0>', '<unk>', '<p_0>']
      >>> strategy.restore(annotated[1], source, dictionary, known_words[0])
      ['le', 'portique', 'de', 'Metz']
    """

    prefix: ClassVar[str] = "p"

    def annotate(self, source, target, links, known_sources, known_targets):
        """Puts a mark after every target word."""
        nearest = _nearest_links(source, target, links)
        annotated = []
        for j, word in enumerate(target):
            annotated += [word if word in known_targets else UNKNOWN, self._mark(j, nearest)]
        return self.annotate_source(source, known_sources), annotated

    def restore(self, output, source, dictionary, known_sources):
        """Removes the marks, and replaces each `<unk>` by the word of the mark right after it."""
        words: list[str] = []
        for word, next_word in zip(output, [*output, ""][1:], strict=True):
            if _is_mark(word, self.prefix):
                continue
            if word == UNKNOWN and _is_mark(next_word, self.prefix):
                word = self._word(next_word, len(words), source, dictionary)
            words.append(word)
        return words


@dataclasses.dataclass(frozen=True)
class PositionalUnknown(_Positional):
    """Strategy of a mark `<unkpos_d>` instead of each unknown target word.

    Example:
      >>> strategy = alignment.PositionalUnknown()
      >>> annotated = strategy.annotate(source, target, links, *known_words)
      >>> annotated[1]
      ['le', '<unkpos_0>', 'de', '<unkpos_0>']
      >>> strategy.restore(annotated[1], source, dictionary, known_words[0])
      ['le', 'portique', 'de', 'Metz']
    """

    prefix: ClassVar[str] = "unkpos"

    def annotate(self, source, target, links, known_sources, known_targets):
        """Replaces each unknown target word by its mark."""
        nearest = _nearest_links(source, target, links)
        return self.annotate_source(source, known_sources), [
            word if word in known_targets else self._mark(j, nearest)
            for j, word in enumerate(target)
        ]

    def restore(self, output, source, dictionary, known_sources):
        """Replaces each mark by the translation of the source word to which it points."""
        return [
            self._word(word, j, source, dictionary) if _is_mark(word, self.prefix) else word
            for j, word in enumerate(output)
        ]


STRATEGIES = {
    "copyable": Copyable,
    "positional_all": PositionalAll,
    "positional_unknown": PositionalUnknown,
}


def restore_by_attention(
    output: Sequence[str],
    source: Sequence[str],
    weights: np.ndarray,
    dictionary: Mapping[str, str],
    unknown: str = UNKNOWN,
) -> list[str]:
    """Replaces each unknown word of a translation by a translation of the most attended word.

        w_t = dictionary(source[argmax_s weights[t, s]]) where the output at t is unknown

    The translator needs no retraining. Among equal weights the earlier source word is taken (Jean
    et al. 2015, section 3.3).

    Args:
      output: T words.
      source: S words.
      weights: [T, S], of attention, or any other scores of links, such as log t of `Model1`.
      dictionary: {source word: target word}; other words are copied.
      unknown: the word to replace.

    Raises:
      ValueError: `weights` is not [T, S], or has NaN.

    Example:
      >>> output = ["le", "<unk>"]
      >>> weights = np.array([[0.9, 0.1, 0, 0], [0.2, 0.8, 0, 0]])  # [T, S]
      >>> alignment.restore_by_attention(output, source, weights, dictionary)
      ['le', 'portique']
    """
    weights = np.asarray(weights)
    if weights.shape != (len(output), len(source)):
        raise ValueError(
            f"weights of shape {weights.shape} for {len(output)} output and {len(source)} source "
            "words: give [T, S]"
        )
    if np.isnan(weights).any():
        raise ValueError("weights have NaN: give numbers")
    if not source:
        return [*output]
    attended = [source[i] for i, _ in most_attended(weights)]
    return [
        dictionary.get(source_word, source_word) if word == unknown else word
        for word, source_word in zip(output, attended, strict=True)
    ]


def check_words(words: Iterable[str]):
    """Raises ValueError for a word of a text that looks like a mark of a strategy."""
    for word in words:
        if _MARK.fullmatch(word):
            raise ValueError(f"the word {word!r} is a mark of unknown words: take it out")


def _is_mark(word, prefix):
    return _MARK.fullmatch(word) is not None and word.startswith(f"<{prefix}_")


def _nearest_links(source, target, links):
    """Returns {target position: the source position of its link}, one link a target word."""
    check_words(source)
    check_words(target)
    nearest: dict[int, int] = {}
    for i, j in sorted(links):
        if not (0 <= i < len(source) and 0 <= j < len(target)):
            raise ValueError(
                f"the link {i}-{j} lies outside a pair of {len(source)} and {len(target)} words"
            )
        if j not in nearest or abs(j - i) < abs(j - nearest[j]):
            nearest[j] = i
    return nearest


# ------------ A dictionary of words learnt from aligned pairs (Luong et al. 2015, section 3)


def learn_dictionary(
    sources: Iterable[Sequence[str]],
    targets: Iterable[Sequence[str]],
    alignments: Iterable[Iterable[Link]],
    min_links: int = 1,
) -> dict[str, str]:
    """Learns the target word with which each source word is linked most often.

    Among equally frequent target words the word with fewer links in total is taken, and then the
    first in the order of code points, so that the order of the pairs does not matter.

    Args:
      sources: sentences of words.
      targets: as many sentences of words.
      alignments: as many lists of links (i, j).
      min_links: the least number of links between a source word and its translation.

    Returns:
      {source word: target word}.

    Raises:
      ValueError: the numbers of sentences or alignments differ.

    Example:
      >>> alignment.learn_dictionary([source], [target], [links])
      {'Metz': 'Metz', 'in': 'de', 'portico': 'portique', 'the': 'le'}
    """
    counts: collections.Counter = collections.Counter()
    for source, target, links in zip(sources, targets, alignments, strict=True):
        counts.update((source[i], target[j]) for i, j in links)
    target_totals: collections.Counter = collections.Counter()
    for (_, target_word), count in counts.items():
        target_totals[target_word] += count
    best: dict[str, tuple[int, int, str]] = {}
    for (source_word, target_word), count in counts.items():
        rank = (-count, target_totals[target_word], target_word)
        if count >= min_links and (source_word not in best or rank < best[source_word]):
            best[source_word] = rank
    return {word: best[word][2] for word in sorted(best)}


# ------------------ links between the words of a sentence pair from a translator's attention


def in_sentence_order(
    weights: np.ndarray, source_words: int, target_words: int, order: str
) -> np.ndarray:
    """Puts the attention weights of one pair in the order of the words of the two sentences.

    A decoder's weights have a row for each predicted word in the order of prediction, and then
    perhaps the boundary and padding. Their columns are padded on the left, and in the order in
    which the encoder reads.

    Args:
      weights: [at least T, at least S], as `SequenceToSequence.attention_weights` gives them.
      source_words: S, without the boundary.
      target_words: T, without the boundary.
      order: see `SequenceToSequence`: "source_reversed" reverses columns, "target_reversed" rows.

    Returns:
      [T, S].

    Raises:
      ValueError: the weights have fewer rows or columns than the sentences have words.

    Example:
      >>> weights = np.array([[0, 0.1, 0.9], [0, 0.8, 0.2], [0, 0.5, 0.5]])  # 1 of padding
      >>> alignment.in_sentence_order(weights, 2, 2, "source_reversed").tolist()
      [[0.9, 0.1], [0.2, 0.8]]
    """
    weights = np.asarray(weights)
    rows, columns = weights.shape
    if rows < target_words or columns < source_words:
        raise ValueError(
            f"weights of shape {weights.shape} for {target_words} target and {source_words} source "
            "words: give a row and a column for each"
        )
    in_order = weights[:target_words, columns - source_words :]
    if order == "source_reversed":
        in_order = in_order[:, ::-1]
    return in_order[::-1] if order == "target_reversed" else in_order


def most_attended(weights: np.ndarray) -> list[Link]:
    """Links each target word to the source word with its largest attention weight.

    Among equal weights the earlier source word is taken.

    Returns:
      (source position, target position) for each target word.

    Example:
      >>> alignment.most_attended(np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]]))  # [T, S]
      [(0, 0), (1, 1), (0, 2)]
    """
    return [(int(row.argmax()), position) for position, row in enumerate(np.asarray(weights))]
