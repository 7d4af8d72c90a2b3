"""Unknown words of a translation, put in after it was made (Luong et al. 2015, section 3).

A translator that knows some thousand words is trained to say, where the target has an unknown word,
which source word it is aligned with; its translations get that word's translation by a dictionary,
or the word itself. Three ways to say it, each a component with the same methods:

    copyable            unknown source words are <unk_1>, <unk_2> ..., equal ones equal; a target
                        word aligned with one of these is the same, any other is <unk_null>
    positional-all      after every target word comes <p_d>, or <p_null> without a link
    positional-unknown  unknown target words are <unkpos_d>, or <unkpos_null> without a link

d = j - i for the target word at position j, marks not counted, and the source word at position i
that it is aligned with; from -reach to reach, and a link beyond these is none. Of several links the
one with the least |d| counts, then the earlier source word. All other unknown words are <unk>.

M.-T. Luong, I. Sutskever, Q. Le, O. Vinyals, W. Zaremba: Addressing the Rare Word Problem in Neural
Machine Translation, ACL 2015.
"""

import abc
import dataclasses
import re
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from zoo.alignment.dictionary import translate_word
from zoo.errors import check_least

Link = tuple[int, int]
UNKNOWN = "<unk>"
_MARK = re.compile(r"<(unk_[1-9]\d*|unk_null|p_(-?\d+|null)|unkpos_(-?\d+|null))>")


class UnknownWords(abc.ABC):
    """The contract of the strategies, which are frozen dataclasses.

    marks() -> the words that training adds to the target's, in a fixed order
    annotate(source, target, links, known_sources, known_targets) -> (source, target) of training
    annotate_source(source, known) -> the source sentence as a trained translator reads it
    restore(output, source, dictionary, known) -> the translation with its unknown words put in
    """

    # Subclasses are dataclasses.
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

    @abc.abstractmethod
    def marks(self) -> tuple[str, ...]:
        """The words that the target sentences of training have beside their own."""

    @abc.abstractmethod
    def annotate(
        self,
        source: Sequence[str],
        target: Sequence[str],
        links: Collection[Link],
        known_sources: Container[str],
        known_targets: Container[str],
    ) -> tuple[list[str], list[str]]:
        """A pair as training sees it.

        Args:
          source: words.
          target: words.
          links: (source position, target position).
          known_sources: the words of the lexicon of sources.
          known_targets: the words of the lexicon of targets.

        Raises:
          ValueError: a link lies outside the pair, or a word looks like a mark.
        """

    def annotate_source(self, source: Sequence[str], known: Container[str]) -> list[str]:
        """A source sentence as training sees it: unknown words are `<unk>`."""
        return [word if word in known else UNKNOWN for word in source]

    @abc.abstractmethod
    def restore(
        self,
        output: Sequence[str],
        source: Sequence[str],
        dictionary: Mapping[str, str],
        known: Container[str],
    ) -> list[str]:
        """A translation without marks, its unknown words put in.

        Args:
          output: words of the translator, marks among them.
          source: the words that were translated, as they are written.
          dictionary: {source word: target word}; a word that it has not is copied.
          known: the words of the source's lexicon, as `annotate_source` had them.

        Returns:
          Words; `<unk>` where the output does not say which source word is meant, or names one
          that there is not.
        """


@dataclasses.dataclass(frozen=True)
class Copyable(UnknownWords):
    """Unknown words of both sides numbered alike: `<unk_1>`, `<unk_2>` ..., `<unk_null>`.

    Attributes:
      numbers: how many there are; further unknown words of a source sentence are `<unk>`, and what
        is aligned with them is `<unk_null>`.

    Example:
      >>> strategy = alignment.Copyable()
      >>> annotated = strategy.annotate(source, target, links, *known)
      >>> annotated[1]
      ['le', '<unk_1>', 'de', '<unk_2>']
      >>> strategy.restore(annotated[1], source, dictionary, known[0])
      ['le', 'portique', 'de', 'Metz']
    """

    numbers: int = 7

    def __post_init__(self):
        check_least(self, "data.unknowns", numbers=1)

    def marks(self):
        """`<unk_1>` to that of `numbers`, and `<unk_null>`."""
        return (*(f"<unk_{n}>" for n in range(1, self.numbers + 1)), "<unk_null>")

    def annotate_source(self, source, known):
        """The source with its unknown words numbered, equal ones alike."""
        numbered = self._numbered(source, known)
        return [word if word in known else numbered.get(word, UNKNOWN) for word in source]

    def annotate(self, source, target, links, known_sources, known_targets):
        """Both sides with numbered unknown words."""
        nearest = _nearest(source, target, links)
        numbered = self._numbered(source, known_sources)

        def mark(position):
            linked = nearest.get(position)
            return "<unk_null>" if linked is None else numbered.get(source[linked], "<unk_null>")

        return self.annotate_source(source, known_sources), [
            word if word in known_targets else mark(j) for j, word in enumerate(target)
        ]

    def restore(self, output, source, dictionary, known):
        """The output with each mark replaced by the translation of the unknown source word of its
        number."""
        numbered = self._numbered(source, known)
        meant = {mark: word for word, mark in numbered.items()}
        return [
            translate_word(meant[word], dictionary)
            if word in meant
            else (UNKNOWN if _MARK.fullmatch(word) else word)
            for word in output
        ]

    def _numbered(self, source, known):
        """{unknown word: its mark}, of those that have a number."""
        unknown = dict.fromkeys(word for word in source if word not in known)
        return {word: f"<unk_{n}>" for n, word in enumerate(unknown, 1) if n <= self.numbers}


