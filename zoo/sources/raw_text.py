"""Untokenised text, as people write it: sentences and words are found by the rules of Moses."""

import dataclasses
import itertools
import logging
import sys

from zoo.errors import check_choices
from zoo.sources import moses
from zoo.sources.file_source import ranged
from zoo.sources.source import Corpus, Form
from zoo.sources.text import Text

logger = logging.getLogger(__name__)

LINES = ("sentences", "paragraphs", "wrapped")
# A text without full stops, such as a transcript, would be a single sentence, which no range can
# divide.
LONGEST = 200


@dataclasses.dataclass(frozen=True)
class RawText(Text):
    """Untokenised text: sentences are split into words by the Moses tokenizer.

    Other texts that the run reads, such as a prompt or the file of --data, are tokenised in the
    same way, a sentence a line. See `zoo.sources.moses` for the rules.

    Attributes:
      train: a path as for `Text`, perhaps with a range of its sentences ('novel.txt[:-1000]').
      validation: as `train`.
      tests: as `train`, for the test splits "test1", "test2" ... ("test" if one).
      language: the language whose rules are used, such as "en", "fr" or "de"; "" if words stand
        between blanks.
      lines: what a line is: one of "sentences"; a paragraph of several sentences ("paragraphs"); or
        a piece of a paragraph that goes on in the next line, up to a blank line ("wrapped").
        Paragraphs are split into sentences; one of more than 200 words between blanks is cut after
        each 200.

    Example:
      >>> _ = pathlib.Path("raw.txt").write_text("Mr. Smith came. It's\\nlate!\\n\\nReally?\\n")
      >>> source = data.RawText(train="raw.txt", validation="raw.txt", lines="wrapped")
      >>> source.read("train").sentences
      [['Mr.', 'Smith', 'came', '.'], ['It', "'s", 'late', '!'], ['Really', '?']]
    """

    language: str = "en"
    lines: str = "paragraphs"

    def __post_init__(self):
        if self.language:
            moses.check(self.language, "data.language")
        check_choices(self, "data", lines=LINES)

    @property
    def form(self):
        """The form of plain text, or of a column of a table, in a language."""
        return Form(column=self.column, plain=True, language=self.language)

    def read(self, split):
        """Reads the sentences of a split, tokenised."""
        part = self.part(split)
        written = ranged(part, self.written(part.path))
        # Intern words: one object a word, not one a token.
        return Corpus(
            part.path, [[*map(sys.intern, moses.words(one, self.language))] for one in written]
        )

    def written(self, path: str) -> list[str]:
        """Returns the sentences of a file as they are written.

        Args:
          path: a path without a range.
        """
        return split(self.raw_lines(path), self.lines, self.language)

    def raw_lines(self, path: str) -> list[str]:
        """Returns the lines of a file, and a blank one at its end; see `written`."""
        return self._lines(path)

    def _lines_of(self, member):
        """Reads the lines of one file, and a blank one, as paragraphs end with their file."""
        return [*super()._lines_of(member), ""]


def split(lines: list[str], kind: str, language: str) -> list[str]:
    """Splits lines into sentences; see `RawText.lines`."""
    if kind == "wrapped":
        lines = paragraphs(lines)
    written = [line.strip() for line in lines if line.strip()]
    if kind == "sentences":
        return written
    return [
        piece
        for paragraph in written
        for sentence in moses.sentences(paragraph, language)
        for piece in _pieces(sentence)
    ]


def paragraphs(lines: list[str]) -> list[str]:
    """Joins lines up to the next blank one, with blanks between them."""
    groups = itertools.groupby(map(str.strip, lines), key=bool)
    return [" ".join(group) for filled, group in groups if filled]


def _pieces(sentence):
    """Cuts a sentence after each `LONGEST` words between blanks."""
    if len(sentence) <= LONGEST:
        return [sentence]
    words = sentence.split()
    return [" ".join(words[at : at + LONGEST]) for at in range(0, len(words), LONGEST)]
