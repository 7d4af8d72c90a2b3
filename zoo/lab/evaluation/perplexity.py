"""Exact log-probabilities of a text, and the figures made from them."""

import collections
import contextlib
import contextvars
import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from zoo.base import lazy
from zoo.base.arrays.types import Params, Tables
from zoo.data import Corpus
from zoo.data.batches import Batches, BucketedPairs, PairedText
from zoo.data.encoded_text import EncodedText, Strings
from zoo.data.open_words import MARK
from zoo.data.vocabulary import Vocabulary
from zoo.errors import UserError
from zoo.experiment import Experiment
from zoo.heads import distributions
from zoo.lexicon import Lexicon

# Words of a text by how often they were seen in training: 0, 1-9, 10-99 ...
BANDS = (0, 1, 10, 100, 1000, 10000)
BAND_NAMES = ("unseen", *(f"{low}-{10 * low - 1}" for low in BANDS[1:-1]), f"{BANDS[-1]}+")
# The axis of a mesh along which batch rows are shared out, and how arrays lie on it.
DATA = "data"
REPLICATED, BY_ROWS = PartitionSpec(), PartitionSpec(DATA)
# The band of all words that are read as <unk>: they are one class to the model, whatever its count.
UNKNOWN = "unknown"


@dataclasses.dataclass(frozen=True)
class Band:
    """The figures of the words that occurred about as often in training."""

    band: str
    tokens: int
    log_perplexity: float  # nats per token
    perplexity: float

    def __post_init__(self):
        names = (UNKNOWN, *BAND_NAMES)
        if self.band not in names:
            raise ValueError(f"band is {self.band!r}, not {' or '.join(names)}")


@dataclasses.dataclass(frozen=True)
class LogZ:
    """Mean and standard deviation of log Z, nats; near 0, scores serve as log p."""

    mean: float
    standard_deviation: float


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Scores:
    """Log-probabilities of the words of a text."""

    # float32 [n], nats, of each word of the text; NaN where none was predicted
    log_prob: np.ndarray
    counted: np.ndarray  # bool [n], whether figures count it
    # float32 [n], nats, the log normaliser of the head's scores; None if not known
    log_z: np.ndarray | None = None

    def __repr__(self):
        return f"Scores({self.tokens:,} tokens, perplexity {self.perplexity:,.2f})"

    @property
    def tokens(self) -> int:
        """Number of tokens that the figures count."""
        return int(self.counted.sum())

    @property
    def log_perplexity(self) -> float:
        """-sum log p / tokens over the counted tokens, nats per token; NaN without any."""
        if not self.tokens:
            return math.nan
        return -float(self.log_prob[self.counted].sum(dtype=np.float64)) / self.tokens

    @property
    def perplexity(self) -> float:
        """exp of the log-perplexity; inf where that is too large for a float."""
        return perplexity_of(self.log_perplexity)

    def log_z_figures(self) -> LogZ | None:
        """Computes the figures of log Z; None if it is not known."""
        if self.log_z is None:
            return None
        log_z = self.log_z[self.counted].astype(np.float64)
        return LogZ(float(log_z.mean()), float(log_z.std()))

    def bands(self, occurrences: np.ndarray, unknown: np.ndarray) -> tuple[Band, ...]:
        """Returns figures by how often words occurred in training, `UNKNOWN` and "unseen" first."""
        masks = {UNKNOWN: unknown}
        for name, low, high in zip(BAND_NAMES, BANDS, (*BANDS[1:], math.inf), strict=True):
            masks[name] = ~unknown & (occurrences >= low) & (occurrences < high)
        rows = []
        for name, mask in masks.items():
            part = dataclasses.replace(self, counted=self.counted & mask)
            if part.tokens:
                rows.append(Band(name, part.tokens, part.log_perplexity, part.perplexity))
        return tuple(rows)


def merge_subwords(
    text: EncodedText, scores: Scores, vocabulary: Vocabulary, lexicon: Lexicon
) -> tuple[EncodedText, Scores]:
    """Returns a text with one token for each word, its first subword, and log p of each word: the
    sum over its subwords, a lower bound, since other subwords may spell the same word."""
    if vocabulary.subwords is None:
        return text, scores
    spelled = vocabulary.words_of((lexicon.words[token] for token in text.words), lexicon)
    words, pieces = zip(*spelled, strict=True)
    at = np.cumsum([0, *map(len, pieces[:-1])])
    marks = lexicon.unknown, lexicon.boundary  # they have counts of their own
    frequencies: collections.Counter = collections.Counter()
    for word, count in lexicon.left_out.items():
        frequencies[word.replace(MARK, "_")] += count  # as its pieces spell it
    counts = np.array([-1 if word in marks else frequencies[word] for word in words])
    log_prob = np.add.reduceat(scores.log_prob.astype(np.float64), at).astype(np.float32)
    arrays = text.words[at], text.known[at], text.counted[at], np.searchsorted(at, text.starts)
    merged = EncodedText(*arrays, text.trained[at], Strings(np.zeros(len(at)), counts), pieces)
    return merged, Scores(log_prob, scores.counted[at])


