"""Translations by trained encoder-decoders, one or an ensemble, perhaps with a language model."""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import jax
import numpy as np

from zoo.alignment import UnknownWords, in_sentence_order, restore_by_attention
from zoo.data import Corpus
from zoo.data.batches import source_batch
from zoo.decoding import BeamSearch, Sampling, average, fuse, steps
from zoo.decoding.batched_search import LONGEST_RATIO, Hypothesis, padded_length, translate
from zoo.errors import UserError, quote
from zoo.lab.evaluation.perplexity import PRECISION
from zoo.lab.evaluation.run import Run
from zoo.lab.runs import checksums
from zoo.models import SequenceToSequence
from zoo.sources import files, moses


@dataclasses.dataclass(frozen=True, eq=False)
class Translator:
    """Runs that translate together."""

    runs: tuple[Run, ...]
    average: str = "probabilities"
    language_model: Run | None = None
    weight: float = 0.0

    def __post_init__(self):
        """Raises UserError unless all runs translate, in one order and with the same words."""
        for run in self.runs:
            if not isinstance(run.experiment.model, SequenceToSequence):
                raise UserError(
                    f"{run.path} is a run of a {type(run.experiment.model).__name__}, which does "
                    "not translate: give runs of models.SequenceToSequence."
                )
        names = [run.path for run in self.runs]
        steps.check_same_words([run.lexicon for run in self.runs], names)
        steps.check_same_words([run.source_lexicons[0] for run in self.runs], names)
        turned = {self._turned(run) for run in self.runs}
        if len(turned) > 1:
            raise UserError(
                f"{', '.join(map(str, names))} write their translations in different orders, some "
                "from the last word to the first (model.order=target_reversed): combine runs of "
                "one order."
            )
        if self.language_model is not None:
            model = self.language_model
            steps.check_weight(self.weight)
            _ = model.experiment.language_model  # raises UserError if it is another model
            if turned == {True}:
                raise UserError(
                    f"{names[0]} writes translations from the last word to the first "
                    f"(model.order=target_reversed), and {model.path} reads from the first: "
                    "leave --language-model out."
                )
            steps.check_same_words([self.runs[0].lexicon, model.lexicon], [names[0], model.path])

    @staticmethod
    def _turned(run):
        """Whether a run writes translations from the last word to the first."""
        return run.experiment.model.order == "target_reversed"

    @property
    def boundary(self) -> int:
        """The id of the word that begins and ends translations."""
        word_id = self.runs[0].lexicon.boundary_id
        assert word_id is not None, "a run of pairs is not trained without"
        return word_id

    def read(self, line: str) -> list[str]:
        """Splits a source into words, in the case in which the runs read it."""
        experiment = self.runs[0].experiment
        words = moses.words(files.bare(line), experiment.data.form.source_language)
        lower_case = experiment.source_side_vocabulary.lower_case
        return [word.lower() for word in words] if lower_case else words

    def detokenize(self, words: list[str]) -> str:
        """Joins the words of a translation, untokenised if the run was trained on such pairs."""
        return moses.text(words, self.runs[0].experiment.data.form.language)

    def pairs(self, split: str) -> Corpus:
        """Reads the pairs of a split of the first run's data, unknown words as they are written."""
        experiment = self.runs[0].experiment
        return experiment.vocabulary.read(experiment.data.as_written(), split)

    def unknown(self, sentences: Sequence[list[str]]) -> dict[str, int]:
        """Counts the source words outside the lexicon, {word: count}, most frequent first."""
        run = self.runs[0]
        return run.experiment.source_side_vocabulary.missing(sentences, run.source_lexicons[0])

    def translate(
        self,
        sentences: Sequence[list[str]],
        search: BeamSearch | Sampling,
        batch: int = 32,
        done: Callable[[int], Any] = lambda sentences: None,
        ratio: float = LONGEST_RATIO,
        first_number: int = 0,
    ) -> list[list[Hypothesis]]:
        """Returns the best or the drawn hypotheses of each source, none for an empty source."""
        numbers = [number for number, words in enumerate(sentences) if words]
        sources = self._encoded([sentences[number] for number in numbers])
        hypotheses_of: list[list[Hypothesis]] = [[] for _ in sentences]
        try:
            with jax.default_matmul_precision(PRECISION):
                translations = translate(
                    self._start(),
                    sources,
                    search,
                    boundary=self.boundary,
                    batch=batch,
                    ratio=ratio,
                    done=done,
                    numbers=[first_number + number for number in numbers],
                )
        except jax.errors.JaxRuntimeError as error:
            if "RESOURCE_EXHAUSTED" not in str(error):
                raise
            if isinstance(search, Sampling):
                work, needs, fewer = f"{search.nbest} samples", "need", "fewer samples"
            else:
                work, needs, fewer = f"a beam of {search.beam}", "needs", "a narrower beam"
            raise UserError(
                f"{work} over {batch} sentences side by side {needs} more memory than there is: "
                f"give {fewer}, or a smaller batch."
            ) from error
        for number, hypotheses in zip(numbers, translations, strict=True):
            hypotheses_of[number] = hypotheses
        return hypotheses_of

    def words(self, hypothesis: Hypothesis) -> list[str]:
        """Returns the words of a hypothesis, from the first to the last."""
        return [word for word, _ in self.words_and_tokens(hypothesis)]

    def words_and_tokens(self, hypothesis: Hypothesis) -> list[tuple[str, list[str]]]:
        """Returns the words of a hypothesis, each with its tokens: itself, or its subwords."""
        run = self.runs[0]
        tokens = [run.lexicon.words[word] for word in hypothesis.words]
        tokens = tokens[::-1] if self._turned(run) else tokens
        return run.experiment.vocabulary.words_of(tokens, run.lexicon)

    def _encoded(self, sentences):
        if not sentences:
            return []
        run = self.runs[0]
        vocabulary = run.experiment.source_side_vocabulary
        text = vocabulary.encode(Corpus("the text", sentences), run.source_lexicons[0])
        return np.split(text.words, text.starts[1:])

    def _start(self):
        """Returns the start function of a batched search, for sources in text order."""
        members = [_member(run) for run in self.runs]
        run = self.language_model
        if run is not None:
            language_model = run.experiment.language_model
            language_step = steps.from_language_model(language_model, run.params, run.tables)

        def start(sources, lengths):
            started = [member(sources, lengths) for member in members]
            step, carry = started[0]
            if len(started) > 1:
                step = average([step for step, _ in started], quantity=self.average)
                carry = tuple(carry for _, carry in started)
            if run is not None:
                language_carry = language_model.initial_carry(len(sources))
                step, carry = fuse(step, language_step, self.weight), (carry, language_carry)
            return step, carry

        return start


