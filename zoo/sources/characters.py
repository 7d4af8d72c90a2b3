"""Text in which every character is a token, for character-level models."""

import dataclasses

from zoo.sources import files
from zoo.sources.source import Corpus, FileSource, ranged

LONGEST = 1000


@dataclasses.dataclass(frozen=True)
class Characters(FileSource):
    """Text files, character by character; a line with its line break is a sentence.

    Spaces and blank lines are kept as characters, so that the text can be restored exactly. Use a
    vocabulary with boundary="none". A line of more than 1,000 characters counts as several, so that
    a range can divide a text of a single line.

    Attributes:
      train: path of a UTF-8 text, or of a folder or pattern of texts, which are read one after
        another (see `folders.text_files`); perhaps with a range of lines ('a.txt[:-1000]').
      validation: as `train`.
      tests: as `train`, for the test splits "test1", "test2" ... ("test" if one).

    Example:
      >>> source = data.Characters(**paths)
      >>> "".join(source.read("train").sentences[0])
      'the cat sat\\n'
    """

    of_characters = True

    def read(self, split):
        """Reads the lines of a split as lists of characters, each ending with its line break."""
        part = self.part(split)
        return Corpus(part.path, [[*line] for line in ranged(part, self.written(part.path))])

    def written(self, path: str) -> list[str]:
        """Returns the lines of a file, each with its line break, cut after `LONGEST` characters.

        Args:
          path: a path without a range.
        """
        *others, last = map(_lines, files.text_files(path))
        ended = [[*lines[:-1], lines[-1].removesuffix("\n") + "\n"] for lines in others]
        return pieces([line for of_file in (*ended, last) for line in of_file])


def _lines(file):
    """Reads the lines of one file, each with its line break, if it has one."""
    return lines_of(files.read_text(file))


def pieces(lines: list[str]) -> list[str]:
    """Cuts lines after each `LONGEST` characters."""
    starts = ((line, at) for line in lines for at in range(0, len(line), LONGEST))
    return [line[at : at + LONGEST] for line, at in starts]


def lines_of(text: str) -> list[str]:
    """Splits a text into lines, each with its line break; the last may have none."""
    *whole, last = files.with_line_feeds(text).split("\n")
    return [f"{line}\n" for line in whole] + [last] * bool(last)
