"""Sentences with given prefixes, as (source, target) pairs for an encoder-decoder."""

import dataclasses

from zoo.errors import UserError
from zoo.sources import files, table_rows
from zoo.sources.pairs import Pairs, are_two
from zoo.sources.source import Corpus, FileSource, Form, Source, ranged


@dataclasses.dataclass(frozen=True)
class AsPairs(Source):
    """Pairs made of sentences with prefixes: the prefix is the source, the other words the target.

    A language model reads a question and its answer as one sentence; an encoder-decoder reads the
    question and generates the answer. The separator is left out.

    Attributes:
      of: a source whose sentences begin with a prefix, such as `Prefixed`. Its tokens must be
        words, not characters: translations are read and written with blanks between words.

    Example:
      >>> _ = pathlib.Path("asked.tsv").write_text("how many cats ?\\tcount ( cat )\\n")
      >>> asked = data.Prefixed(train="asked.tsv", validation="asked.tsv")
      >>> corpus = data.AsPairs(asked).read("train")
      >>> corpus.source_text.sentences, corpus.sentences
      ([['how', 'many', 'cats', '?']], [['count', '(', 'cat', ')']])
    """

    of: Source

    def __post_init__(self):
        if self.of.of_characters:
            raise UserError(
                "data.AsPairs makes pairs of sentences of words, and "
                f"{type(self.of).__name__} reads characters: give data.Prefixed with the source in "
                "one column and the target in the other."
            )

    @property
    def form(self):
        """The form of pairs."""
        return Form(pairs=True)

    def with_test(self, path):
        """Returns the source with another test file, or the pairs of two files "SOURCE,TARGET"."""
        if are_two(path):
            return Pairs.of_file(path)
        return dataclasses.replace(self, of=self.of.with_test(path))

    def splits(self):
        """Returns the names of the source's splits."""
        return self.of.splits()

    def parts(self, split):
        """Returns the names of the parts of a split of the source."""
        return self.of.parts(split)

    def read(self, split):
        """Reads the pairs of a split.

        Raises:
          UserError: a sentence has no prefix or nothing else, or the source is a mixture, whose
            sentences are drawn by weights.
        """
        corpus = self.of.read(split)
        if corpus.mixture is not None:
            raise UserError(
                f"{corpus.name} is a mixture, whose sentences are drawn by weights: give "
                "data.AsPairs one corpus."
            )
        sources, targets = [], []
        prefixes = corpus.prefixes or [0] * len(corpus.sentences)
        for number, (words, given) in enumerate(zip(corpus.sentences, prefixes, strict=True), 1):
            separated = given > 0 and words[given - 1] == self.of.form.separator
            source, target = words[: given - separated], words[given:]
            if not source or not target:
                raise UserError(
                    f"{corpus.name}: sentence {number} has no prefix, or nothing but a prefix: "
                    "give data.AsPairs a source such as data.Prefixed, whose sentences have both."
                )
            sources.append(source)
            targets.append(target)
        return Corpus(corpus.name, targets, source_text=Corpus(corpus.name, sources))


# ---- questions and answers as one sequence: a question, a separator, and the answer to predict


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
        for number, cells in table_rows.lines(files.read_text(path), path):
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
