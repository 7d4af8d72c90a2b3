"""The most probable words at each position of a text, and the hidden states that they come from."""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from zoo.base.arrays.types import Context, Params, Tables
from zoo.data import Corpus
from zoo.data.batches import Batches, BucketedPairs
from zoo.data.encoded_text import EncodedText
from zoo.errors import UserError
from zoo.heads import LogLinear
from zoo.lab.evaluation import item_scores, passport, perplexity
from zoo.lab.evaluation.figures import Passport
from zoo.lab.evaluation.perplexity import PRECISION
from zoo.lab.evaluation.run import Run
from zoo.lexicon import Lexicon
from zoo.models import SequenceToSequence

# Positions of a batch, and pairs side by side: texts are of some sentences.
_LENGTH, _PAIRS = 64, 8
# Share of padding that is accepted in batches of pairs; see `perplexity`.
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
            pairs = perplexity.read(run.experiment, run.lexicon, run.source_lexicons[0], corpus)
            return pairs.target, _gathered(_pair_batches(run, pairs), len(pairs.target.words))
        text = run.experiment.vocabulary.encode(corpus, run.lexicon)
        return text, _gathered(_text_batches(run, text), len(text.words))


def _text_batches(run, text):
    """Yields (positions, hidden, context), [1, T, ...], of the batches of a text."""
    policy, boundary = run.experiment.evaluation.state, run.lexicon.boundary_id
    model = run.experiment.language_model
    step, carry = _compiled_states(model), model.initial_carry(1)
    for batch in Batches(text, 1, _LENGTH, policy, boundary):
        hidden, context, carry = step(run.params, run.tables, batch.words, carry, reset=batch.reset)
        yield batch.positions, hidden, context


def _pair_batches(run, pairs):
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
    def batch_states(params, tables, source, lengths, words):
        return model.states(params, tables, model.encode(params, tables, source, lengths), words)

    return jax.jit(batch_states)


def _gathered(batches, count):
    """Puts the states of batches in the order of the text."""
    predictions = [
        jax.tree.map(lambda x, p=batch[0]: np.asarray(x)[p >= 0], [*batch]) for batch in batches
    ]
    order = np.concatenate([positions for positions, *_ in predictions])

    def in_order(*arrays):
        ordered = np.zeros((count, *arrays[0].shape[1:]), arrays[0].dtype)
        ordered[order] = np.concatenate(arrays)
        return ordered

    hidden, context = jax.tree.map(in_order, *(states for _, *states in predictions))
    return States(hidden, context, np.isin(np.arange(count), order))


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


# ------ contributions of features to the log-probability of a word under a log-linear head
# Dymetman and Xiao, "Log-linear RNNs" (2016), equation 12: with the adaptor a = W h + c,
#
#     log p(x | h) = log b(x) + sum_f a_f phi_f(x) - log Z,
#
# so each feature f of the word adds a_f phi_f(x) nats to its score, and the background adds log
# b(x).


class Contributions(NamedTuple):
    """The parts of the log-probability of a word, nats."""

    log_background: float
    features: tuple[tuple[str, float], ...]
    log_z: float

    @property
    def log_prob(self) -> float:
        """log p(x | h), the sum of the parts."""
        return self.log_background + sum(nats for _, nats in self.features) - self.log_z


def word_contributions(
    head: LogLinear,
    params: Params,
    tables: Tables,
    lexicon: Lexicon,
    hidden: np.ndarray,
    words: Sequence[int] | np.ndarray,
    context: Context = None,
) -> list[Contributions]:
    """Splits log p of words into the parts of the background, the features and the normaliser."""
    targets: Any = jnp.asarray(words, jnp.int32)
    with jax.default_matmul_precision(PRECISION):
        _, log_z = head.log_prob_and_log_z(
            params, tables, jnp.asarray(hidden), targets, context=context
        )
        if head.background is None:
            mass = tables["log_mass"][tables["signature"][targets]]
            log_background = tables["log_within"][targets] + mass
        else:
            log_background = head.background.log_prob(tables["background"], context, targets)
    head_lexicon = lexicon.with_kinds(head.kinds)
    row_of = {name: row for row, name in enumerate(head_lexicon.feature_names)}
    weights, bias = (np.asarray(params[name], np.float64) for name in ("weights", "bias"))
    contributions = []
    states, backgrounds, normalisers = (
        np.asarray(array, np.float64) for array in (hidden, log_background, log_z)
    )
    for word, state, background, normaliser in zip(
        targets.tolist(), states, backgrounds, normalisers, strict=True
    ):
        features = head_lexicon.features_of(word)
        rows = [row_of[name] for name in features]
        nats = (weights[rows] @ state + bias[rows]) * np.array([*features.values()])
        parts = sorted(zip(features, nats.tolist(), strict=True), key=lambda part: -abs(part[1]))
        contributions.append(Contributions(float(background), tuple(parts), float(normaliser)))
    return contributions


# ---------- the words to which kept scores belong, read from a run's data; no model is run
# Scores of a result (`zoo.lab.evaluation.item_scores`) are numbers in the order of the text. The
# text is read again, and is refused unless its hash is the passport's.


class ScoredWords(NamedTuple):
    """The words of a text with the scores that were kept of them."""

    text: EncodedText  # as word ids
    positions: np.ndarray  # int64 [n], positions in the text of the counted words
    log_prob: np.ndarray  # float32 [n], nats, of these words


def read(run: Run, record: Passport, arrays: item_scores.Arrays | None) -> ScoredWords:
    """Reads a split again, and returns its words with the scores that were kept of them."""
    name = record.split
    if arrays is None:
        raise UserError(
            f"no scores of the words of {name} are kept: python -m zoo evaluate {run.path} keeps "
            "them."
        )
    if record.lexicon.words != run.lexicon.words_set_digest():
        raise UserError(f"{name} was judged over other words than the run's own.")
    data = run.experiment.data
    splits = [part for split in data.splits() for part in (split, *data.parts(split))]
    if name not in splits:
        raise UserError(f"{name} is a text given by its path, not a split of the run.")
    corpus = run.read(name)
    if passport.data_of(corpus.name, corpus.sentences).sha256 != record.data.sha256:
        raise UserError(
            f"{corpus.name} has changed since {name} was judged: evaluate the run again."
        )
    vocabulary = run.experiment.vocabulary
    tokens = vocabulary.encode(corpus, run.lexicon)
    scores = perplexity.Scores(tokens.words, tokens.counted)
    text, _ = perplexity.merge_subwords(tokens, scores, vocabulary, run.lexicon)
    positions = np.flatnonzero(text.counted)
    if run.lexicon.boundary is None:  # the first word of the text is context only
        positions = positions[positions > 0]
    if len(positions) != len(arrays["log_prob"]):
        raise UserError(
            f"{len(arrays['log_prob']):,} scores are kept of {name}, and it has "
            f"{len(positions):,} counted words: evaluate the run again."
        )
    return ScoredWords(text, positions, arrays["log_prob"])
