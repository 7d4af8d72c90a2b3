"""The interface of sources: named splits of sentences, with the features of each token."""

import collections
import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from zoo.errors import UserError
from zoo.sources import files
from zoo.sources.mapped_text import ArraySentences


@dataclasses.dataclass(frozen=True)
class Mixture:
    """The distribution of an epoch's sentences over concatenated texts."""

    sizes: tuple[int, ...]
    weights: tuple[float, ...]
    sentences: int

    def order(self, generator: np.random.Generator) -> np.ndarray:
        """Draws an epoch's sentences, int64 [sentences]: of each text without replacement."""
        shares = np.array(self.weights, np.float64) / np.sum(self.weights)
        texts = generator.choice(len(self.sizes), size=self.sentences, p=shares)
        numbers = np.empty(self.sentences, np.int64)
        first = np.cumsum((0, *self.sizes[:-1]))
        for text, size in enumerate(self.sizes):
            positions = np.flatnonzero(texts == text)
            rounds = [generator.permutation(size) for _ in range(-(-len(positions) // size))]
            if rounds:
                numbers[positions] = first[text] + np.concatenate(rounds)[: len(positions)]
        return numbers


@dataclasses.dataclass(frozen=True, repr=False)
class Corpus:
    """A split of a source: its sentences, and the features of their tokens.

    Attributes:
      name: its path or origin, for messages.
      sentences: the sentences, each a list of words: a list, or a sequence that makes the list of
        a sentence when it is read.
      features: for each token a tuple of features ("POS:NOUN", "Number:Sing"), or None if the
        source has none.
      prefixes: the length of each sentence's prefix, such as a question or a condition: the model
        reads it, but is neither trained nor evaluated on it. None if no sentence has one.
      mixture: how an epoch of training draws its sentences; None to take each once.
      fused: {fused form: the words read in its place}, as in {"du": ("de", "le")}, for treebanks.
      source_text: for translations, the corpus of their sources, one for one; else None.
      items: the first sentence of each item, such as a story; None if each sentence is an item.

    Example:
      >>> corpus = data.Corpus("a text", [["The", "cat"], ["the"]])
      >>> corpus.lower_cased().token_counts()["the"]
      2
    """

    name: str
    sentences: Sequence[list[str]]
    features: Sequence[list[tuple[str, ...]]] | None = None
    prefixes: list[int] | None = None
    mixture: Mixture | None = None
    fused: dict[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    source_text: "Corpus | None" = None
    items: list[int] | None = None

    def __post_init__(self):
        if not any(self.sentences):
            raise UserError(f"{self.name} has no words: give a text with at least one.")

    def __repr__(self):
        return f"{type(self).__name__}({self.name!r}: {len(self.sentences):,} sentences)"

    def arrays(self) -> ArraySentences:
        """Returns the sentences as arrays of ids."""
        if isinstance(self.sentences, ArraySentences):
            return self.sentences
        return ArraySentences.encode(self.sentences)

    def token_counts(self) -> collections.Counter:
        """Counts the occurrences of each word."""
        return self.arrays().counts()

    def select(self, rows: Sequence[int]) -> "Corpus":
        """Returns the corpus of some of the sentences, with the sources of translations."""
        features, prefixes, source = self.features, self.prefixes, self.source_text
        return dataclasses.replace(
            self,
            sentences=[self.sentences[row] for row in rows],
            features=features and [features[row] for row in rows],
            prefixes=prefixes and [prefixes[row] for row in rows],
            source_text=source and source.select(rows),
            mixture=None,
            items=None,
        )

    def lower_cased(self) -> "Corpus":
        """Returns the corpus in lower case."""
        arrays = self.arrays()
        sentences = arrays.respelled(map(str.lower, arrays.words))
        fused = {
            form.lower(): tuple(word.lower() for word in words)
            # A form in lower case stands for itself, whatever "Du" is made of.
            for form, words in sorted(self.fused.items(), key=lambda item: item[0].islower())
        }
        return dataclasses.replace(self, sentences=sentences, fused=fused)


@dataclasses.dataclass(frozen=True, repr=False)
class Counted(Corpus):
    """A text known only by its word counts; its sentences are placeholders."""

    counts: collections.Counter = dataclasses.field(default_factory=collections.Counter)

    def token_counts(self) -> collections.Counter:
        return self.counts


class Form(NamedTuple):
    """How a source reads text, so that other texts can be read in the same way."""

    separator: str = ""
    column: str = "text"
    # how blank lines are read, see `Text.blank_lines`; None if the format has none
    blank_lines: str | None = None
    # how fused forms are read, see `Conllu.fused`; None if the format has none
    fused: str | None = None
    plain: bool = False
    pairs: bool = False
    language: str = ""
    source_language: str = ""


class Source:
    """A source of text. Subclasses are frozen dataclasses and implement `splits` and `read`."""

    # Subclasses are dataclasses.
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]
    # How unknown words of pairs are marked for training, see `Pairs.unknowns`; None for not at all.
    unknowns: Any = None
    # Whether the tokens are characters, which are written without blanks between them.
    is_character_level: bool = False
    # Whether zoo generates the text, so that no licence applies.
    generated: bool = False

    @property
    def form(self) -> Form:
        """How the source reads text."""
        return Form()

    def within(self) -> "Source":
        """Returns the source that reads the text: itself, unless it wraps another."""
        return self

    def with_test(self, path: str) -> "Source":
        """Returns the source with `path` as its only test; plain text if it has no test files."""
        if any(field.name == "tests" for field in dataclasses.fields(self)):
            source: Any = dataclasses.replace(self, **{"tests": (path,)})
            return source
        from zoo.sources.text import Text  # which is a source

        return Text(train=path, validation=path, tests=(path,))

    def splits(self) -> tuple[str, ...]:
        """Returns the names of the splits, including "train" and "validation"."""
        raise TypeError(f"{type(self).__name__} does not implement splits")

    def read(self, split: str) -> Corpus:
        """Reads the corpus of a split, one of `splits()` or of its `parts`."""
        raise TypeError(f"{type(self).__name__} cannot read {split}")

    def lexicon_entries(self) -> dict[str, tuple[str, ...]]:
        """Returns {word: features} of words that enter the lexicon anyway; by default none."""
        return {}

    def parts(self, split: str) -> tuple[str, ...]:
        """Returns the names under which `read` reads parts of a split; by default none."""
        return ()

    def as_written(self) -> "Source":
        """Returns the source of the texts without marks of unknown words, by default itself."""
        return self

    def texts(self) -> list["Source"]:
        """Returns the sources that read the text, by default itself alone."""
        return [self]


@dataclasses.dataclass(frozen=True)
class InMemory(Source):
    """A source of corpora in memory, {split: corpus}; `entries` are its `lexicon_entries`."""

    corpora: dict[str, Corpus]
    entries: dict[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)

    def splits(self):
        return tuple(self.corpora)

    def read(self, split):
        return self.corpora[split]

    def lexicon_entries(self):
        return self.entries


def check_split(split: str, splits: Sequence[str]):
    if split not in splits:
        raise UserError(f"unknown split {split!r}: the data have {', '.join(splits)}.")


# ------------------------ the base class of sources that read files: a path for each split

# A list of sentences, or another sequence that can be sliced.
Sentences = TypeVar("Sentences", bound=Sequence)


class Paths(Source):
    """The fields `train` and `validation`, a path or several, and `tests`, a tuple of such."""

    train: Any
    validation: Any
    tests: Any

    def splits(self):
        """Returns ("train", "validation", and the test splits: "test", or "test1", "test2" ...)."""
        numbered = tuple(f"test{number}" for number, _ in enumerate(self.tests, 1))
        return ("train", "validation", *(("test",) if len(self.tests) == 1 else numbered))

    def path_of(self, split: str) -> Any:
        """Returns the path of a split, perhaps with a range."""
        check_split(split, self.splits())
        return (self.train, self.validation, *self.tests)[self.splits().index(split)]


@dataclasses.dataclass(frozen=True)
class FileSource(Paths):
    """Files, one for each split. Subclasses read them."""

    train: str  # path of a file, perhaps with a range of its sentences: 'a.txt[:-1000]'
    validation: str
    tests: tuple[str, ...] = ()

    def part(self, split) -> files.Part:
        return files.Part.parse(self.path_of(split))


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
