"""What every source of text gives: named splits of sentences, with the features of each token."""

import dataclasses

from zoo.errors import UserError


@dataclasses.dataclass(frozen=True)
class Corpus:
    """A split.

    Attributes:
      name: where it comes from, for messages.
      sentences: each a list of words.
      features: for each token a tuple of features ("POS:NOUN", "Number:Sing"), or None if the
        source has none.
      prefixes: of each sentence how many of its first words are given (a question, a condition):
        they are read, but neither trained nor counted. None if there are none.
    """

    name: str
    sentences: list[list[str]]
    features: list[list[tuple[str, ...]]] | None = None
    prefixes: list[int] | None = None

    def __post_init__(self):
        if not any(self.sentences):
            raise UserError(f"{self.name} has no words: give a text with at least one.")

    def lower_cased(self) -> "Corpus":
        """The same with every word in lower case."""
        sentences = [[word.lower() for word in sentence] for sentence in self.sentences]
        return dataclasses.replace(self, sentences=sentences)


class Source:
    """Where text comes from. Subclasses are frozen dataclasses.

    splits() -> names of the splits there are, "train" and "validation" among them
    read(split) -> Corpus
    lexicon_entries() -> {word: features} of words known beforehand, beside those of the splits
    """

    def splits(self) -> tuple[str, ...]:
        """The names of the splits."""
        raise TypeError(f"{type(self).__name__} does not say which splits it has")

    def read(self, split: str) -> Corpus:
        """The corpus of a split."""
        raise TypeError(f"{type(self).__name__} cannot read {split}")

    def lexicon_entries(self) -> dict[str, tuple[str, ...]]:
        """Words known beforehand with their features; none, as a rule."""
        return {}
