"""The base class of sources that read files: a path for each split."""

import dataclasses
from collections.abc import Sequence
from typing import Any, TypeVar

from zoo.errors import UserError
from zoo.sources import files
from zoo.sources.source import Source

# A list of sentences, or another sequence that can be sliced.
Sentences = TypeVar("Sentences", bound=Sequence)


@dataclasses.dataclass(frozen=True)
class FileSource(Source):
    """Files, one for each split. Subclasses read them."""

    train: str  # path of a file, perhaps with a range of its sentences: 'a.txt[:-1000]'
    validation: str
    tests: tuple[str, ...] = ()

    def splits(self):
        """Returns ("train", "validation", and the test splits)."""
        return ("train", "validation", *files.test_names(self.tests))

    def part(self, split) -> files.Part:
        """Returns the path and the range of a split; raises UserError for an unknown split."""
        return files.Part.parse(self.path_of(split))

    def path_of(self, split: str) -> str:
        """Returns the path of a split, perhaps with a range; UserError for an unknown split."""
        paths = dict(zip(self.splits(), (self.train, self.validation, *self.tests), strict=True))
        return files.path_of(paths, split)


def ranged(part: files.Part, sentences: Sentences) -> Sentences:
    """Selects the sentences in the range of a path; raises UserError if there are none."""
    chosen: Any = sentences[part.range]
    if sentences and not chosen:
        start, stop = ("" if end is None else end for end in (part.range.start, part.range.stop))
        raise UserError(
            f"{part.path}[{start}:{stop}] has no words: {part.path} has {len(sentences):,} "
            "sentences, none of them in the range: give another range."
        )
    return chosen
