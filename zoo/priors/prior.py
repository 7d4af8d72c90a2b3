"""The contracts of priors: features of words, and backgrounds, distributions over words."""

import collections
import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from zoo.base.arrays.types import Carry, Context, Tables
from zoo.base.component_registry import Component
from zoo.errors import UserError, check_least
from zoo.lexicon import Lexicon

if TYPE_CHECKING:  # heads, which read no text, import this module
    from zoo.sources.source import Corpus

Words: TypeAlias = tuple[str, ...]
# {split: its corpus}
Corpora: TypeAlias = dict[str, "Corpus"]
# {word: features} that a source knows beforehand.
Entries: TypeAlias = dict[str, tuple[str, ...]]
# {split: its text as word ids, a `zoo.data.encoded_text.EncodedText`}
Texts: TypeAlias = Mapping[str, Any]
# bool [B, T], positions before which the carry becomes the initial one; None for none.
Reset: TypeAlias = jax.Array | None
# (carry, word [B], whether rows begin anew [B]) -> (carry, context)
Step: TypeAlias = Callable[[Carry, jax.Array, jax.Array], tuple[Carry, Context]]
MOST_BELOW = 80.0  # nats: float32 knows no number below e^-87 but inexactly


class FeaturePrior(Component):
    """The contract of priors that give features of words. Subclasses are frozen dataclasses."""

    def features(self, words: Words, corpora: Corpora, entries: Entries) -> list[dict[str, float]]:
        """Returns the features of each word; every prior writes this itself.

        Args:
          words: V words.
          corpora: {split: Corpus}.
          entries: {word: features} that the source knows beforehand.

        Returns:
          V dicts {feature name: value}.
        """
        raise self._unwritten("features")


class Background(Component):
    """The contract of distributions over words that do not depend on the context."""

    def log_probs(self, words: Words, corpora: Corpora) -> np.ndarray:
        """Computes log b of each word; every background writes this itself.

        Args:
          words: V words.
          corpora: {split: Corpus}.

        Returns:
          float64 [V], nats.
        """
        raise self._unwritten("log_probs")


class Contextual(Component):
    """Prior knowledge at each position of a sequence, given the words before it: its context.

    Subclasses are frozen dataclasses; methods are pure functions. Estimates from text are made
    once, on the host, and kept in the lexicon of the run. A prior does not have trained parameters:
    no gradient passes through it.
    """

    # The splits whose text `prepare` receives.
    splits: tuple[str, ...] = ()
    # The folder of the run, where the prior is a trained model.
    workdir: str | None = None
    # Whether `apply` also takes hidden=, the states of the positions, and `initial_carry` their
    # size, hidden_size=; see heads.WithCache.
    reads_states: ClassVar[bool] = False

    def prepare(self, lexicon: Lexicon, texts: Texts) -> dict[str, np.ndarray]:
        """Computes {name: array} from {split: EncodedText}, UserError where these do not fit.

        The lexicon of the run keeps them as its background_tables. {} by default.
        """
        return {}

    def tables(self, lexicon: Lexicon) -> Tables:
        """Returns the arrays of `prepare`, on the device."""
        return {name: jnp.asarray(array) for name, array in self.prepared_tables(lexicon).items()}

    def prepared_tables(self, lexicon: Lexicon) -> dict[str, np.ndarray]:
        """Returns the arrays of `prepare`."""
        if not lexicon.background_tables and type(self).prepare is not Contextual.prepare:
            raise ValueError(
                f"{type(self).__name__} is not prepared: it has to read its text or file first. "
                "Give the lexicon that zoo.data.with_background(lexicon, background, sentences) "
                "makes"
            )
        return lexicon.background_tables

    def initial_carry(self, batch: int) -> Carry:
        """Returns the carry before any word, leaves [batch, ...]; every prior writes this."""
        raise self._unwritten("initial_carry")

    def apply(
        self, tables: Tables, words: jax.Array, carry: Carry, *, reset: Reset = None
    ) -> tuple[Context, Carry]:
        """Computes (contexts with leaves [B, T, ...], carry); every prior writes this itself.

        `words` int32 [B, T] holds the word before each position. `reset` bool [B, T] marks
        positions before which the carry becomes the initial one.
        """
        raise self._unwritten("apply")


class ContextualBackground(Contextual):
    """A distribution or measure b(. | c) over words for each context c.

    Contexts, leaves [..., *] as `apply` gives them, are small states from which b is computed when
    it is needed, not distributions. `tables` are the arrays of the method `tables`.
    """

    def log_probs(self, tables: Tables, contexts: Context) -> jax.Array:
        """Computes log b(x | c) of every word, [..., V], nats; every background writes this."""
        raise self._unwritten("log_probs")

    def log_prob(self, tables: Tables, contexts: Context, words: jax.Array) -> jax.Array:
        """Computes log b(words | c), [...], nats; a background may override it."""
        log_probs = self.log_probs(tables, contexts)
        return jnp.take_along_axis(log_probs, words[..., None], axis=-1)[..., 0]

    def log_masses(
        self, tables: Tables, contexts: Context, signature: jax.Array, signatures: int
    ) -> jax.Array:
        """Computes log B(s | c), [..., S], nats: the sum of b over the words of each signature.

        `signature` int32 [V] has the signature of each word.
        """
        return sum_by_signature(self.log_probs(tables, contexts), signature, signatures)


def token_counts(corpora: Corpora, splits: tuple[str, ...]) -> collections.Counter:
    """Counts the occurrences of each word in the splits."""
    check_splits(corpora, splits)
    counts: collections.Counter = collections.Counter()
    for name, corpus in corpora.items():
        if not splits or name in splits:
            counts.update(corpus.token_counts())
    return counts


