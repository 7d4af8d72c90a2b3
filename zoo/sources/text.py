"""Plain text, a sentence a line, words between white space; tables are read through `datasets`."""

import dataclasses
import itertools
from collections.abc import Iterable, Iterator

from zoo.errors import UserError, check_choices
from zoo.sources import files, mapped_text, moses
from zoo.sources.mapped_text import ArraySentences
from zoo.sources.source import Corpus, FileSource, Form, ranged


@dataclasses.dataclass(frozen=True)
class Text(FileSource):
    """Text files, tables with a column of text, folders of them, or data sets of a hub.

    A file may be compressed with gzip, bzip2 or xz. A cell of text may have several lines, each a
    sentence, or be a list of strings, the words of one sentence.

    Attributes:
      train: a path: plain text (.txt or any other suffix), .json, .jsonl, .parquet, .csv, .tsv, a
        folder of such files or a pattern of their paths (see `files.text_files`), a split saved
        by `datasets`, or a folder of `zoo encode` (see `mapped_text`); perhaps with a range of
        the lines that are not blank ('news.txt[:-1000]'). Or 'hub:NAME:SPLIT' or
        'hub:NAME:CONFIGURATION:SPLIT' ('hub:Salesforce/wikitext:wikitext-2-raw-v1:train').
      validation: as `train`.
      tests: as `train`, for the test splits "test1", "test2" ... ("test" if one).
      column: the column that holds the text of a table.
      streaming: whether a data set is read example by example, without a copy on disk.
      blank_lines: "skipped" or "kept". A kept blank line is a sentence without words whose boundary
        is predicted and counted, also by ranges. Published figures of WikiText keep blank lines:
        the test text of WikiText-2 has 245,569 tokens with its 1,467 blank lines, 244,102 without.

    Example:
      >>> source = data.Text(**paths)
      >>> source.read("train").sentences
      [['the', 'cat', 'sat'], ['the', 'cat']]
    """

    column: str = "text"
    streaming: bool = False
    blank_lines: str = "skipped"

    def __post_init__(self):
        check_choices(self, "data", blank_lines=mapped_text.BLANK_LINES)

    @property
    def form(self):
        return Form(column=self.column, blank_lines=self.blank_lines, plain=True)

    def read(self, split):
        """Reads the sentences of a split: its lines, split at blanks; see `blank_lines`."""
        part, keep_blank = self.part(split), self.blank_lines == "kept"
        folder = files.find_or_none(part.path)
        if folder is not None and (folder / mapped_text.RECORD).is_file():
            return self._encoded(part, folder)
        word_lists = map(str.split, self.raw_lines(part.path))
        text = ArraySentences.encode(words for words in word_lists if words or keep_blank)
        chosen = ranged(part, text)
        # Without the words outside the range.
        return Corpus(
            part.path, text if len(chosen) == len(text) else ArraySentences.encode(chosen)
        )

    def _encoded(self, part, folder):
        files.check_path(part.path, folder.iterdir())
        text = mapped_text.Mapped(folder)
        if self.blank_lines != text.blank_lines:
            raise UserError(
                f"{part.path} was encoded with blank lines {text.blank_lines}, and "
                f"data.blank_lines is {self.blank_lines!r}: change that setting, or encode the "
                "text again."
            )
        sentences = ArraySentences(text, text.types, range(len(text.lengths)))
        return Corpus(part.path, ranged(part, sentences))

    def raw_lines(self, path: str) -> Iterator[str]:
        """Yields the lines of a path without a range."""
        return files.lines_at(path, self.column, self.streaming)


# ---- untokenised text, as people write it: sentences and words are found by the rules of Moses

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
        return Form(column=self.column, plain=True, language=self.language)

    def read(self, split):
        part = self.part(split)
        sentences = ranged(part, self.raw_sentences(part.path))
        words = (moses.words(sentence, self.language) for sentence in sentences)
        return Corpus(part.path, ArraySentences.encode(words))

    def raw_sentences(self, path: str) -> list[str]:
        """Returns the sentences of a file, a path without a range, as they are written."""
        return split(self.raw_lines(path), self.lines, self.language)

    def raw_lines(self, path):
        """Yields the lines, and a blank one after each file, where a paragraph ends, too."""
        return files.lines_at(path, self.column, self.streaming, after=("",))


def split(lines: Iterable[str], kind: str, language: str) -> list[str]:
    """Splits lines into sentences; see `RawText.lines`."""
    if kind == "wrapped":
        lines = paragraphs(lines)
    stripped_lines = [line.strip() for line in lines if line.strip()]
    if kind == "sentences":
        return stripped_lines
    return [
        piece
        for paragraph in stripped_lines
        for sentence in moses.sentences(paragraph, language)
        for piece in _pieces(sentence)
    ]


def paragraphs(lines: Iterable[str]) -> list[str]:
    """Joins lines up to the next blank one, with blanks between them."""
    groups = itertools.groupby(map(str.strip, lines), key=bool)
    return [" ".join(group) for filled, group in groups if filled]


def _pieces(sentence):
    """Cuts a sentence after each `LONGEST` words between blanks."""
    if len(sentence) <= LONGEST:
        return [sentence]
    words = sentence.split()
    return [" ".join(words[start : start + LONGEST]) for start in range(0, len(words), LONGEST)]


# -------------------- text in which every character is a token, for character-level models

LONGEST_PIECE = 1000


@dataclasses.dataclass(frozen=True)
class Characters(FileSource):
    """Text files, character by character; a line with its line break is a sentence.

    Spaces and blank lines are kept as characters, so that the text can be restored exactly, except
    for marks such as </s> around its lines. Use a vocabulary with boundary="none". A line of more
    than 1,000 characters counts as several, so that a range can divide a text of a single line.

    Attributes:
      train: path of a UTF-8 text, or of a folder or pattern of texts, which are read one after
        another (see `files.text_files`); perhaps with a range of lines ('a.txt[:-1000]').

    Example:
      >>> source = data.Characters(**paths)
      >>> "".join(source.read("train").sentences[0])
      'the cat sat\\n'
    """

    is_character_level = True

    def read(self, split):
        """Reads the lines of a split as lists of characters, each ending with its line break."""
        part = self.part(split)
        return Corpus(part.path, ArraySentences.encode(ranged(part, self.raw_sentences(part.path))))

    def raw_sentences(self, path: str) -> list[str]:
        """Returns the lines of a file, each with its line break, cut into pieces."""
        *texts, last = map(files.read_text, files.text_files(path))
        text = "\n".join([*(text.removesuffix("\n") for text in texts), last])
        return pieces(lines_of("\n".join(files.bare_lines(text.split("\n"), path))))


def pieces(lines: list[str]) -> list[str]:
    """Cuts lines after each `LONGEST_PIECE` characters."""
    starts = ((line, start) for line in lines for start in range(0, len(line), LONGEST_PIECE))
    return [line[start : start + LONGEST_PIECE] for line, start in starts]


def lines_of(text: str) -> list[str]:
    """Splits a text into lines, each with its line break; the last may have none."""
    *complete_lines, last = files.with_line_feeds(text).split("\n")
    return [f"{line}\n" for line in complete_lines] + ([last] if last else [])
