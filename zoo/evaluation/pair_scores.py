"""Exact log-probabilities of translations, given their sources."""

import functools
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding

from zoo.arrays.types import Params, Tables
from zoo.data import Corpus
from zoo.data.pair_batches import BucketedPairs, PairedText
from zoo.errors import UserError
from zoo.evaluation import progress
from zoo.evaluation.perplexity import PRECISION, WHOLE, Scores, over_rows, placed, sharing
from zoo.experiment import Experiment
from zoo.heads import distributions
from zoo.lexicon import Lexicon

# Share of padding that is accepted: it costs less than compiling another shape.
_PADDING = 0.3


def read(experiment: Experiment, lexicon: Lexicon, source: Lexicon, corpus: Corpus) -> PairedText:
    """Reads pairs as word ids, in the orders in which the model reads and writes them."""
    model: Any = experiment.model
    boundary = lexicon.boundary_id
    if boundary is None:
        raise UserError(
            "a decoder starts from the boundary word and ends with it, and this vocabulary has "
            "none: set vocabulary.boundary to counted or uncounted."
        )
    reading = experiment.reading_of_sources
    sources = reading.encode(experiment.source_of(corpus), source)
    targets = experiment.vocabulary.encode(corpus, lexicon)
    marks = experiment.vocabulary.boundary_marks
    return PairedText(sources, targets, boundary, marks, model.order)


def score_step(params, tables, prepared, source, lengths, words, targets, *, model):
    """Computes (log p of each target, log Z), [B, T] each in nats, exact, of a batch of pairs."""
    return model.log_prob_and_log_z(
        params, tables, source, lengths, words, targets, prepared=prepared
    )


@functools.cache
def _compiled(model, mesh: Mesh | None):
    """Compiles the scoring step of a model, one program for all batches of a shape."""
    step = functools.partial(score_step, model=model)
    if mesh is None:
        return jax.jit(step)
    return jax.jit(over_rows(step, mesh, whole=3), out_shardings=NamedSharding(mesh, WHOLE))


def score(
    model,
    params: Params,
    tables: Tables,
    pairs: PairedText,
    batch: int,
    mesh: Mesh | None = None,
) -> Scores:
    """Computes the log-probabilities of all translations, in the order of their text, none left
    out.
    """
    text = pairs.target
    log_prob = np.full(len(text.words), np.nan, np.float32)
    log_z = log_prob.copy()
    predicted = np.zeros(len(text.words), bool)
    with jax.default_matmul_precision(PRECISION):
        distributions.check(
            model.head, model.head_params(params), tables["head"], model.hidden_size
        )
        mesh = sharing(mesh, batch)
        prepared, step = model.prepared(params, tables), _compiled(model, mesh)
        with progress.bar(len(text.words), "tokens") as advance:
            for one in BucketedPairs(pairs, batch, _PADDING).epoch():
                arrays = placed((one.source, one.lengths, one.words, one.targets), mesh)
                scores, normalisers = step(params, tables, prepared, *arrays)
                there = one.positions >= 0
                log_prob[one.positions[there]] = np.asarray(scores)[there]
                log_z[one.positions[there]] = np.asarray(normalisers)[there]
                predicted[one.positions[there]] = True
                advance(int(there.sum()))
    if text.strings is not None:  # a class has been judged; its string is a part of it
        log_prob += text.strings.log_within.astype(np.float32)
    return Scores(log_prob, text.counted & predicted, log_z)
