"""Artificial translations: sentences of the micro language, and their reversals."""

import dataclasses

from zoo.errors import UserError, check_least
from zoo.sources.micro.micro import Micro
from zoo.sources.source import Corpus, Source


@dataclasses.dataclass(frozen=True)
class MicroPairs(Source):
    """Sentences of `Micro` and their translations, the same sentences letter by letter backwards.

    A translation has the words in reverse order, each spelled backwards. All agreement is kept, and
    every token of a translation has the features of its form. A source has only one translation: a
    decoder that knows its source can predict the translation exactly.

    Attributes:
      language: the language of the sources.
      longest: most words of a sentence; longer sentences are dropped.

    Example:
      >>> language = data.MicroPairs().language
      >>> small = dict.fromkeys(("train_sentences", "validation_sentences", "test_sentences"), 9)
      >>> corpus = data.MicroPairs(dataclasses.replace(language, **small)).read("train")
      >>> target, source = corpus.sentences[0], corpus.source_text.sentences[0]
      >>> target == [word[::-1] for word in source[::-1]]
      True
    """

    generated = True

    language: Micro = Micro(
        nouns=24, adjectives=12, verbs=12, places=8, quantities=6, years=4, train_sentences=16000
    )
    longest: int = 8

    def __post_init__(self):
        check_least(self, "data", longest=1)

    def splits(self):
        """Returns ("train", "validation", "test")."""
        return self.language.splits()

    def read(self, split):
        """Draws the sentences of a split and reverses them.

        Raises:
          UserError: the split is unknown, or no sentence has at most `longest` words.
        """
        whole = self.language.read(split)
        features = whole.features or []
        short = [n for n, words in enumerate(whole.sentences) if len(words) <= self.longest]
        if not short:
            raise UserError(
                f"data.longest={self.longest}: no sentence of the micro language is this short: "
                "raise it."
            )
        sources = [whole.sentences[number] for number in short]
        return Corpus(
            whole.name,
            [[word[::-1] for word in reversed(words)] for words in sources],
            [[*reversed(features[number])] for number in short],
            source_text=Corpus(whole.name, sources),
        )

    def lexicon_entries(self):
        """Returns the features of every word form of the translations, seen in a corpus or not."""
        return {word[::-1]: features for word, features in self.language.lexicon_entries().items()}
