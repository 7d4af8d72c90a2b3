"""The most probable words at each position of a text, and the hidden states that they come from."""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import numpy as np

from zoo.data import Corpus
from zoo.data.batches import Batches
from zoo.data.encoded_text import EncodedText
from zoo.data.pair_batches import BucketedPairs
from zoo.evaluation import pair_scores
from zoo.evaluation.perplexity import PRECISION
from zoo.evaluation.run import Run
from zoo.models import SequenceToSequence

# Positions of a batch, and pairs side by side: texts are of some sentences.
_LENGTH, _PAIRS = 64, 8
# Share of padding that is accepted in batches of pairs; see `pair_scores`.
_PADDING = 0.3


class States(NamedTuple):
    """The head's inputs at the positions of a text of n words."""

    hidden: np.ndarray  # h, float32 [n, D], after the words before each position
    context: Any  # the context of the head's background or expert, leaves [n, ...]; or None
    predicted: np.ndarray  # bool [n], False where no word was predicted, and the other arrays are 0


class BestWords(NamedTuple):
    """Log-probabilities at the positions of a text of n words, nats."""

    log_prob: np.ndarray  # float32 [n], of the word of the text; NaN where no word was predicted
    # int32 [n, k], the k most probable words, or [n, 0] for a head without a list of words
    words: np.ndarray
    log_probs: np.ndarray  # float32 [n, k], of these words, falling


def states(run: Run, corpus: Corpus) -> tuple[EncodedText, States]:
    """Runs a model over a text, in one batch row under the run's state policy."""
    with jax.default_matmul_precision(PRECISION):
        if isinstance(run.experiment.model, SequenceToSequence):
            pairs = pair_scores.read(run.experiment, run.lexicon, run.others[0], corpus)
            return pairs.target, _gathered(_of_pairs(run, pairs), len(pairs.target.words))
        text = run.experiment.vocabulary.encode(corpus, run.lexicon)
        return text, _gathered(_of_text(run, text), len(text.words))


def _of_text(run, text):
    """Yields (positions, hidden, context), [1, T, ...], of the batches of a text."""
    policy, boundary = run.experiment.evaluation.state, run.lexicon.boundary_id
    batches = Batches(text, 1, _LENGTH, policy, boundary)
    model = run.experiment.language_model
    step, carry = _compiled_states(model), model.initial_carry(1)
    for index in range(len(batches)):
        batch = batches[index]
        hidden, context, carry = step(run.params, run.tables, batch.words, carry, reset=batch.reset)
        yield batch.positions, hidden, context


def _of_pairs(run, pairs):
    """Yields (positions, hidden, context), [B, T, ...], of the batches of pairs."""
    step = _compiled_pair_states(run.experiment.model)
    for batch in BucketedPairs(pairs, _PAIRS, _PADDING).epoch():
        arrays = batch.source, batch.lengths, batch.words
        yield batch.positions, *step(run.params, run.tables, *arrays)


@functools.cache
def _compiled_states(model):
    return jax.jit(model.states)


@functools.cache
def _compiled_pair_states(model):
    def of_batch(params, tables, source, lengths, words):
        encoded = model.encode(params, tables, source, lengths)
        return model.states(params, tables, encoded, words)

    return jax.jit(of_batch)


def _gathered(batches, count):
    """Puts the states of batches in the order of the text."""
    every = [
        (
            positions[positions >= 0],
            jax.tree.map(lambda x, p=positions: np.asarray(x)[p >= 0], rest),
        )
        for positions, *rest in batches
    ]
    predicted = np.zeros(count, bool)

    def in_order(*parts):
        whole = np.zeros((count, *parts[0].shape[1:]), parts[0].dtype)
        for (positions, _), part in zip(every, parts, strict=True):
            whole[positions] = part
        return whole

    for positions, _ in every:
        predicted[positions] = True
    hidden, context = jax.tree.map(in_order, *(rest for _, rest in every))
    return States(hidden, context, predicted)


def best_words(run: Run, text: EncodedText, states: States, k: int = 5) -> BestWords:
    """Finds the k most probable words at each position, and log p of the words of the text."""
    model: Any = run.experiment.model
    head, tables = model.head, run.tables["head"]
    with jax.default_matmul_precision(PRECISION):
        params = model.head_params(run.params)
        arguments = {"context": states.context, "prepared": model.prepared(run.params, run.tables)}
        log_prob = head.log_prob(params, tables, states.hidden, text.words, **arguments)
        log_prob = np.where(states.predicted, np.asarray(log_prob), np.nan).astype(np.float32)
        if text.strings is not None:  # a class has been judged; its string is a part of it
            log_prob += text.strings.log_within.astype(np.float32)
        if head.spells and not head.renormalised:
            none = np.zeros((len(text.words), 0))
            return BestWords(log_prob, none.astype(np.int32), none.astype(np.float32))
        k = min(k, len(run.lexicon))
        log_probs, words = head.top_k(params, tables, states.hidden, k, **arguments)
    return BestWords(log_prob, np.asarray(words), np.asarray(log_probs))


def first_sentences(corpus: Corpus, sentences: int) -> Corpus:
    """Returns the first sentences of a corpus, with the sources of translations."""
    source = corpus.source_text
    cut: dict[str, Any] = {
        "sentences": corpus.sentences[:sentences],
        "features": corpus.features and corpus.features[:sentences],
        "prefixes": corpus.prefixes and corpus.prefixes[:sentences],
        "mixture": None,
        "source_text": source and first_sentences(source, sentences),
    }
    return dataclasses.replace(corpus, **cut)