@dataclasses.dataclass(frozen=True)
class Impossible:
    """Counted tokens of probability 0; one of them makes every mean over it infinite."""

    tokens: int
    first: str
    others: float  # the log-perplexity of the other counted tokens, nats per token

    @property
    def sentence(self) -> str:
        """The impossible tokens as one sentence."""
        return (
            f"{self.tokens:,} of the counted tokens have probability 0, the first of them "
            f"{self.first}; log-perplexity of the others {self.others:.4f}"
        )


def impossible_words(scores: Scores, text: EncodedText, lexicon: Lexicon) -> Impossible | None:
    """Returns the counted tokens to which the model gives probability 0; None if there are none."""
    impossible = scores.counted & np.isneginf(scores.log_prob)
    if not impossible.any():
        return None
    position = int(np.argmax(impossible))
    sentence, number = text.position(position)
    possible = dataclasses.replace(scores, counted=scores.counted & ~impossible)
    word = text.read_as(lexicon, position, position + 1)
    first = f"{word!r}, word {number} of sentence {sentence}"
    return Impossible(int(impossible.sum()), first, possible.log_perplexity)


def perplexity_of(log_perplexity: float) -> float:
    """Computes exp(log_perplexity), inf instead of an overflow; NaN of NaN."""
    return math.inf if log_perplexity >= 700 else math.exp(log_perplexity)


def bits(nats: float) -> float:
    """Converts nats to bits."""
    return nats / math.log(2)


# Accelerators multiply float32 in fewer bits by default; figures must be the same on all.
PRECISION = "highest"


@functools.cache
def compiled_score_step(model, mesh: Mesh | None = None, pairs: bool = False):
    """Compiles the scoring step of a model; one program serves all texts of the same batch rows.

    Of texts (params, tables, prepared, words, targets, reset, carry) -> ((log p of each target,
    log Z), [B, T] each in nats, exact; carry), of pairs (..., source, lengths, words, targets) ->
    (log p, log Z).
    """

    def score_step(params, tables, prepared, *arrays):
        if pairs:
            return model.log_prob_and_log_z(params, tables, *arrays, prepared=prepared)
        words, targets, reset, carry = arrays
        return model.log_prob_and_log_z(
            params, tables, words, targets, carry, reset=reset, prepared=prepared
        )

    donated = () if pairs else (6,)
    if mesh is None:
        return jax.jit(score_step, donate_argnums=donated)
    replicated, rows = NamedSharding(mesh, REPLICATED), NamedSharding(mesh, BY_ROWS)
    outputs = replicated if pairs else (replicated, rows)
    # Batch rows are shared over the data axis's devices, without communication.
    shared_out = jax.shard_map(
        score_step,
        mesh=mesh,
        in_specs=(*(REPLICATED,) * 3, *(BY_ROWS,) * 4),
        out_specs=BY_ROWS,
        axis_names={DATA},
        check_vma=False,  # a carry that begins as zeros does not vary over batch rows yet
    )
    return jax.jit(shared_out, out_shardings=outputs, donate_argnums=donated)


def usable_mesh(mesh: Mesh | None, batch_rows: int) -> Mesh | None:
    """Returns the mesh if the size of its data axis divides the batch rows, else None."""
    return mesh if mesh is not None and batch_rows % mesh.shape[DATA] == 0 else None


def on_devices(tree: Any, batch_rows: int) -> tuple[Any, Mesh | None]:
    """Copies arrays to each of this process's devices; returns them and the mesh, which is None for
    one device, or if rows do not divide."""
    devices = np.array(jax.local_devices())
    mesh = usable_mesh(Mesh(devices, (DATA,), axis_types=(AxisType.Auto,)), batch_rows)
    if mesh is None or len(devices) == 1:
        return tree, None
    return jax.device_put(tree, NamedSharding(mesh, REPLICATED)), mesh


