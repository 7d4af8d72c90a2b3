"""`zoo.load(DIR)`, `zoo.load_translator(DIR)`: a run in a notebook or a decoder.

They give Python the functions that the commands apply to a run. Judgements return lists of rows,
named tuples of which pandas.DataFrame makes a table.
"""

import dataclasses
import functools
import os
import pathlib
from collections.abc import Iterable, Sequence
from typing import Any

import jax
import numpy as np

from zoo.data import Corpus
from zoo.decoding import BeamSearch, Sampling, open_vocabulary, steps
from zoo.decoding.batched_search import LONGEST_RATIO
from zoo.decoding.generation import generate, prompt_words
from zoo.decoding.steps import States
from zoo.errors import UserError, quote
from zoo.lab.evaluation import agreement, minimal_pairs, passport, scored_texts, sentence_scores
from zoo.lab.evaluation import surprisal as word_surprisal
from zoo.lab.evaluation.changes.new_lexicon import NewLexicon
from zoo.lab.evaluation.changes.renormalised import Renormalised
from zoo.lab.evaluation.passport import Judgement
from zoo.lab.evaluation.perplexity import PRECISION
from zoo.lab.evaluation.run import Run
from zoo.lab.evaluation.translators import Restoring, Translator
from zoo.lab.runs import hub
from zoo.models import SequenceToSequence
from zoo.sources import files, moses, text_formats
from zoo.sources import text as texts

# A sentence: its text, or its words.
Sentence = str | Sequence[str]


# A word for all rows, or one for each row: strings or ids.
Words = str | int | Sequence[str] | Sequence[int] | np.ndarray


def load(
    path: str | os.PathLike[str],
    *,
    add_words: str | None = None,
    renormalise: bool = False,
    tokenize: str | None = None,
) -> "LoadedModel":
    """Opens the run of a language model.

    Args:
      path: the folder of the run, or an export; or "hub:OWNER/NAME", an export on the Hugging Face
        hub, which is downloaded into the hub's cache.
      add_words: a file of words, one a line, that are added to the words of training.
      renormalise: probabilities over the words of the lexicon, of a head that spells.
      tokenize: the language, such as "en", by whose rules the Moses tokenizer splits all texts that
        are given as strings or files; for a run on tokenised text.

    Raises:
      UserError: the folder does not hold a run of a language model, nothing is trained yet, or the
        head does not spell.
    """
    run = LoadedModel.load(hub.local_folder(path))
    if isinstance(run.experiment.model, SequenceToSequence):
        raise UserError(f"{path} translates: open it with zoo.load_translator.")
    if tokenize is not None:
        run = run.with_tokenizer(tokenize)
    if add_words is not None:
        run = NewLexicon(add_words, adds=True).apply(run)
    return Renormalised().apply(run) if renormalise else run


def load_translator(path: str | os.PathLike[str]) -> "LoadedTranslator":
    """Opens the run of an encoder-decoder.

    Args:
      path: as of `load`.

    Raises:
      UserError: the folder does not hold a run of an encoder-decoder, or nothing is trained yet.
    """
    run = LoadedTranslator.load(hub.local_folder(path))
    if not isinstance(run.experiment.model, SequenceToSequence):
        raise UserError(f"{path} does not translate: open it with zoo.load.")
    return run


class Loaded(Run):
    """A trained model, with the methods of all models; of a command, or of a notebook."""

    def evaluate(
        self, split: str | None = None, *, data: str | None = None, state: str | None = None
    ) -> list[scored_texts.Row]:
        """Computes the exact perplexity of texts, and keeps each as evaluate.py does."""
        splits = [split] if split is not None else []
        if split is None and data is None:
            splits = scored_texts.unseen_splits(self)
        scored = scored_texts.score(self, splits, data, state)
        return self._keep(text.judgement() for text in scored)

    def _keep(self, judgements: Iterable[Judgement]) -> list:
        """Keeps judgements among the run's results; returns the rows of all."""
        passport.check(self.path)
        rows: list = []
        for judgement in judgements:
            judgement.keep()
            rows += judgement.rows
        return rows


