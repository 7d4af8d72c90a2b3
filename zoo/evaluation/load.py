"""`zoo.load(DIR)`: a run in a notebook or a decoder.

It gives Python the functions that the commands apply to a run.
"""

import dataclasses
import functools
import os
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from zoo.data import Corpus
from zoo.decoding import BeamSearch, Sampling, open_vocabulary, steps
from zoo.decoding.batched_search import LONGEST_RATIO
from zoo.decoding.generation import generate, prompt_words
from zoo.decoding.states import States
from zoo.errors import UserError, named
from zoo.evaluation import sentence_scores, surprisal
from zoo.evaluation.perplexity import PRECISION
from zoo.evaluation.run import Run
from zoo.evaluation.translators import Translator
from zoo.models import SequenceToSequence
from zoo.sources import evaluation_texts, moses

# A sentence: its text, or its words.
Sentence = str | Sequence[str]


def load(
    path: str | os.PathLike[str], *, add_words: str | None = None, renormalise: bool = False
) -> "LoadedModel | LoadedTranslator":
    """Opens the run of a folder.

    Args:
      path: the folder.
      add_words: a file of words, one a line, that are added to the words of training.
      renormalise: probabilities over the words of the lexicon, of a head that spells.

    Returns:
      A `LoadedModel`, or a `LoadedTranslator` for an encoder-decoder.

    Raises:
      UserError: the folder does not hold a run, nothing is trained yet, or the run is not of this
        kind.
    """
    run = Run.load(os.fspath(path))
    if isinstance(run.experiment.model, SequenceToSequence):
        if add_words or renormalise:
            raise UserError(f"{path} translates: leave add_words and renormalise out.")
        return LoadedTranslator(run)
    run = run.with_lexicon(add_words, add=True)
    return LoadedModel(run.renormalised() if renormalise else run)