def _member(run):
    """Returns start(sources, lengths) of a run, which reverses sources if the run reads them so."""
    model = run.experiment.model
    prepared = model.prepared(run.params, run.tables)

    def start(sources, lengths):
        if model.order == "source_reversed":
            sources = sources.copy()
            for row, length in zip(sources, lengths, strict=True):
                row[len(row) - length :] = row[len(row) - length :][::-1].copy()
        return steps.from_sequence_to_sequence(
            model, run.params, run.tables, sources, lengths, prepared
        )

    return start


# ------------------ source words that each word of a translation attends to


def check(translator: Translator, option: str):
    """Raises UserError, naming an option of the command, unless a run has attention."""
    if not attentive(translator):
        paths = [str(run.path) for run in translator.runs]
        raise UserError(
            f"{option} needs attention, which {quote(paths)} does not have: train with "
            "--set model.attention=Luong, for example, or leave it out."
        )


def attention_weights(
    translator: Translator, hypothesis: Hypothesis, source: Sequence[str]
) -> np.ndarray:
    """Computes the attention of each word of a translation to each word of its source, [T, S]: the
    mean of the runs' weights, in the order of the sentences."""
    check(translator, "this")
    size = padded_length(len(hypothesis.words))
    words = np.full((1, size), translator.boundary, np.int32)
    words[0, 1 : len(hypothesis.words)] = hypothesis.words[:-1]
    matrices = []
    for run in attentive(translator):
        model, vocabulary = _model(run), run.experiment.source_side_vocabulary
        lexicon = run.source_lexicons[0]
        ids = vocabulary.encode(Corpus("the source", [[*source]]), lexicon).words.tolist()
        tokens = [lexicon.words[word] for word in ids]
        batch = source_batch(
            [ids[::-1] if model.order == "source_reversed" else ids], padded_length(len(ids))
        )
        matrix = _compiled_attention(model)(run.params, run.tables, *batch, words)[0]
        matrix = in_sentence_order(np.asarray(matrix), len(ids), len(hypothesis.words), model.order)
        matrices.append(matrix @ _tokens(vocabulary.words_of(tokens, lexicon)).T)
    # A word of subwords has their sum as a source, above, and their mean in a translation.
    rows = _tokens(translator.words_and_tokens(hypothesis))
    return rows @ np.mean(matrices, axis=0) / rows.sum(1, keepdims=True)


