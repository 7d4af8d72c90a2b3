"""What sentences begin with and how they go on, as pairs for an encoder-decoder."""

import dataclasses

from zoo.errors import UserError
from zoo.sources.pairs import Pairs, are_two
from zoo.sources.source import Corpus, Form, Source


@dataclasses.dataclass(frozen=True)
class AsPairs(Source):
    """The given words of each sentence as its source, and the others as what is learnt.

    A language model reads a question and its answer as one sentence; an encoder-decoder reads the
    question and says the answer. The separator is left out.

    Attributes:
      of: a source whose sentences begin with given words, such as `Prefixed`. Its words must not
        be characters: translations are read and written with blanks between words.

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
        """Pairs of what the source's sentences are parted into."""
        return Form(pairs=True)

    def with_test(self, path):
        """The source with another file, or the pairs of two files, "SOURCE,TARGET"."""
        if are_two(path):
            return Pairs.of_file(path)
        return dataclasses.replace(self, of=self.of.with_test(path))

    def splits(self):
        """Those of the source."""
        return self.of.splits()

    def parts(self, split):
        """Those of the source."""
        return self.of.parts(split)

    def read(self, split):
        """The pairs of a split.

        Raises:
          UserError: a sentence has no given words, or nothing but them, or an epoch draws its
            sentences by weights, which pairs cannot.
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
                    f"{corpus.name}: sentence {number} has no words that are given, or no others: "
                    "data.AsPairs needs a source such as data.Prefixed, whose sentences have both."
                )
            sources.append(source)
            targets.append(target)
        return Corpus(corpus.name, targets, source_text=Corpus(corpus.name, sources))
