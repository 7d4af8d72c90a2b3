"""Several corpora as one: an epoch's sentences are drawn from them by weights.

Labeau and Allauzen, "Opening the vocabulary of neural language models" (2017), sections 3.1 and
4.1: "training examples are sampled from these corpora given weights", and an epoch is a number of
samples. The corpora need not be of one language: the lexicon has the words of them all, and a model
of letters has no parameter of a word.
"""

import collections
import dataclasses
import pathlib
import re

import numpy as np

from zoo.arrays import memory
from zoo.errors import UserError, check_least
from zoo.sources import files
from zoo.sources.source import Corpus, Form, Mixture, Source


@dataclasses.dataclass(frozen=True)
class Mixed(Source):
    """Corpora side by side.

    "train" and "validation" are those of all corpora, one after the other, "validation" of those in
    `validated` alone, if any is named there; a checkpoint is the best on "validation". The tests
    are split by split, "NAME.test", and validation is judged corpus by corpus, too, as
    "NAME.validation".

    Whatever training.shuffle says, every epoch draws its sentences anew: each from a corpus by the
    weights, and within a corpus without return, beginning again when all were drawn. So a corpus of
    a small weight is seen in part, another part each epoch, and one of a large weight several
    times. The draws are fixed by training.seed and the epoch. Counts (of noise distributions,
    minimum_count) are of the corpora as they are, each sentence once.

    Attributes:
      names: of the corpora, for the names of splits.
      corpora: where each comes from.
      weights: how often a sentence is drawn from each, relative to the others; empty for the
        numbers of their sentences.
      sentences: how many are drawn an epoch; 0 for as many as the corpora have.
      validated: names of the corpora whose "validation" is that of all, as those of the domain
        that a model is for; empty for all corpora.

    Example:
      >>> one = data.Text(**paths)
      >>> source = data.Mixed(names=("a", "b"), corpora=(one, one), weights=(3, 1))
      >>> source.splits(), len(source.read("train").sentences)
      (('train', 'validation'), 4)
    """

    names: tuple[str, ...]
    corpora: tuple[Source, ...]
    weights: tuple[float, ...] = ()
    sentences: int = 0
    validated: tuple[str, ...] = ()

    def __post_init__(self):
        check_least(self, "data", sentences=0)
        if not self.corpora:
            raise UserError("data.corpora is empty: give at least one.")
        for field in ("names", "weights"):
            count = len(getattr(self, field))
            if count != len(self.corpora) and (count or field == "names"):
                raise UserError(
                    f"data.{field} has {count} items for {len(self.corpora)} corpora: give one for "
                    "each."
                )
        if len({*self.names}) < len(self.names) or not all(
            re.fullmatch(r"[\w-]+", name) for name in self.names
        ):
            raise UserError(
                f"data.names={self.names}: give names of letters, digits and hyphens that differ."
            )
        if self.weights and not (
            np.isfinite(np.array(self.weights, float)).all()
            and min(self.weights) >= 0
            and max(self.weights) > 0
        ):
            raise UserError(
                f"data.weights={self.weights}: give finite numbers, none below 0 and at least one "
                "above."
            )
        for name in self.validated:
            if name not in self.names:
                raise UserError(
                    f"data.validated names {name!r}: the corpora are {', '.join(self.names)}."
                )
        if any(isinstance(corpus, Mixed) for corpus in self.corpora):
            raise UserError("data.corpora has a Mixed in it: give that one's corpora themselves.")

    @property
    def form(self):
        """How those corpora that have fused forms read them, if there is one way."""
        ways = {corpus.form.fused for corpus in self.texts()} - {None}
        return Form(fused=ways.pop() if len(ways) == 1 else None)

    def with_test(self, path):
        """The first corpus whose training file has the suffix of the file at `path`, with it."""
        corpus = self.like(path)
        return super().with_test(path) if corpus is None else corpus.with_test(path)

    def texts(self) -> list[Source]:
        return [text for corpus in self.corpora for text in corpus.texts()]

    def splits(self):
        """("train", "validation", the tests of each corpus as "NAME.SPLIT"); the validation of
        those that are not validated is a test."""
        parts = {*self.parts("train"), *self.parts("validation")}
        tests = [
            f"{name}.{split}"
            for name, corpus in zip(self.names, self.corpora, strict=True)
            for split in corpus.splits()
            if f"{name}.{split}" not in parts
        ]
        return ("train", "validation", *tests)

    def parts(self, split):
        """("NAME.SPLIT", ...) of "train" and "validation"."""
        if split not in ("train", "validation"):
            return ()
        chosen = split == "validation" and self.validated
        return tuple(f"{name}.{split}" for name in self.names if not chosen or name in chosen)

    def read(self, split):
        """A split, or a part of one.

        Raises:
          UserError: there is no such split, or this machine has not the memory for the numbers of
            as many sentences as an epoch draws.
        """
        memory.check_fields(self, "data", sentences=8)
        if split in ("train", "validation"):
            parts = self.parts(split)
            corpora = [
                corpus.read(split)
                for name, corpus in zip(self.names, self.corpora, strict=True)
                if f"{name}.{split}" in parts
            ]
            return _joined(corpora, self._mixture(corpora) if split == "train" else None)
        name, _, of_corpus = split.partition(".")
        known = [*self.splits(), *self.parts("train"), *self.parts("validation")]
        if split not in known:
            raise UserError(f"there is no split {split!r}: the data have {', '.join(known)}.")
        return self.corpora[self.names.index(name)].read(of_corpus)

    def lexicon_entries(self):
        """The words that the corpora know beforehand, with the features that any gives."""
        entries: collections.defaultdict = collections.defaultdict(tuple)
        for corpus in self.corpora:
            for word, features in corpus.lexicon_entries().items():
                entries[word] += features
        return dict(entries)

    def like(self, path: str) -> Source | None:
        """The first corpus whose training file has the suffix of the file at `path`, if any."""
        for corpus in self.texts():
            train = files.Part.parse(getattr(corpus, "train", "")).path
            if pathlib.Path(train).suffix == pathlib.Path(files.Part.parse(path).path).suffix:
                return corpus
        return None

    def _mixture(self, corpora):
        sizes = tuple(len(corpus.sentences) for corpus in corpora)
        return Mixture(sizes, self.weights or sizes, self.sentences or sum(sizes))


def _joined(corpora: list[Corpus], mixture: Mixture | None) -> Corpus:
    """The corpora one after the other; what only some have is empty for the others."""
    sentences = [sentence for corpus in corpora for sentence in corpus.sentences]
    features = prefixes = None
    if any(corpus.features is not None for corpus in corpora):
        features = [
            of_sentence
            for corpus in corpora
            for of_sentence in corpus.features or [[()] * len(words) for words in corpus.sentences]
        ]
    if any(corpus.prefixes is not None for corpus in corpora):
        prefixes = [
            prefix
            for corpus in corpora
            for prefix in corpus.prefixes or [0] * len(corpus.sentences)
        ]
    name = " + ".join(corpus.name for corpus in corpora)
    fused = {form: words for corpus in corpora for form, words in corpus.fused.items()}
    return Corpus(name, sentences, features, prefixes, mixture, fused)
