"""Text in which every character is a token, for character-level models."""

import dataclasses

from zoo.sources import files
from zoo.sources.file_source import FileSource, ranged
from zoo.sources.source import Corpus


@dataclasses.dataclass(frozen=True)
class Characters(FileSource):
    """Text files, character by character; a line with its line break is a sentence.

    Spaces and blank lines are kept as characters, so that the text can be restored exactly. Use a
    vocabulary with boundary="none".

    Attributes:
      train: path of a UTF-8 text, perhaps with a range of its lines ('a.txt[:-1000]').
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
        text = files.read_text(files.find(part.path)).replace("\r\n", "\n")
        lines = text.split("\n")
        sentences = [[*line, "\n"] for line in lines[:-1]]
        sentences += [[*lines[-1]]] if lines[-1] else []
        return Corpus(part.path, ranged(part, sentences))
