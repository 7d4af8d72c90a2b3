"""Replacement of unknown words in translations; see `zoo.alignment.unknown_words`."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from zoo.alignment import UnknownWords, restore_by_attention
from zoo.decoding.batched_search import Hypothesis
from zoo.errors import UserError
from zoo.evaluation import attention_maps
from zoo.evaluation.translators import Translator
from zoo.runs import checksums

WAYS = ("marks", "attention", "keep")


@dataclasses.dataclass(frozen=True, eq=False)
class Restoring:
    """Replacement of the unknown words in a translator's output."""

    translator: Translator
    dictionary: Mapping[str, str]
    # "marks", as the first run was trained to write them; "attention", of each unknown word; "keep"
    # leaves them; None for marks where the run has them, else for attention
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
                f"{run.path} does not tell which source word an unknown word translates: train "
                "with data.unknowns, or with attention, or leave --dictionary out."
            )
        attention_maps.check(self.translator, "--unknowns attention")

    @property
    def strategy(self) -> UnknownWords | None:
        """The way in which the first run was trained to mark unknown words; None if it was not."""
        return self.translator.runs[0].experiment.data.unknowns

    @property
    def way(self) -> str:
        """The way in which unknown words are replaced, one of `WAYS`."""
        return self.by or ("attention" if self.strategy is None else "marks")

    @property
    def _known(self):
        return self.translator.runs[0].others[0].ids

    def annotate(self, sentences: Sequence[list[str]]) -> list[list[str]]:
        """Returns the sources as the run was trained to read them."""
        if self.strategy is None:
            return [*sentences]
        return [self.strategy.annotate_source(words, self._known) for words in sentences]

    def words(self, hypothesis: Hypothesis, source: Sequence[str]) -> list[str]:
        """Returns the words of a hypothesis with its unknown words replaced."""
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
        """Describes how unknown words were replaced, for a passport; None if they were kept."""
        if self.way == "keep":
            return None
        dictionary = checksums.of_json(dict(self.dictionary)) if self.dictionary else None
        return {"by": self.way, "dictionary_sha256": dictionary}
