"""Questions and answers as one sequence: a question, a separator, and the answer to predict."""

import dataclasses

from zoo.errors import UserError
from zoo.sources import csv_rows, files
from zoo.sources.file_source import FileSource, ranged
from zoo.sources.source import Corpus, Form


@dataclasses.dataclass(frozen=True)
class Prefixed(FileSource):
    """Files with a question, a tab and its answer a line, words between white space.

    The question and the separator are a prefix: the model reads it, but is neither trained nor
    evaluated on it.

    Attributes:
      train: path of a file, perhaps with a range of its lines that are not blank.
      validation: as `train`.
      tests: as `train`, for the test splits "test1", "test2" ... ("test" if one).
      separator: the word between question and answer; it must not occur in either.

    Example:
      >>> _ = pathlib.Path("questions.tsv").write_text("how many ?\\tcount A\\n")
      >>> corpus = data.Prefixed(train="questions.tsv", validation="questions.tsv").read("train")
      >>> corpus.sentences, corpus.prefixes
      ([['how', 'many', '?', '|||', 'count', 'A']], [4])
    """

    separator: str = "|||"

    @property
    def form(self):
        """The form of sentences with a prefix up to the separator."""
        return Form(separator=self.separator)

    def read(self, split):
        """Reads the pairs of a split; raises UserError, naming the line, for a malformed pair."""
        part = self.part(split)
        path = files.find(part.path)
        sentences, prefixes = [], []
        for number, cells in csv_rows.lines(files.read_text(path), path):
            columns = [cell.split() for cell in cells]
            if not any(columns):
                continue
            if len(columns) != 2 or not all(columns):
                raise UserError(f"{path}, line {number}: write a question, one tab and its answer.")
            question, answer = columns
            if self.separator in (*question, *answer):
                raise UserError(
                    f"{path}, line {number}: the separator {self.separator!r} is among the words: "
                    "set data.separator, or data.of.separator within AsPairs, to another word."
                )
            sentences.append([*question, self.separator, *answer])
            prefixes.append(len(question) + 1)
        return Corpus(part.path, ranged(part, sentences), prefixes=prefixes[part.range])