@dataclasses.dataclass(frozen=True, eq=False)
class LoadedModel:
    """A trained language model.

    Attributes:
      run: its recipe, lexicon and parameters.
    """

    run: Run

    @property
    def words(self) -> tuple[str, ...]:
        """The words that the model knows; the id of each is its position."""
        return self.run.lexicon.words

    @property
    def boundary(self) -> str | None:
        """The word that begins and ends sentences, `</s>`; None if the run has none."""
        return self.run.lexicon.boundary

    def score(self, sentences: Sequence[Sentence]) -> np.ndarray:
        """Computes log p(w_1 ... w_n </s>) of sentences, each from an empty state, exactly.

        Args:
          sentences: texts, words between blanks, or lists of words.

        Returns:
          float64 [sentences], nats.

        Raises:
          UserError: the run has no boundary, or refuses a word.
        """
        if isinstance(sentences, str):
            raise UserError("score takes a list of sentences: give [sentence] for a single one.")
        if not self.run.lexicon.of_characters:
            sentence_scores.check_run(self.run)
        read = [self._read(sentence) for sentence in sentences]
        return sentence_scores.score_words(self.run, read, "the sentences").log_prob

    def surprisal(self, text: str, state: str | None = None) -> list[surprisal.Row]:
        """Computes -log p of each word of a text, as `evaluate.py --surprisal` writes it.

        Args:
          text: a sentence a line.
          state: "sentences", each from an empty state, or "carried"; None for the run's own.

        Returns:
          A row for each token and boundary: its position in its line, the words as read, nats and
          bits.
        """
        run = self.run.with_state(state)
        if run.lexicon.of_characters:
            letters = [
                prompt_words(line, run.lexicon, run.experiment.vocabulary)
                for line in text.removesuffix("\n").split("\n")
            ]
            given_text = evaluation_texts.of_corpus(Corpus("the text", letters), "")
        else:
            given_text = evaluation_texts.of_text(text, "the text", run.reading)
        encoded, scores = run.score(given_text.corpus)
        rows = surprisal.rows(given_text, encoded, scores, run.lexicon)
        return [surprisal.Row(*row) for row in rows]

    def initial_states(self, batch: int = 1) -> States:
        """Returns the states before any word, the boundary among them: step with `boundary` first.

        Args:
          batch: rows, 1 or more.
        """
        return States.of_carry(self._model.initial_carry(batch))

    def step(self, words: Any, states: States) -> tuple[np.ndarray, States]:
        """Reads a word in each row and predicts the next.

        Args:
          words: a word, for all rows; or one for each, strings or ids.
          states: before the words; they stay as they are.

        Returns:
          (log p(. | the words before) [rows, V], nats; the states after these words).

        Raises:
          UserError: a word is unknown and the run refuses unknown words, there are not as many
            words as rows, or the head does not have probabilities of all words.
        """
        ids = self._ids(words, len(states))
        with jax.default_matmul_precision(PRECISION):
            log_probs, after = states.stepped(self._step, ids)
        return np.asarray(log_probs), after

    def log_probs(self, prefix: Sentence = "") -> np.ndarray:
        """Computes log p(. | prefix) of every word, from an empty state and the boundary.

        Args:
          prefix: a text, words between blanks, or a list of words.

        Returns:
          [V], nats.

        Raises:
          UserError: as `step`; or there is neither prefix nor boundary.
        """
        words = ([self.boundary] if self.boundary is not None else []) + self._read(prefix)
        if not words:
            raise UserError("this run has no boundary to start from: give a prefix.")
        states = self.initial_states()
        for word in words:
            log_probs, states = self.step(word, states)
        return log_probs[0]

    def generate(self, prompt: str = "", *, spell: bool = False, **options: Any) -> list[str]:
        """Draws texts that begin with a prompt.

        Args:
          prompt: the words that they begin with.
          spell: words of any spelling, of a head that spells.
          **options: count, length, temperature, top_k, nucleus, seed: see
            `zoo.decoding.generation.generate`.

        Returns:
          The texts, words with blanks between.
        """
        run = self.run
        vocabulary = run.experiment.vocabulary
        language = run.experiment.data.form.language
        prompt = " ".join(moses.words(prompt, language)) if language else prompt
        options = {"prompt": prompt, **options}
        if spell:
            texts = open_vocabulary.generate(
                self._model, run.params, run.lexicon, vocabulary, **options
            )
        else:
            texts = generate(
                self._model, run.params, run.tables, run.lexicon, vocabulary, **options
            )
        if run.lexicon.of_characters:
            return ["".join(words) for words in texts]
        return [moses.text(words, language) for words in texts]

    def id(self, word: str) -> int:
        """Returns the id of a word as the model reads it: of `<unk>`, or of its class, for unknown
        words.

        Args:
          word: a string.

        Raises:
          UserError: the run refuses unknown words.
        """
        lexicon, vocabulary = self.run.lexicon, self.run.experiment.vocabulary
        word = word.lower() if vocabulary.lower_case and word not in lexicon.ids else word
        opened = vocabulary.open_words(lexicon)
        word_id = lexicon.ids.get(word) if opened is None else opened.class_of(word)
        if word_id is not None:
            return word_id
        if lexicon.unknown is None or vocabulary.unknown == "refused":
            raise UserError(
                f"the word {named([word])} is not in the lexicon of {self.run.path}: leave it out, "
                "or give add_words=FILE to zoo.load."
            )
        return lexicon.ids[lexicon.unknown]

    @property
    def _model(self):
        return self.run.experiment.language_model

    @functools.cached_property
    def _step(self):
        """The step function; see `zoo.decoding.steps`."""
        head = self._model.head
        if head.spells and not head.renormalised:
            raise UserError(
                f"a {type(head).__name__} spells words and has no list of them all: "
                "zoo.load(DIR, renormalise=True) gives probabilities over the lexicon."
            )
        return steps.of_language_model(self._model, self.run.params, self.run.tables)

    def _read(self, sentence):
        """Splits a sentence into words, as the run reads them."""
        lexicon, vocabulary = self.run.lexicon, self.run.experiment.vocabulary
        if lexicon.of_characters and isinstance(sentence, str):
            return prompt_words(sentence, lexicon, vocabulary)
        reading = self.run.reading
        if isinstance(sentence, str):
            tokens = evaluation_texts.tokens_of(sentence, reading)
            return [word for token in tokens for word in token.words]
        return [word for token in sentence for word in reading.words(token)]

    def _ids(self, words, rows):
        """Returns word ids int32 [rows]."""
        several = words if not isinstance(words, str) and np.ndim(words) else [words] * rows
        ids = [self.id(word) if isinstance(word, str) else int(word) for word in several]
        if len(ids) != rows:
            raise UserError(f"{len(ids)} words for {rows} states: give one word, or one a state.")
        for number in ids:
            if not 0 <= number < len(self.words):
                raise UserError(
                    f"{number} is not the id of a word: the lexicon has {len(self.words)} words."
                )
        return np.array(ids, np.int32)


@dataclasses.dataclass(frozen=True, eq=False)
class LoadedTranslator:
    """A trained encoder-decoder.

    Attributes:
      run: its recipe, lexicons and parameters.
    """

    run: Run

    def translate(
        self,
        sentences: Sequence[str],
        beam: int | None = None,
        batch: int = 32,
        longest_ratio: float = LONGEST_RATIO,
        sampling: Sampling | None = None,
        **options: Any,
    ) -> list[str]:
        """Translates sentences by beam search, or draws a translation of each.

        Args:
          sentences: texts, words between blanks.
          beam: hypotheses that are kept open; 1 is greedy, None 12.
          batch: sentences side by side.
          longest_ratio: a translation of n words has at most longest_ratio * n + 10 tokens.
          sampling: how translations are drawn, instead of the search; the first draw is taken.
          **options: further fields of `zoo.decoding.BeamSearch`.

        Returns:
          The best or the drawn translation of each sentence, in their order; "" of an empty
          sentence.
        """
        if isinstance(sentences, str):
            raise UserError("translate takes a list of sentences: give [sentence] for one.")
        if beam is not None:
            options["beam"] = beam
        if sampling is not None and options:
            raise UserError(f"{', '.join(options)} and sampling exclude each other: give one.")
        search = sampling or BeamSearch(**options)
        sources = [self._translator.read(sentence) for sentence in sentences]
        translations = self._translator.translate(sources, search, batch, ratio=longest_ratio)
        return [" ".join(self._translator.words(best[0]) if best else []) for best in translations]

    @functools.cached_property
    def _translator(self):
        return Translator((self.run,))
