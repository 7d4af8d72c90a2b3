"""Mixtures of corpora: an epoch's sentences are drawn from several corpora by weights.

Labeau and Allauzen, "Opening the vocabulary of neural language models" (2017), sections 3.1 and
4.1: "training examples are sampled from these corpora given weights", and an epoch is a number of
samples. The corpora may be in different languages: the lexicon has the words of all of them.
"""

import collections
import dataclasses
import pathlib
import re

import numpy as np

from zoo.base.arrays import memory
from zoo.errors import UserError, check_least
from zoo.sources import files
from zoo.sources.source import Corpus, Form, Mixture, Source, check_split


@dataclasses.dataclass(frozen=True)
class Mixed(Source):
    """A mixture of corpora.

    "train" concatenates the "train" splits of all corpora, "validation" the "validation" splits of
    the corpora in `validated`, or of all. The best checkpoint is chosen on "validation". Tests are
    named "NAME.test"; each corpus can also be evaluated on its "NAME.validation".

    Every epoch draws its sentences anew, whatever training.shuffle is: for each sentence a corpus
    is drawn by the weights, then a sentence of it without replacement, starting again when all have
    been drawn. A corpus with a small weight is seen in part, another part each epoch; a corpus with
    a large weight is seen several times. The draws depend on training.seed and the epoch alone.
    Word counts (for noise distributions and minimum_count) take each sentence of a corpus once.

    Attributes:
      names: the names of the corpora, used in the names of splits.
      corpora: the source of each corpus.
      weights: the relative frequency with which each corpus is drawn; empty for the numbers of
        sentences.
      sentences: sentences drawn an epoch; 0 for as many as the corpora have.
      validated: names of the corpora whose "validation" splits make up "validation", such as the
        target domain; empty for all corpora.

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
        """Raises UserError unless the fields fit the corpora and the weights are in range."""
        check_least(self, "data", sentences=0)
        count, weights = len(self.corpora), np.array(self.weights or (1.0,), float)
        items = {"names": len(self.names), "weights": len(self.weights) or count}
        are_words = all(re.fullmatch(r"[\w-]+", name) for name in self.names)
        absent = [name for name in self.validated if name not in self.names]
        checks = (
            (not count, "corpora is empty: give at least one"),
            *(
                (size != count, f"{field} has {size} items for {count} corpora: give one for each")
                for field, size in items.items()
            ),
            (
                len({*self.names}) < count or not are_words,
                f"names={self.names}: give names of letters, digits and hyphens that differ",
            ),
            (
                not (np.isfinite(weights).all() and weights.min() >= 0 and weights.max() > 0),
                f"weights={self.weights}: give finite numbers, none below 0 and at least one above",
            ),
            (
                absent,
                f"validated names {''.join(absent[:1])!r}: the corpora are {', '.join(self.names)}",
            ),
            (
                any(isinstance(corpus, Mixed) for corpus in self.corpora),
                "corpora has a Mixed in it: give the corpora of that Mixed instead",
            ),
        )
        for wrong, message in checks:
            if wrong:
                raise UserError(f"data.{message}.")

    @property
    def form(self):
        """The way in which the corpora read fused forms and split words, if they agree."""
        fused_forms = {corpus.form.fused for corpus in self.texts()} - {None}
        languages = {corpus.form.language for corpus in self.texts()}
        return Form(
            fused=fused_forms.pop() if len(fused_forms) == 1 else None,
            language=languages.pop() if len(languages) == 1 else "",
        )

    def with_test(self, path):
        """Returns the first corpus with a training file of the same suffix, with `path` as test."""
        suffix = pathlib.Path(files.Part.parse(path).path).suffix
        for corpus in self.texts():
            train = files.Part.parse(getattr(corpus, "train", "")).path
            if pathlib.Path(train).suffix == suffix:
                return corpus.with_test(path)
        return super().with_test(path)

    def texts(self) -> list[Source]:
        return [text for corpus in self.corpora for text in corpus.texts()]

    def splits(self):
        """Returns ("train", "validation", and the tests of each corpus as "NAME.SPLIT").

        The validation splits of corpora outside `validated` are tests.
        """
        parts = {*self.parts("train"), *self.parts("validation")}
        tests = [
            f"{name}.{split}"
            for name, corpus in zip(self.names, self.corpora, strict=True)
            for split in corpus.splits()
            if f"{name}.{split}" not in parts
        ]
        return ("train", "validation", *tests)

    def parts(self, split):
        """Returns the parts "NAME.SPLIT" of "train" or "validation"; () for other splits."""
        if split not in ("train", "validation"):
            return ()
        chosen = split == "validation" and self.validated
        return tuple(f"{name}.{split}" for name in self.names if not chosen or name in chosen)

    def read(self, split):
        memory.check_fields(self, "data", sentences=8)
        if split in ("train", "validation"):
            corpora = [self.read(part) for part in self.parts(split)]
            sizes = tuple(len(corpus.sentences) for corpus in corpora)
            mixture = Mixture(sizes, self.weights or sizes, self.sentences or sum(sizes))
            return _concatenate(corpora, mixture if split == "train" else None)
        name, _, corpus_split = split.partition(".")
        check_split(split, (*self.splits(), *self.parts("train"), *self.parts("validation")))
        return self.corpora[self.names.index(name)].read(corpus_split)

    def lexicon_entries(self):
        entries: collections.defaultdict = collections.defaultdict(tuple)
        for corpus in self.corpora:
            for word, features in corpus.lexicon_entries().items():
                entries[word] += features
        return dict(entries)


def _concatenate(corpora: list[Corpus], mixture: Mixture | None) -> Corpus:
    """Concatenates corpora; features and prefixes that only some have are empty for the others."""
    sentences = [sentence for corpus in corpora for sentence in corpus.sentences]
    features = prefixes = None
    if any(corpus.features is not None for corpus in corpora):
        features = list[list[tuple[str, ...]]]()
        for corpus in corpora:
            features += corpus.features or [[()] * len(words) for words in corpus.sentences]
    if any(corpus.prefixes is not None for corpus in corpora):
        prefixes = []
        for corpus in corpora:
            prefixes += corpus.prefixes or [0] * len(corpus.sentences)
    name = " + ".join(corpus.name for corpus in corpora)
    fused = {form: words for corpus in corpora for form, words in corpus.fused.items()}
    return Corpus(name, sentences, features, prefixes, mixture, fused)
