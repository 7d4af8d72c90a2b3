"""Source words that each word of a translation attends to, or depends on."""

import functools
from collections.abc import Sequence
from typing import cast

import jax
import numpy as np

from zoo.alignment import in_sentence_order, most_attended
from zoo.data.pair_batches import source_batch
from zoo.decoding.batched_search import Hypothesis, size_of
from zoo.errors import UserError, named
from zoo.evaluation.run import Run
from zoo.evaluation.translators import Translator
from zoo.models import SequenceToSequence


def check(translator: Translator, option: str):
    """Raises UserError, naming an option of the command, unless a run has attention."""
    if not attentive(translator):
        paths = [str(run.path) for run in translator.runs]
        raise UserError(
            f"{option} needs attention, which {named(paths)} does not have: train with "
            "--set model.attention=Luong, for example, or leave it out."
        )


def weights(translator: Translator, hypothesis: Hypothesis, source: Sequence[str]) -> np.ndarray:
    """Computes the attention of each word of a translation to each word of its source, [T, S].

    Rows and columns are in the order of the sentences. An ensemble gives the mean over the runs
    that have attention.
    """
    check(translator, "this")

    def of_run(run, batch, words, targets):
        return _compiled(_model(run))(run.params, run.tables, *batch, words)

    return _mean(translator, attentive(translator), of_run, hypothesis, source)


def gradients(translator: Translator, hypothesis: Hypothesis, source: Sequence[str]) -> np.ndarray:
    """Computes how much each word of a translation depends on each word of its source, [T, S].

    This is the norm of the gradient of log p(word of the translation) by the source word's vector;
    see `SequenceToSequence.gradients`. No run needs attention. Rows and columns are in the order of
    the sentences. An ensemble gives the mean over its runs.
    """

    def of_run(run, batch, words, targets):
        return _compiled_gradients(_model(run))(run.params, run.tables, *batch, words, targets)

    return _mean(translator, translator.runs, of_run, hypothesis, source)


def _mean(translator, runs, of_run, hypothesis, source):
    """Averages the matrices of the runs' models, in the order of the sentences."""
    size = size_of(len(hypothesis.words))
    words, targets = (np.full((1, size), translator.boundary, np.int32) for _ in range(2))
    words[0, 1 : len(hypothesis.words)] = hypothesis.words[:-1]
    targets[0, : len(hypothesis.words)] = hypothesis.words
    of_runs = []
    for run in runs:
        model, ids, unknown = _model(run), run.others[0].ids, run.others[0].unknown or ""
        read = [ids[word if word in ids else unknown] for word in source]
        read = read[::-1] if model.order == "source_reversed" else read
        batch = source_batch([read], size_of(len(read)))
        matrix = np.asarray(of_run(run, batch, words, targets)[0])
        of_runs.append(in_sentence_order(matrix, len(source), len(hypothesis.words), model.order))
    return np.mean(of_runs, axis=0)


def links(
    translator: Translator, hypothesis: Hypothesis, source: Sequence[str]
) -> list[tuple[int, int]]:
    """Returns (source position, target position) of each word and the word it attends to most.

    See `weights`.
    """
    return most_attended(weights(translator, hypothesis, source))


def attentive(translator: Translator) -> list[Run]:
    """Returns the runs that have attention."""
    return [run for run in translator.runs if _model(run).attention is not None]


def _model(run: Run) -> SequenceToSequence:
    return cast(SequenceToSequence, run.experiment.model)


@functools.cache
def _compiled(model):
    """Compiles a model's attention weights, one program for all pairs of a shape."""
    return jax.jit(model.attention_weights)


@functools.cache
def _compiled_gradients(model):
    """Compiles a model's gradients, one program for all pairs of a shape."""
    return jax.jit(model.gradients)
