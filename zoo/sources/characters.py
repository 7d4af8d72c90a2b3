"""Text in which every character is a word: for models of letters alone."""

import dataclasses

from zoo.sources import files
from zoo.sources.file_source import FileSource, ranged
from zoo.sources.source import Corpus


@dataclasses.dataclass(frozen=True)
class Characters(FileSource):
    """Text files, character by character; a line with its end is a sentence.

    Blank lines and spaces are characters as any other, so that nothing of the text is lost; take a
    vocabulary with boundary="none".

    Attributes:
      train: paths of UTF-8 text, perhaps with a range of the lines ('a.txt[:-1000]').
      validation: as `train`.
      tests: the same for the test splits "test1", "test2" ... ("test" if one).

    Example:
      >>> source = data.Characters(**paths)
      >>> "".join(source.read("train").sentences[0])
      'the cat sat\\n'
    """

    of_characters = True

    def read(self, split):
        """The lines of a split, each a list of characters that ends with its line break."""
        part = self.part(split)
        text = files.read_text(files.find(part.path)).replace("\r\n", "\n")
        lines = text.split("\n")
        sentences = [[*line, "\n"] for line in lines[:-1]]
        sentences += [[*lines[-1]]] if lines[-1] else []
        return Corpus(part.path, ranged(part, sentences))
