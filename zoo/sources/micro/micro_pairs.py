"""A small pair language: sentences of the micro language, and the same said backwards."""

import dataclasses

from zoo.errors import UserError, check_least
from zoo.sources.micro.micro import Micro
from zoo.sources.source import Corpus, Source


@dataclasses.dataclass(frozen=True)
class MicroPairs(Source):
    """Sentences of `Micro` and their translations, which are their words from the last to the
    first, each spelled from its last letter to its first.

    All agreement is kept, and every token of a translation has the features of its form. A decoder
    that does not know its source cannot say which sentence it is; one that does can be right of all
    of it, for a source has one translation.

    Attributes:
      language: the sources' language.
      longest: words of the longest sentence that is kept.

    Example:
      >>> language = data.MicroPairs().language
      >>> small = dict.fromkeys(("train_sentences", "validation_sentences", "test_sentences"), 9)
      >>> corpus = data.MicroPairs(dataclasses.replace(language, **small)).read("train")
      >>> said = corpus.sentences[0], corpus.source_text.sentences[0]
      >>> said[0] == [word[::-1] for word in said[1][::-1]]
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
        """("train", "validation", "test")."""
        return self.language.splits()

    def read(self, split):
        """Draws the sentences of a split and says them backwards.

        Raises:
          UserError: there is no such split, or no sentence is as short as `longest`.
        """
        whole = self.language.read(split)
        features = whole.features or []
        short = [n for n, words in enumerate(whole.sentences) if len(words) <= self.longest]
        if not short:
            raise UserError(
                f"data.longest={self.longest}: no sentence of the micro language is as short: "
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
        """Features of every word form of the translations, seen in a corpus or not."""
        return {word[::-1]: features for word, features in self.language.lexicon_entries().items()}
