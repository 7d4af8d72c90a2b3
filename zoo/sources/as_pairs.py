"""Sentences with given prefixes, as (source, target) pairs for an encoder-decoder."""

import dataclasses

from zoo.errors import UserError
from zoo.sources.pairs import Pairs, are_two
from zoo.sources.source import Corpus, Form, Source


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