@dataclasses.dataclass(frozen=True)
class _Positional(UnknownWords):
    """The base of the two positional strategies.

    Attributes:
      reach: the largest |d| that has a mark.
    """

    reach: int = 7
    prefix: ClassVar[str] = ""

    def __post_init__(self):
        check_least(self, "data.unknowns", reach=0)

    def marks(self):
        """The marks of -reach to reach, and that of words without a link."""
        distances = range(-self.reach, self.reach + 1)
        return (*(f"<{self.prefix}_{d}>" for d in distances), f"<{self.prefix}_null>")

    def _mark(self, position, nearest):
        linked = nearest.get(position)
        near = linked is not None and abs(position - linked) <= self.reach
        return f"<{self.prefix}_{position - linked if near else 'null'}>"

    def _word(self, mark, position, source, dictionary):
        """The word that a mark at a target position stands for."""
        distance = mark.removeprefix(f"<{self.prefix}_").removesuffix(">")
        if distance == "null":
            return UNKNOWN
        i = position - int(distance)
        return translate_word(source[i], dictionary) if 0 <= i < len(source) else UNKNOWN


@dataclasses.dataclass(frozen=True)
class PositionalAll(_Positional):
    """A mark `<p_d>` after every target word; unknown words are `<unk>`.

    Example:
      >>> strategy = alignment.PositionalAll()
      >>> annotated = strategy.annotate(source, target, links, *known)
      >>> annotated[1]
      ['le', '<p_0>', '<unk>', '<p_0>', 'de', '<p_0>', '<unk>', '<p_0>']
      >>> strategy.restore(annotated[1], source, dictionary, known[0])
      ['le', 'portique', 'de', 'Metz']
    """

    prefix: ClassVar[str] = "p"

    def annotate(self, source, target, links, known_sources, known_targets):
        """Every target word with its mark."""
        nearest = _nearest(source, target, links)
        annotated = []
        for j, word in enumerate(target):
            annotated += [word if word in known_targets else UNKNOWN, self._mark(j, nearest)]
        return self.annotate_source(source, known_sources), annotated

    def restore(self, output, source, dictionary, known):
        """The output without marks; each `<unk>` is replaced by the mark that follows it at
        once."""
        words: list[str] = []
        for word, following in zip(output, [*output, ""][1:], strict=True):
            if _is_mark(word, self.prefix):
                continue
            if word == UNKNOWN and _is_mark(following, self.prefix):
                word = self._word(following, len(words), source, dictionary)
            words.append(word)
        return words


@dataclasses.dataclass(frozen=True)
class PositionalUnknown(_Positional):
    """Strategy of a mark `<unkpos_d>` instead of each unknown target word, and no others.

    Example:
      >>> strategy = alignment.PositionalUnknown()
      >>> annotated = strategy.annotate(source, target, links, *known)
      >>> annotated[1]
      ['le', '<unkpos_0>', 'de', '<unkpos_0>']
      >>> strategy.restore(annotated[1], source, dictionary, known[0])
      ['le', 'portique', 'de', 'Metz']
    """

    prefix: ClassVar[str] = "unkpos"

    def annotate(self, source, target, links, known_sources, known_targets):
        """The target with a mark for each unknown word."""
        nearest = _nearest(source, target, links)
        return self.annotate_source(source, known_sources), [
            word if word in known_targets else self._mark(j, nearest)
            for j, word in enumerate(target)
        ]

    def restore(self, output, source, dictionary, known):
        """The output with each mark replaced by the translation of the source word that it points
        to."""
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
    """Each unknown word of a translation, replaced by what is most attended to, without retraining.

        w_t = dictionary(source[argmax_s weights[t, s]]) where the output at t is unknown

    Of equal weights the earlier source word is taken (Jean et al. 2015, section 3.3).

    Args:
      output: T words.
      source: S words.
      weights: [T, S], of attention, or any other scores of links, such as log t of `Model1`.
      dictionary: {source word: target word}; a word that it has not is copied.
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
    return [
        translate_word(source[int(row.argmax())], dictionary) if word == unknown else word
        for word, row in zip(output, weights, strict=True)
    ]


def check_words(words: Iterable[str]):
    """ValueError for a word of a text that looks like a mark: it would be taken for one."""
    for word in words:
        if _MARK.fullmatch(word):
            raise ValueError(f"the word {word!r} is a mark of unknown words: take it out")


def _is_mark(word, prefix):
    return _MARK.fullmatch(word) is not None and word.startswith(f"<{prefix}_")


def _nearest(source, target, links):
    """{target position: the source position that it counts as aligned with}."""
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
