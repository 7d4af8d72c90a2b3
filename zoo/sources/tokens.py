"""Texts to be judged, whatever a run was trained on: tokens that keep their places.

Each token has its position in its line, in code points, and the words that a model reads for it:
French "du" is "de" "le" for a model of a treebank's syntactic words. `zoo.sources.text_formats`
reads such texts.
"""

import dataclasses
from collections.abc import Container, Iterable, Mapping
from typing import Any, NamedTuple

from zoo.sources import files, moses
from zoo.sources.source import Corpus


class Token(NamedTuple):
    """A token of a text."""

    text: str
    start: int
    end: int
    words: tuple[str, ...]
    extra: tuple[str, ...] = ()
    further_extras: tuple[tuple[str, ...], ...] = ()  # of the same word's rows of further readers


@dataclasses.dataclass(frozen=True)
class Sentence:
    """A sentence of a text."""

    line: int
    id: str | None
    tokens: list[Token]
    line_length: int | None = None  # None where no line of the file has the sentence
    extra: tuple[str, ...] = ()
    begins_item: bool = True  # False: the item of the sentence before goes on

    @property
    def length(self) -> int:
        """Length of the sentence's line, where its boundary stands."""
        if self.line_length is not None:
            return self.line_length
        return self.tokens[-1].end if self.tokens else 0

    @property
    def words(self) -> list[str]:
        """The words that the model reads."""
        return [word for token in self.tokens for word in token.words]


@dataclasses.dataclass(frozen=True, repr=False)
class TokenizedText:
    """A text whose tokens keep their places; its sentences may be read as they are needed."""

    name: str
    sentences: Any  # a list of Sentence, or an iterator over the sentences of a long text
    columns: tuple[str, ...] = ()  # of each sentence and token
    token_columns: tuple[str, ...] = ()  # of each token alone, after `columns`
    items: bool = False  # whether its sentences have nothing to do with each other
    source: Corpus | None = None

    def __repr__(self):
        return f"TokenizedText({self.name!r}: {len(self.sentences):,} sentences)"

    @classmethod
    def from_corpus(cls, corpus: Corpus, joint: str = " ") -> "TokenizedText":
        """Converts a corpus to a text whose tokens are its words with `joint` between them."""
        sentences = [
            Sentence(number, str(number), place_tokens((word, (word,), joint) for word in words))
            for number, words in enumerate(corpus.sentences, 1)
        ]
        return cls(corpus.name, sentences, source=corpus)

    @property
    def corpus(self) -> Corpus:
        """The corpus of the sentences; raises UserError if it has no words."""
        first = [n for n, sentence in enumerate(self.sentences) if sentence.begins_item or not n]
        items = first if len(first) < len(self.sentences) else None
        words = [sentence.words for sentence in self.sentences]
        return self.source or Corpus(self.name, words, items=items)


def place_tokens(forms: Iterable[tuple[str, tuple[str, ...], str]]) -> list[Token]:
    """Places (form, its words, the space after it) one after the other."""
    tokens, begin = [], 0
    for form, words, space in forms:
        tokens.append(Token(form, begin, begin + len(form), words))
        begin += len(form) + len(space)
    return tokens


@dataclasses.dataclass(frozen=True)
class Reading:
    """How a run reads a token."""

    lower_case: bool = False
    # see `Conllu.fused`; None for a run trained on plain text, which never splits tokens
    fused: str | None = None
    parts: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    vocabulary: Container[str] = ()
    language: str = ""
    boundary: str | None = None

    def words(self, token: str) -> tuple[str, ...]:
        """Returns the words that the model reads for a token of plain text."""
        word = token.lower() if self.lower_case else token
        form = word if word in self.parts or word in self.vocabulary else word.lower()
        return self._join(word, self.parts.get(form, (word,)))

    def treebank_words(self, form: str, parts: Iterable[str]) -> tuple[str, ...]:
        """Returns the words that the model reads for a form of a treebank."""
        form, *parts = (word.lower() if self.lower_case else word for word in (form, *parts))
        return self._join(form, tuple(parts))

    def _join(self, form, parts):
        if parts == (form,) or self.fused not in ("split", "kept"):
            return (form,)
        return parts if self.fused == "split" else (form, *parts)

    def tokens(self, line: str, marks: bool = False) -> list[Token]:
        """Splits a line into tokens, at white space or by the rules of the language; marks of the
        sentence around it are tokens only if asked for."""
        first, last = (0, len(line)) if marks else files.bare_span(line)
        spans = moses.spans(line[first:last], self.language)
        places = (slice(first + start, first + end) for start, end in spans)
        return [Token(line[at], at.start, at.stop, self.words(line[at])) for at in places]

    def split(self, line: str, marks: bool = False) -> list[str]:
        """Splits a line into the words that the model reads; see `tokens`."""
        return [word for token in self.tokens(line, marks) for word in token.words]


PLAIN = Reading()
