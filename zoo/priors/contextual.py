"""The contracts of priors that depend on the preceding words and run along a sequence."""

from collections.abc import Mapping
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from zoo.arrays.types import Carry, Context, Tables
from zoo.component_registry import Component
from zoo.lexicon import Lexicon

MOST_BELOW = 80.0  # nats: float32 knows no number below e^-87 but inexactly


class Contextual(Component):
    """Prior knowledge at each position of a sequence, given the words before it: its context.

    Subclasses are frozen dataclasses; methods are pure functions. Estimates from text are made
    once, on the host, and kept in the lexicon of the run.

        splits                          names of the splits whose text `prepare` receives
        prepare(lexicon, texts)         -> {name: array}, kept as lexicon.background_tables; from
                                        {split: EncodedText}, UserError where these do not fit
        tables(lexicon)                 -> pytree of arrays for the device
        initial_carry(batch)            -> pytree, every leaf [batch, ...], before any word
        apply(tables, words, carry, *, reset=None) -> (contexts, carry)

    `words` int32 [B, T] holds the word before each position; `contexts` is a pytree of leaves
    [B, T, ...]. `reset` bool [B, T] marks positions before which the carry becomes the initial one.
    A prior does not have trained parameters: no gradient passes through it.
    """

    splits: tuple[str, ...] = ()
    # The folder of the run, where the prior is a trained model.
    workdir: str | None = None
    # Whether `apply` also takes hidden=, the states of the positions, and `initial_carry` their
    # size, hidden_size=; see heads.WithCache.
    reads_states: ClassVar[bool] = False

    def prepare(self, lexicon: Lexicon, texts: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Computes the arrays that the prior makes once from the training text; {} by default."""
        return {}

    def tables(self, lexicon: Lexicon) -> Tables:
        """Returns the arrays of `prepare`, on the device."""
        return {name: jnp.asarray(array) for name, array in self.kept(lexicon).items()}

    def kept(self, lexicon: Lexicon) -> dict[str, np.ndarray]:
        """Returns the arrays of `prepare`."""
        if not lexicon.background_tables and type(self).prepare is not Contextual.prepare:
            raise ValueError(
                f"{type(self).__name__} is not prepared: it has to read its text or file first. "
                "Give the lexicon that zoo.data.with_background(lexicon, background, sentences) "
                "makes"
            )
        return lexicon.background_tables

    def initial_carry(self, batch: int) -> Carry:
        """Returns the carry before any word; every prior writes this itself."""
        raise self._unwritten("initial_carry")

    def apply(
        self, tables: Tables, words: jax.Array, carry: Carry, *, reset: jax.Array | None = None
    ) -> tuple[Context, Carry]:
        """Computes (contexts, carry) after words; every prior writes this itself."""
        raise self._unwritten("apply")


class ContextualBackground(Contextual):
    """A distribution or measure b(. | c) over words for each context c.

        log_probs(tables, contexts)     -> log b(x | c) of every word, [..., V]
        log_prob(tables, contexts, words) -> log b(word | c), [...]
        log_masses(tables, contexts, signature, signatures)
            -> log B(s | c), the sum of b(x | c) over the words x of each of S signatures, [..., S]

    Contexts, leaves [..., *] as `apply` gives them, are small states from which b is computed when
    it is needed, not distributions. `tables` are the arrays of the method `tables`.
    """

    def log_probs(self, tables: Tables, contexts: Context) -> jax.Array:
        """Computes log b(x | c) of every word, nats; every background writes this itself."""
        raise self._unwritten("log_probs")

    def log_prob(self, tables: Tables, contexts: Context, words: jax.Array) -> jax.Array:
        """Computes log b(words | c), nats; a background may override it with a faster way."""
        log_probs = self.log_probs(tables, contexts)
        return jnp.take_along_axis(log_probs, words[..., None], axis=-1)[..., 0]

    def log_masses(
        self, tables: Tables, contexts: Context, signature: jax.Array, signatures: int
    ) -> jax.Array:
        """Computes log B(s | c), nats, from the signature of each word, int32 [V]."""
        return sum_by_signature(self.log_probs(tables, contexts), signature, signatures)


def sum_by_signature(log_probs: jax.Array, signature: jax.Array, signatures: int) -> jax.Array:
    """Computes the log of the sum of exp(log_probs) over the words of each signature.

    The largest value of each row is factored out. Where some word is so far below it that its
    exponential would be 0, the largest value of each signature is factored out instead, which takes
    longer.
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


def of_lexicon(lexicon: Lexicon) -> Tables:
    """Makes the tables of the lexicon's own background and its boundary."""
    return {
        "log_background": jnp.asarray(lexicon.background_log_probs, jnp.float32),
        "boundary": jnp.asarray(lexicon.boundary_id, jnp.int32),
    }


def along(step, carry, words, reset):
    """Runs a step (carry, (word [B], whether a row begins anew [B])) along a sequence [B, T].

    Gives (contexts with leaves [B, T, ...], carry).
    """
    fresh = jnp.zeros(words.shape[:2], bool) if reset is None else reset
    carry, contexts = jax.lax.scan(step, carry, (jnp.moveaxis(words, 1, 0), fresh.T))
    return jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 0, 1), contexts), carry


def _or_zero(largest):
    """Returns the largest of some numbers, or 0 where all of them are -inf."""
    return jnp.where(jnp.isfinite(largest), largest, 0)
