"""Unknown words put into translations; see `zoo.alignment.unknown_words`."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from zoo.alignment import UnknownWords, restore_by_attention
from zoo.decoding.batched_search import Hypothesis
from zoo.errors import UserError
from zoo.evaluation import attention_maps
from zoo.evaluation.translators import Translator
from zoo.runs import digests

WAYS = ("marks", "attention", "keep")


@dataclasses.dataclass(frozen=True, eq=False)
class Restoring:
    """What is known of unknown words when a translator's output is read.

    Attributes:
      translator: whose first run says how they are marked, or one of whose runs has attention.
      dictionary: {source word: target word}; a word that it has not is copied.
      by: "marks", as the first run was trained to write them; "attention", of each unknown word;
        "keep" puts nothing in; None for marks where the run has them, else for attention.

    Raises:
      UserError: there are no marks, or no attention, to go by.
    """

    translator: Translator
    dictionary: Mapping[str, str]
    by: str | None = None

    def __post_init__(self):
        run = self.translator.runs[0]
        if self.by == "marks" and self.strategy is None:
            raise UserError(
                f"{run.path} marks no unknown words: train with data.unknowns, or put them in by "
                "--unknowns attention."
            )
        if self.way != "attention":
            return
        if self.by is None and not attention_maps.attentive(self.translator):
            raise UserError(
                f"{run.path} does not say which source word an unknown word translates: train with "
                "data.unknowns, or with attention, or leave --dictionary out."
            )
        attention_maps.check(self.translator, "--unknowns attention")

    @property
    def strategy(self) -> UnknownWords | None:
        """How the first run was trained to mark unknown words; None for not at all."""
        return self.translator.runs[0].experiment.data.unknowns

    @property
    def way(self) -> str:
        """One of `WAYS`."""
        return self.by or ("attention" if self.strategy is None else "marks")

    @property
    def _known(self):
        return self.translator.runs[0].others[0].ids

    def annotate(self, sentences: Sequence[list[str]]) -> list[list[str]]:
        """The sources as the run was trained to read them."""
        if self.strategy is None:
            return [*sentences]
        return [self.strategy.annotate_source(words, self._known) for words in sentences]

    def words(self, hypothesis: Hypothesis, source: Sequence[str]) -> list[str]:
        """The words of a hypothesis, its unknown ones put in.

        Args:
          source: the words that were translated, not annotated.
        """
        words = self.translator.words(hypothesis)
        if self.way == "keep":
            return words
        if self.way == "marks" and self.strategy is not None:
            return self.strategy.restore(words, source, self.dictionary, self._known)
        unknown = self.translator.runs[0].lexicon.unknown
        if unknown is None or unknown not in words:
            return words
        (read,) = self.annotate([[*source]])
        weights = attention_maps.weights(self.translator, hypothesis, read)
        return restore_by_attention(words, source, weights, self.dictionary, unknown)

    def described(self) -> dict[str, Any] | None:
        """How unknown words were put in, for a passport; None for not at all."""
        if self.way == "keep":
            return None
        dictionary = digests.of_json(dict(self.dictionary)) if self.dictionary else None
        return {"by": self.way, "dictionary_sha256": dictionary}
