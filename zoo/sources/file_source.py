"""The base of sources of files: a path for each split."""

import dataclasses
from collections.abc import Sequence
from typing import Any, TypeVar

from zoo.errors import UserError
from zoo.sources import files
from zoo.sources.source import Source

# A list of sentences, or what gives parts of itself as lists do.
Sentences = TypeVar("Sentences", bound=Sequence)


@dataclasses.dataclass(frozen=True)
class FileSource(Source):
    """Files, one for each split. Subclasses read them.

    Attributes:
      train: paths, each perhaps with a range of what the file has: 'a.txt[:-1000]'.
      validation: as `train`.
      tests: the same for the test splits "test1", "test2" ... ("test" if one).
    """

    train: str
    validation: str
    tests: tuple[str, ...] = ()

    def splits(self):
        """("train", "validation", and the tests)."""
        return ("train", "validation", *files.test_names(self.tests))

    def part(self, split) -> files.Part:
        """The path of a split and the range of it; UserError for a split that there is not."""
        return files.Part.parse(self.path_of(split))

    def path_of(self, split: str) -> str:
        """The path of a split, perhaps with a range; UserError for a split that there is not."""
        paths = dict(zip(self.splits(), (self.train, self.validation, *self.tests), strict=True))
        return files.path_of(paths, split)


def ranged(part: files.Part, sentences: Sentences) -> Sentences:
    """The sentences of a file that the range of its path takes; UserError if it takes none."""
    chosen: Any = sentences[part.range]
    if sentences and not chosen:
        start, stop = ("" if end is None else end for end in (part.range.start, part.range.stop))
        raise UserError(
            f"{part.path}[{start}:{stop}] has no words, for {part.path} has {len(sentences):,} "
            "sentences, and the range takes none of them: give another."
        )
    return chosen
