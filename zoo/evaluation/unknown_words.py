"""Unknown words put into translations; see `zoo.alignment.unknown_words`."""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import cast

import jax
import numpy as np

from zoo.alignment import UnknownWords, restore_by_attention
from zoo.data.buckets import source_batch
from zoo.decoding.translate import Hypothesis, size_of
from zoo.errors import UserError
from zoo.evaluation.translation import Translator
from zoo.models import SequenceToSequence


@dataclasses.dataclass(frozen=True, eq=False)
class Restoring:
    """What is known of unknown words when a translator's output is read.

    Attributes:
      translator: whose first run says how they are marked, or has attention.
      dictionary: {source word: target word}; a word that it has not is copied.

    Raises:
      UserError: the first run has neither marks nor attention.
    """

    translator: Translator
    dictionary: Mapping[str, str]

    def __post_init__(self):
        run = self.translator.runs[0]
        if self.strategy is None and self._model.attention is None:
            raise UserError(
                f"{run.path} does not say which source word an unknown word translates: train with "
                "data.unknowns, or with attention, or leave --dictionary out."
            )

    @property
    def strategy(self) -> UnknownWords | None:
        """How the first run was trained to mark unknown words; None for not at all."""
        return self.translator.runs[0].experiment.data.unknowns

    @property
    def _model(self) -> SequenceToSequence:
        return cast(SequenceToSequence, self.translator.runs[0].experiment.model)

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
        if self.strategy is not None:
            return self.strategy.restore(words, source, self.dictionary, self._known)
        unknown = self.translator.runs[0].lexicon.unknown
        if unknown is None or unknown not in words:
            return words
        weights = self._attention(hypothesis, source)
        return restore_by_attention(words, source, weights, self.dictionary, unknown)

    def _attention(self, hypothesis, source) -> np.ndarray:
        """The attention of the first run, [T, S], in the order of the texts."""
        run, translator = self.translator.runs[0], self.translator
        order = self._model.order
        ids = [self._known.get(word, self._known[run.others[0].unknown]) for word in source]
        read = ids[::-1] if order == "source_reversed" else ids
        sources, lengths = source_batch([read], size_of(len(read)))
        given = [translator.boundary, *hypothesis.words[:-1]]
        words = np.full((1, size_of(len(given))), translator.boundary, np.int32)
        words[0, : len(given)] = given
        weights = self._weights(run.params, run.tables, sources, lengths, words)
        found = np.asarray(weights)[0, : len(given), -len(ids) :]
        found = found[:, ::-1] if order == "source_reversed" else found
        return found[::-1] if order == "target_reversed" else found

    @functools.cached_property
    def _weights(self):
        return jax.jit(self._model.attention_weights)
