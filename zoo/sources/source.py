"""The contract of sources: named splits of sentences, with the features of each token."""

import collections
import dataclasses
import itertools
from typing import Any, ClassVar, NamedTuple

import numpy as np

from zoo.alignment import UnknownWords
from zoo.errors import UserError


@dataclasses.dataclass(frozen=True)
class Mixture:
    """How the sentences of an epoch are drawn from texts that stand one after the other.

    Attributes:
      sizes: sentences of each text.
      weights: how often each is drawn from, relative to the others.
      sentences: how many are drawn an epoch.
    """

    sizes: tuple[int, ...]
    weights: tuple[float, ...]
    sentences: int

    def order(self, generator: np.random.Generator) -> np.ndarray:
        """The numbers of the sentences that an epoch takes, int64 [sentences], drawn independently.

        A text's sentences come without return, in a new random order whenever all have come.
        """
        shares = np.array(self.weights, np.float64) / np.sum(self.weights)
        texts = generator.choice(len(self.sizes), size=self.sentences, p=shares)
        numbers = np.empty(self.sentences, np.int64)
        first = np.cumsum((0, *self.sizes[:-1]))
        for text, size in enumerate(self.sizes):
            drawn = np.flatnonzero(texts == text)
            rounds = [generator.permutation(size) for _ in range(-(-len(drawn) // size))]
            if rounds:
                numbers[drawn] = first[text] + np.concatenate(rounds)[: len(drawn)]
        return numbers


@dataclasses.dataclass(frozen=True)
class Corpus:
    """A split of a source: its sentences, and what is known of their tokens.

    Attributes:
      name: where it comes from, for messages.
      sentences: each a list of words.
      features: for each token a tuple of features ("POS:NOUN", "Number:Sing"), or None if the
        source has none.
      prefixes: of each sentence how many of its first words are given (a question, a condition):
        they are read, but neither trained nor counted. None if there are none.
      mixture: how an epoch of training draws its sentences; None if it takes each once.
      fused: {surface form: the words that the text has in its place}, as {"du": ("de", "le")}, of
        the forms that a treebank is read without.
      source_text: of pairs, what these sentences are translations of, one for one; else None.

    Example:
      >>> corpus = data.Corpus("a text", [["The", "cat"], ["the"]])
      >>> corpus.lower_cased().token_counts()["the"]
      2
    """

    name: str
    sentences: list[list[str]]
    features: list[list[tuple[str, ...]]] | None = None
    prefixes: list[int] | None = None
    mixture: Mixture | None = None
    fused: dict[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    source_text: "Corpus | None" = None

    def __post_init__(self):
        if not any(self.sentences):
            raise UserError(f"{self.name} has no words: give a text with at least one.")

    def token_counts(self) -> collections.Counter:
        """How often each word occurs."""
        return collections.Counter(itertools.chain.from_iterable(self.sentences))

    def lower_cased(self) -> "Corpus":
        """The corpus with every word in lower case."""
        sentences = [[word.lower() for word in sentence] for sentence in self.sentences]
        fused = {
            form.lower(): tuple(word.lower() for word in words)
            # A form in lower case stands for itself, whatever "Du" is made of.
            for form, words in sorted(self.fused.items(), key=lambda item: item[0].islower())
        }
        return dataclasses.replace(self, sentences=sentences, fused=fused)


@dataclasses.dataclass(frozen=True)
class Counted(Corpus):
    """A text of which the counts of words are known and no more; its sentences are no text.

    Attributes:
      counts: how often each word occurs.
    """

    counts: collections.Counter = dataclasses.field(default_factory=collections.Counter)

    def token_counts(self) -> collections.Counter:
        """The counts that are known."""
        return self.counts


class Form(NamedTuple):
    """How a source reads text, for who reads other text the same way.

    Attributes:
      separator: the word between what is given and what is learnt; "" where all is learnt.
      column: the column of tables that the text is in.
      blank_lines: how blank lines are read; None where there are none.
      fused: how fused forms of treebanks are read; None where there are none.
      plain: whether a file is sentences of words, which `zoo.sources.evaluation_texts` reads as
        they stand.
      pairs: whether sentences are translations of others.
    """

    separator: str = ""
    column: str = "text"
    blank_lines: str | None = None
    fused: str | None = None
    plain: bool = False
    pairs: bool = False


class Source:
    """A source of text. Subclasses are frozen dataclasses, and write the first two methods.

    splits() -> names of the splits there are, "train" and "validation" among them
    read(split) -> Corpus
    form -> how text is read
    with_test(path) -> the source that reads another file as its test
    lexicon_entries() -> {word: features} of words known beforehand, beside those of the splits
    parts(split) -> names of the texts that a split is put together from, which can be read alone
    within() -> the source that reads the text: itself, unless it is a wrapper of another
    as_written() -> the source of the same texts without marks of unknown words
    texts() -> the sources that read the text, one by one: itself, unless it is put together
    """

    # Subclasses are dataclasses.
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]
    # How unknown words of pairs are marked for training; None for not at all.
    unknowns: UnknownWords | None = None
    # Whether the words are characters, which are read and written without blanks between them.
    of_characters: bool = False
    # Whether zoo generates the text, which then needs no licence.
    generated: bool = False

    @property
    def form(self) -> Form:
        """How the source reads text."""
        return Form()

    def with_test(self, path: str) -> "Source":
        """The source with `path` as its only test, plain text for a source that has no files."""
        if any(field.name == "tests" for field in dataclasses.fields(self)):
            changed: Any = dataclasses.replace(self, **{"tests": (path,)})
            return changed
        from zoo.sources.text import Text  # which is a source

        return Text(train=path, validation=path, tests=(path,))

    def splits(self) -> tuple[str, ...]:
        """The names of the splits."""
        raise TypeError(f"{type(self).__name__} does not say which splits it has")

    def read(self, split: str) -> Corpus:
        """The corpus of a split."""
        raise TypeError(f"{type(self).__name__} cannot read {split}")

    def lexicon_entries(self) -> dict[str, tuple[str, ...]]:
        """Words known beforehand with their features; none, as a rule."""
        return {}

    def parts(self, split: str) -> tuple[str, ...]:
        """Names under which `read` gives parts of a split; none, as a rule."""
        return ()

    def within(self) -> "Source":
        """The source that reads the text: itself, as a rule."""
        return self

    def as_written(self) -> "Source":
        """The source of the same texts without marks of unknown words: itself, as a rule."""
        return self

    def texts(self) -> list["Source"]:
        """The sources that read the text, one by one: itself, as a rule."""
        return [self]


@dataclasses.dataclass(frozen=True)
class Held(Source):
    """Corpora that are at hand, {split: corpus}, as a source; entries: see `lexicon_entries`."""

    corpora: dict[str, Corpus]
    entries: dict[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)

    def splits(self):
        """The splits that are held."""
        return tuple(self.corpora)

    def read(self, split):
        """The corpus itself."""
        return self.corpora[split]

    def lexicon_entries(self):
        """The words that were known."""
        return self.entries