class LoadedModel(Loaded):
    """A trained language model."""

    @property
    def words(self) -> tuple[str, ...]:
        """The words that the model knows; the id of each is its position."""
        return self.lexicon.words

    @property
    def boundary(self) -> str:
        """The word that begins and ends sentences, `</s>`; UserError if the run has none."""
        boundary = self.lexicon.boundary
        if boundary is None:
            raise UserError(f"{self.path} has no boundary to start from: give a prefix.")
        return boundary

    def score(
        self, sentences: Sequence[Sentence], prefixes: Sequence[Sentence] | None = None
    ) -> list[sentence_scores.Row]:
        """Computes log p(w_1 ... w_n </s>) of sentences, each from an empty state, exactly, nats;
        with prefixes, log p(w_1 ... w_n | prefix) of each, without the boundary. UserError unless
        there are as many prefixes."""
        if isinstance(sentences, str):
            raise UserError("score takes a list of sentences: give [sentence] for a single one.")
        if not self.lexicon.is_character_level:
            sentence_scores.check_run(self)
            sentence_scores.check_lines(sentences if prefixes is None else [])
        words = [
            sentence_scores.words_by(self, line) if isinstance(line, str) else self.words_in(line)
            for line in sentences
        ]
        texts = [line if isinstance(line, str) else " ".join(line) for line in sentences]
        if prefixes is None:
            return sentence_scores.score(self, words, "the sentences").rows(texts)
        if isinstance(prefixes, str) or len(prefixes) != len(sentences):
            raise UserError("prefixes are one for each sentence: give a list of as many.")
        prefix_words, words = (list(map(self.words_in, side)) for side in (prefixes, sentences))
        return sentence_scores.score(self, words, "the sentences", prefix_words).rows(texts)

    def surprisal(self, text: str, state: str | None = None) -> list[word_surprisal.Row]:
        """Computes -log p of each word of a text, as `zoo score --words` writes it."""
        text = files.with_line_feeds(text)
        if self.lexicon.is_character_level:
            lines = texts.lines_of("\n".join(map(files.bare, text.split("\n"))))
            if sentence_scores.LINE_BREAK not in self.lexicon.ids:
                lines = [line.removesuffix(sentence_scores.LINE_BREAK) for line in lines]
            letters = [[*piece] for piece in texts.pieces(lines)]
            tokenized = self.tokenized(Corpus("the text", letters))
        else:
            name, lines = "the text", files.lines(text)
            tokenized = text_formats.parse_tokens(lines, pathlib.Path(name), name, self.reading)
            sentences = [sentence for sentence in tokenized.sentences if sentence.tokens]
            tokenized = dataclasses.replace(tokenized, sentences=sentences)
        scored = scored_texts.score_text(self, tokenized, "the text", state, lines=True)
        rows = word_surprisal.rows(tokenized, scored.text, scored.scores, scored.run.lexicon)
        return [word_surprisal.Row.from_columns(row, tokenized) for row in rows]

    def agreement(self, split: str = "test", *, data: str | None = None) -> list[agreement.Row]:
        """Compares sentences of a treebank with copies that have one wrong form, and keeps the
        figures as `zoo evaluate --agreement` does."""
        return self._keep(agreement.judge(self, [split] if data is None else [], data))

    def minimal_pairs(self, file: str) -> list[minimal_pairs.Row]:
        """Compares the sentences of minimal pairs, and keeps the figures as evaluate.py does."""
        return self._keep(minimal_pairs.judge(self, [file]))

    def initial_states(self, batch: int = 1) -> States:
        """Returns the states before any word: step with `boundary` first."""
        return States.from_carry(self._model.initial_carry(batch))

    def step(self, words: Words, states: States) -> tuple[np.ndarray, States]:
        """Reads a word in each row and predicts the next."""
        ids = self._ids(words, len(states))
        with jax.default_matmul_precision(PRECISION):
            log_probs, after = states.advance(self._step, ids)
        return np.asarray(log_probs), after

    def log_probs(self, prefix: Sentence = "") -> np.ndarray:
        """Computes log p(. | prefix) of every word, from an empty state and the boundary."""
        words = self.words_in(prefix)
        if not words or self.lexicon.boundary is not None:
            words = [self.boundary, *words]
        states = self.initial_states()
        for word in words:
            log_probs, states = self.step(word, states)
        return log_probs[0]

    def generate(self, prompt: str = "", *, spell: bool = False, **options: Any) -> list[str]:
        """Draws texts that begin with a prompt."""
        join = "".join if self.lexicon.is_character_level else self.detokenize
        return [join(words) for words in self.draw(prompt, spell=spell, **options)]

    def draw(self, prompt: str = "", *, spell: bool = False, **options: Any) -> list[list[str]]:
        """Draws texts that begin with a prompt, as words; see `generate`."""
        if not self.lexicon.is_character_level:
            prompt = " ".join(self.words_in(prompt))
        options |= {"prompt": prompt}
        words = self.lexicon, self.experiment.vocabulary
        if spell:
            return open_vocabulary.generate(self._model, self.params, *words, **options)
        return generate(self._model, self.params, self.tables, *words, **options)

    def detokenize(self, words: list[str]) -> str:
        """Joins the words of a text, untokenised if the run was trained on such text."""
        return moses.text(words, self.experiment.data.form.language)

    def id(self, word: str) -> int:
        """Returns the id of a word as the model reads it: of `<unk>` or its class, if unknown."""
        lexicon, vocabulary = self.lexicon, self.experiment.vocabulary
        word = word.lower() if vocabulary.lower_case and word not in lexicon.ids else word
        opened = vocabulary.open_words(lexicon)
        word_id = lexicon.ids.get(word) if opened is None else opened.class_of(word)
        if word_id is not None:
            return word_id
        if lexicon.unknown is None or vocabulary.unknown == "refused":
            raise UserError(
                f"the word {quote([word])} is not in the lexicon of {self.path}: leave it out, "
                "or give add_words=FILE to zoo.load."
            )
        return lexicon.ids[lexicon.unknown]

    @property
    def _model(self):
        return self.experiment.language_model

    @functools.cached_property
    def _step(self):
        """The step function; see `zoo.decoding.steps`."""
        head = self._model.head
        if head.spells and not head.renormalised:
            raise UserError(
                f"a {type(head).__name__} spells words and has no list of them all: "
                "zoo.load(DIR, renormalise=True) gives probabilities over the lexicon."
            )
        return steps.from_language_model(self._model, self.params, self.tables)

    def words_in(self, sentence: Sentence) -> list[str]:
        """Splits a sentence into words, as the run reads them."""
        lexicon, vocabulary = self.lexicon, self.experiment.vocabulary
        if lexicon.is_character_level and isinstance(sentence, str):
            return prompt_words(sentence, lexicon, vocabulary)
        if isinstance(sentence, str):
            return self.reading.split(sentence, marks=True)
        return [word for token in sentence for word in self.reading.words(token)]

    def _ids(self, words, rows):
        """Returns word ids int32 [rows]."""
        row_words = words if not isinstance(words, str) and np.ndim(words) else [words] * rows
        ids = [self.id(word) if isinstance(word, str) else int(word) for word in row_words]
        if len(ids) != rows:
            raise UserError(f"{len(ids)} words for {rows} states: give one word, or one a state.")
        for number in ids:
            if not 0 <= number < len(self.words):
                raise UserError(
                    f"{number} is not the id of a word: the lexicon has {len(self.words)} words."
                )
        return np.array(ids, np.int32)


class LoadedTranslator(Loaded):
    """A trained encoder-decoder."""

    def translate(
        self,
        sentences: Sequence[str],
        beam: int | None = None,
        batch: int = 32,
        longest_ratio: float = LONGEST_RATIO,
        sampling: Sampling | None = None,
        **options: Any,
    ) -> list[str]:
        """Translates sentences by beam search, or draws a translation of each."""
        if isinstance(sentences, str):
            raise UserError("translate takes a list of sentences: give [sentence] for one.")
        if beam is not None:
            options["beam"] = beam
        if sampling is not None and options:
            raise UserError(f"{', '.join(options)} and sampling exclude each other: give one.")
        search = sampling or BeamSearch(**options)
        marked = self.experiment.data.unknowns is not None
        restoring = Restoring(self._translator, {}, "marks" if marked else "keep")
        sources = [self._translator.read(sentence) for sentence in sentences]
        translations = restoring.translate(sources, search, batch, ratio=longest_ratio)
        best = (hypotheses[0].words if hypotheses else [] for hypotheses in translations)
        return [*map(self._translator.detokenize, best)]

    @functools.cached_property
    def _translator(self):
        return Translator((self,))