def shard(tree, mesh: Mesh | None):
    """Shards host arrays [batch rows, ...] along the data axis; keeps them without a mesh."""
    if mesh is None:
        return tree
    layout = NamedSharding(mesh, BY_ROWS)
    return jax.tree.map(
        lambda x: jax.make_array_from_callback(x.shape, layout, lambda index: x[index]), tree
    )


def score(
    model, params, tables, text: EncodedText, batches: Batches, mesh: Mesh | None = None
) -> Scores:
    """Runs the model over a text, its products in full float32 wherever it runs."""
    mesh = usable_mesh(mesh, batches.batch)
    # With parameters committed to a device, as in training, a step returns a committed carry: an
    # uncommitted first carry would compile it twice.
    bound = [leaf.sharding for leaf in jax.tree.leaves(params) if getattr(leaf, "committed", False)]
    carry = model.initial_carry(batches.batch)
    if mesh is not None:
        carry = shard(jax.tree.map(np.asarray, carry), mesh)
    else:
        carry = jax.device_put(carry, bound[0] if bound else None)

    def scored_batches(carry):
        step = _prepared_step(model, params, tables, mesh)
        for batch in batches:
            scores, carry = step(*shard((batch.words, batch.targets, batch.reset), mesh), carry)
            yield batch, scores

    return collect(text, scored_batches(carry))


def _prepared_step(model, params, tables, mesh, pairs=False):
    """Returns the compiled scoring step of given parameters, once the head is checked."""
    head_params, head_tables = model.head_params(params), tables["head"]
    distributions.check(model.head, head_params, head_tables, model.hidden_size)
    step = compiled_score_step(model, mesh, pairs)
    return functools.partial(step, params, tables, model.prepared(params, tables))


def collect(text: EncodedText, scored_batches: Iterable[tuple[Any, tuple]]) -> Scores:
    """Puts (log p, log Z) of batches, computed as they are needed, in the order of a text."""
    log_prob = np.full(len(text.words), np.nan, np.float32)
    log_z, predicted = log_prob.copy(), np.zeros(len(text.words), bool)
    with jax.default_matmul_precision(PRECISION), bar(len(text.words), "tokens") as advance:
        for batch, scores in scored_batches:
            is_real = batch.positions >= 0
            at = batch.positions[is_real]
            log_prob[at], log_z[at] = (np.asarray(array)[is_real] for array in scores)
            predicted[at] = True
            advance(len(at))
    if text.strings is not None:  # a class has been judged; its string is a part of it
        log_prob += text.strings.log_within.astype(np.float32)
    # Not `~isnan(log_prob)`: a model that has become NaN must show, not lose its tokens.
    return Scores(log_prob, text.counted & predicted, log_z)


# ---------------------------- exact log-probabilities of translations, given their sources

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
    reading = experiment.source_side_vocabulary
    sources = reading.encode(experiment.source_corpus(corpus), source)
    targets = experiment.vocabulary.encode(corpus, lexicon)
    return PairedText(sources, targets, boundary, experiment.vocabulary.boundary_marks, model.order)


def score_pairs(
    model, params: Params, tables: Tables, pairs: PairedText, batch: int, mesh: Mesh | None = None
) -> Scores:
    """Computes the log-probabilities of all translations of a text, in its order."""
    mesh = usable_mesh(mesh, batch)

    def scored_batches():
        step = _prepared_step(model, params, tables, mesh, pairs=True)
        for rows in BucketedPairs(pairs, batch, _PADDING).epoch():
            arrays = rows.source, rows.lengths, rows.words, rows.targets
            yield rows, step(*shard(arrays, mesh))

    return collect(pairs.target, scored_batches())


# -------------- bars of long computations, on a terminal and where a command asks for them

# Seconds before a bar appears.
DELAY = 1.0
_shows_bars = contextvars.ContextVar("asked", default=False)


@contextlib.contextmanager
def on_terminal() -> Iterator[None]:
    """Shows bars of the computations inside, if standard error is a terminal."""
    token = _shows_bars.set(True)
    try:
        yield
    finally:
        _shows_bars.reset(token)


@contextlib.contextmanager
def bar(total: int, unit: str) -> Iterator[Callable[[int], object]]:
    """Yields a function that advances a bar, shown after `DELAY` and within `on_terminal` alone."""
    if not _shows_bars.get():
        yield lambda done: None
        return
    with lazy.extra():
        from tqdm import tqdm
    with tqdm(
        total=total, unit=f" {unit}", disable=None, delay=DELAY, leave=False, dynamic_ncols=True
    ) as progress_bar:
        yield progress_bar.update
