"""The contracts of priors that depend on the words before and run along a sequence."""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from zoo.arrays.types import Carry, Context, Tables
from zoo.lexicon import Lexicon

MOST_BELOW = 80.0  # nats: float32 knows no number below e^-87 but inexactly


class Contextual:
    """Prior knowledge at each position of a sequence, of the words before it: its context.

    Subclasses are frozen dataclasses; methods are pure functions. What is estimated from text is
    estimated once, on the host, and kept in the lexicon of the run.

        splits                          names of the splits whose text `prepare` is given
        prepare(lexicon, texts)         -> {name: array}, kept as lexicon.background_tables
        tables(lexicon)                 -> pytree of arrays for the device
        initial_carry(batch)            -> pytree, every leaf [batch, ...], before any word
        apply(tables, words, carry, *, reset=None) -> (contexts, carry)

    `words` int32 [B, T] are those before each position, `contexts` a pytree of leaves [B, T, ...].
    `reset` [B, T] marks positions before which the carry becomes the initial one. Nothing here has
    trained parameters: no gradient passes through it.
    """

    # Subclasses are dataclasses.
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

    splits: tuple[str, ...] = ()
    # The folder of the run that it is, of a prior that is a trained model.
    workdir: str | None = None

    def prepare(self, lexicon: Lexicon, texts: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """The arrays that the prior makes once of the training text: none, unless a prior says
        otherwise.

        Args:
          texts: {split: EncodedText} of `splits`.
        """
        return {}

    def tables(self, lexicon: Lexicon) -> Tables:
        """The arrays that `prepare` made, on the device.

        Raises:
          ValueError: it was not called, or its arrays were not kept.
        """
        return {name: jnp.asarray(array) for name, array in self.kept(lexicon).items()}

    def kept(self, lexicon: Lexicon) -> dict[str, np.ndarray]:
        """The arrays that `prepare` made; ValueError if the lexicon has none."""
        if not lexicon.background_tables and type(self).prepare is not Contextual.prepare:
            raise ValueError(
                f"{type(self).__name__} is not prepared: it has to read its text or file first. "
                "Give the lexicon that zoo.data.with_background(lexicon, background, sentences) "
                "makes"
            )
        return lexicon.background_tables

    def initial_carry(self, batch: int) -> Carry:
        """The carry before any word, every leaf [batch, ...]; every prior writes this itself."""
        raise _unwritten(self, "initial_carry")

    def apply(
        self, tables: Tables, words: jax.Array, carry: Carry, *, reset: jax.Array | None = None
    ) -> tuple[Context, Carry]:
        """(contexts, carry) after words int32 [B, T]; every prior writes this itself."""
        raise _unwritten(self, "apply")


class ContextualBackground(Contextual):
    """A distribution or measure b(. | c) over words for each context c.

        log_probs(tables, contexts)     -> log b(x | c) of every word, [..., V]
        log_prob(tables, contexts, words) -> log b(word | c), [...]
        log_masses(tables, contexts, signature, signatures) -> log B(s | c), [..., S]

    Contexts are small things from which b is computed when it is needed (states, not
    distributions).
    """

    def log_probs(self, tables: Tables, contexts: Context) -> jax.Array:
        """log b(x | c) of every word, nats, [..., V]; every background writes this itself."""
        raise _unwritten(self, "log_probs")

    def log_prob(self, tables: Tables, contexts: Context, words: jax.Array) -> jax.Array:
        """log b(words | c), nats, [...]; a background may have a faster way to it."""
        log_probs = self.log_probs(tables, contexts)
        return jnp.take_along_axis(log_probs, words[..., None], axis=-1)[..., 0]

    def log_masses(
        self, tables: Tables, contexts: Context, signature: jax.Array, signatures: int
    ) -> jax.Array:
        """log B(s | c) = log of the sum of b(x | c) over the words x of each signature, nats.

        Args:
          signature: int32 [V], the signature of each word.
          signatures: S.

        Returns:
          [..., S].
        """
        return sum_by_signature(self.log_probs(tables, contexts), signature, signatures)


def _unwritten(prior: Contextual, method: str) -> TypeError:
    """The error of a prior that lacks one of the methods that it has to write itself."""
    return TypeError(f"{type(prior).__name__} has no method {method}, which its use needs")


def sum_by_signature(log_probs: jax.Array, signature: jax.Array, signatures: int) -> jax.Array:
    """log sum over the words of each signature of exp(log_probs), [..., V] -> [..., S], nats.

    Signatures are numbered in the order of their first words; where there are as many as words,
    each word is its own. Else the largest of each row is factored out, or, where some word is so
    far below it that nothing would be left, the largest of each signature, which takes longer.
    """
    if signatures == log_probs.shape[-1]:
        return log_probs
    # Words first: whole rows are added then, which is many times faster than single numbers.
    rows = jnp.moveaxis(log_probs, -1, 0)
    largest = _or_zero(jnp.max(rows, axis=0, keepdims=True))

    def by_row(rows):
        sums = jax.ops.segment_sum(jnp.exp(rows - largest), signature, num_segments=signatures)
        return jnp.log(sums) + largest

    def by_signature(rows):
        largest = _or_zero(jax.ops.segment_max(rows, signature, num_segments=signatures))
        shares = jnp.exp(rows - largest[signature])
        return jnp.log(jax.ops.segment_sum(shares, signature, num_segments=signatures)) + largest

    lost = jnp.any(jnp.isfinite(rows) & (rows < largest - MOST_BELOW))
    return jnp.moveaxis(jax.lax.cond(lost, by_signature, by_row, rows), 0, -1)


def _or_zero(largest):
    """The largest of some numbers, or 0 where all of them are -inf."""
    return jnp.where(jnp.isfinite(largest), largest, 0)