def _tokens(words):
    """Returns which tokens spell each word, 0 or 1, [words, tokens]."""
    return np.repeat(np.eye(len(words)), np.array([len(parts) for _, parts in words], int), axis=1)


def attentive(translator: Translator) -> list[Run]:
    """Returns the runs that have attention."""
    return [run for run in translator.runs if _model(run).attention is not None]


def _model(run: Run) -> SequenceToSequence:
    return cast(SequenceToSequence, run.experiment.model)


@functools.cache
def _compiled_attention(model):
    """Compiles the attention, one program for all pairs of a shape and all runs of a model."""
    return jax.jit(model.attention_weights)


# --------- replacement of unknown words in translations; see `zoo.alignment.unknown_words`

# The dictionary that `zoo text` writes into the folder of a run.
DICTIONARY = "dictionary.tsv"


class Translation(NamedTuple):
    """A translation of a sentence, its unknown words replaced."""

    hypothesis: Hypothesis
    words: list[str]
    source: list[str]  # as it is written
    read: list[str]  # as the runs read it, with marks of unknown words


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
        if self.by is None and not attentive(self.translator):
            raise UserError(
                f"{run.path} does not tell which source word an unknown word translates: train "
                "with data.unknowns, or with attention, or leave --dictionary out."
            )
        check(self.translator, "--unknowns attention")

    @property
    def strategy(self) -> UnknownWords | None:
        """The way in which the first run was trained to mark unknown words; None if it was not."""
        return self.translator.runs[0].experiment.data.unknowns

    @property
    def way(self) -> str:
        """The way in which unknown words are replaced; see `by`."""
        return self.by or ("attention" if self.strategy is None else "marks")

    @property
    def _source_ids(self):
        return self.translator.runs[0].source_lexicons[0].ids

    def annotate(self, sentences: Sequence[list[str]]) -> list[list[str]]:
        """Returns the sources as the run was trained to read them."""
        if self.strategy is None:
            return [*sentences]
        return [self.strategy.annotate_source(words, self._source_ids) for words in sentences]

    def words(self, hypothesis: Hypothesis, source: Sequence[str]) -> list[str]:
        """Returns the words of a hypothesis with its unknown words replaced."""
        words = self.translator.words(hypothesis)
        if self.way == "keep":
            return words
        if self.way == "marks" and self.strategy is not None:
            return self.strategy.restore(words, source, self.dictionary, self._source_ids)
        unknown = self.translator.runs[0].lexicon.unknown
        if unknown is None or unknown not in words:
            return words
        (read,) = self.annotate([[*source]])
        weights = attention_weights(self.translator, hypothesis, read)
        return restore_by_attention(words, source, weights, self.dictionary, unknown)

    def translate(
        self, sources: Sequence[list[str]], *arguments, **options
    ) -> list[list[Translation]]:
        """Translates sources; see `Translator.translate`."""
        read = self.annotate(sources)
        translations = self.translator.translate(read, *arguments, **options)
        return [
            [Translation(output, self.words(output, source), source, marked) for output in best]
            for source, marked, best in zip(sources, read, translations, strict=True)
        ]

    def describe(self) -> dict[str, Any] | None:
        """Describes how unknown words were replaced, for a passport; None if they were kept."""
        if self.way == "keep":
            return None
        dictionary = checksums.json_digest(dict(self.dictionary)) if self.dictionary else None
        return {"by": self.way, "dictionary_sha256": dictionary}