def check_splits(corpora: Corpora, splits: tuple[str, ...]):
    """Raises UserError if one of the splits is not among the corpora."""
    for split in splits:
        if split not in corpora:
            raise UserError(
                f"the data have no split {split!r} to take words from: give one of "
                f"{', '.join(corpora)}."
            )


def check_features(prior: FeaturePrior, words: Words, features: list[dict[str, float]]):
    """Raises UserError unless a prior gave one dict of finite numbers for each word."""
    name = type(prior).__name__
    if len(features) != len(words):
        raise UserError(
            f"{name}.features gives {len(features):,} dicts for {len(words):,} words: give one for "
            "each, in their order."
        )
    for word, word_features in zip(words, features, strict=True):
        for feature, value in word_features.items():
            if not math.isfinite(value):
                raise UserError(
                    f"{name}.features gives {word!r} the feature {feature!r} with the value "
                    f"{value}: give a finite number."
                )


def check_background(prior: Background, words: Words, log_background: np.ndarray):
    """Raises UserError unless a background gave log-probabilities, not all of them -inf."""
    name = type(prior).__name__
    if log_background.shape != (len(words),):
        raise UserError(
            f"{name}.log_probs gives an array of shape {log_background.shape} for {len(words):,} "
            "words: give one log-probability for each."
        )
    is_invalid = np.isnan(log_background) | np.isposinf(log_background)
    if is_invalid.any() or np.isneginf(log_background).all():
        word_id = int(np.argmax(is_invalid))
        raise UserError(
            f"{name}.log_probs gives {log_background[word_id]} for {words[word_id]!r}: give the "
            "log of a probability, and not of 0 for all words."
        )


def sum_by_signature(log_probs: jax.Array, signature: jax.Array, signatures: int) -> jax.Array:
    """Computes the log of the sum of exp(log_probs) over the words of each signature."""
    # The largest value of a row is factored out; of each signature, which takes longer, only where
    # some word is so far below it that its exponential would be 0.
    if signatures == log_probs.shape[-1]:
        return log_probs
    # Words first: whole rows are added then, which is many times faster than single numbers.
    rows = jnp.moveaxis(log_probs, -1, 0)
    largest = _or_zero(jnp.max(rows, axis=0, keepdims=True))

    def by_row(rows: jax.Array) -> jax.Array:
        sums = jax.ops.segment_sum(jnp.exp(rows - largest), signature, num_segments=signatures)
        return jnp.log(sums) + largest

    def by_signature(rows: jax.Array) -> jax.Array:
        largest = _or_zero(jax.ops.segment_max(rows, signature, num_segments=signatures))
        shares = jnp.exp(rows - largest[signature])
        return jnp.log(jax.ops.segment_sum(shares, signature, num_segments=signatures)) + largest

    underflows = jnp.any(jnp.isfinite(rows) & (rows < largest - MOST_BELOW))
    return jnp.moveaxis(jax.lax.cond(underflows, by_signature, by_row, rows), 0, -1)


def lexicon_tables(lexicon: Lexicon) -> Tables:
    """Returns the lexicon's own background and its boundary as device arrays."""
    return {
        "log_background": jnp.asarray(lexicon.background_log_probs, jnp.float32),
        "boundary": jnp.asarray(lexicon.boundary_id, jnp.int32),
    }


def scan_words(step: Step, carry: Carry, words: jax.Array, reset: Reset) -> tuple[Context, Carry]:
    """Applies a step to each column of words [B, T]; returns (contexts [B, T, ...], last carry)."""
    fresh = jnp.zeros(words.shape[:2], bool) if reset is None else reset
    inputs = (jnp.moveaxis(words, 1, 0), fresh.T)
    carry, contexts = jax.lax.scan(lambda carry, xs: step(carry, *xs), carry, inputs)
    return jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 0, 1), contexts), carry


def _or_zero(largest):
    """Returns the largest of some numbers, or 0 where all of them are -inf."""
    return jnp.where(jnp.isfinite(largest), largest, 0)


# ------------------------------------------------------------ context-free backgrounds


@dataclasses.dataclass(frozen=True)
class Uniform(Background):
    """b(x) = 1 / V.

    Example:
      >>> np.exp(priors.Uniform().log_probs(words, corpora)).tolist()
      [0.25, 0.25, 0.25, 0.25]
    """

    def log_probs(self, words: Words, corpora: Corpora) -> np.ndarray:
        return np.full(len(words), -np.log(len(words)))


@dataclasses.dataclass(frozen=True)
class Unigram(Background):
    """b(x) = (n(x) + smoothing) / (N + smoothing V), n(x) the occurrences of x.

    Attributes:
      splits: the splits whose words are counted; all splits if empty, as in Dymetman and Xiao
        (2016).
      smoothing: added to each count. A background that is counted on only some of the splits needs
        it: words without any mass can never be predicted.

    Example:
      >>> background = priors.Unigram(smoothing=1)
      >>> print(np.exp(background.log_probs(words, corpora)))  # (n + 1) / 9
      [0.1111 0.3333 0.3333 0.2222]
    """

    splits: tuple[str, ...] = ()
    smoothing: float = 0.0

    def __post_init__(self):
        check_least(self, smoothing=0)

    def log_probs(self, words: Words, corpora: Corpora) -> np.ndarray:
        counter = token_counts(corpora, self.splits)
        counts = np.array([counter[word] for word in words], np.float64) + self.smoothing
        if not counts.all():
            missing = words[int(np.argmin(counts))]
            raise UserError(
                f"the unigram background gives no mass to {missing!r}, which is in the lexicon: "
                "set its smoothing above 0."
            )
        return np.log(counts / counts.sum())
