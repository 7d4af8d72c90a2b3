"""The base class of cores, which turn vectors into hidden states along time."""

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar

import jax
import jax.numpy as jnp

from zoo.arrays import random_keys
from zoo.arrays.types import Carry, Key, Params, accumulator
from zoo.lexicon import Lexicon


class Core:
    """Base class of cores. Subclasses are frozen dataclasses; methods are pure functions.

        init(key, input_size) -> params
        initial_carry(batch) -> carry, every leaf [batch, ...]
        apply(params, inputs [B, T, E], carry, *, reset=None, key=None)
            -> (hidden [B, T, D], carry)

    reset, bool [B, T], marks positions before which the carry is zeroed. key turns dropout on: one
    key, or `zoo.arrays.random_keys.Keys`, so that a row's masks do not depend on the other rows.
    Without batch rows or positions, the hidden states are empty and the carry is returned
    unchanged.
    """

    # Subclasses are dataclasses.
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

    if TYPE_CHECKING:  # a field of most, without a value here

        @property
        def size(self) -> int: ...

    # Whether a hidden state depends only on its own and earlier positions. Other cores may be
    # encoders, but not the core of a language model.
    causal: ClassVar[bool] = True

    # See Head.ordered_by_frequency: a core sees vectors instead of words.
    ordered_by_frequency: bool = False

    def for_lexicon(self, params: Params, lexicon: Lexicon, other: Lexicon) -> Params:
        """Returns the parameters for another lexicon, unchanged: none belongs to a word.

        Args:
          params: the trained parameters.
          lexicon: the words of training.
          other: the other words.
        """
        return params

    @property
    def output_size(self) -> int:
        """D, the size of a hidden state: `size`, unless a core overrides it."""
        return self.size

    def init(self, key: jax.Array, input_size: int) -> Any:
        """Draws the parameters at the start of training; every core overrides it.

        Args:
          key: a key of `jax.random`.
          input_size: E.
        """
        raise TypeError(f"{type(self).__name__} has no method init, which its use needs")

    def initial_carry(self, batch: int) -> Carry:
        """Returns the carry before any input; every core overrides it.

        Args:
          batch: B.

        Returns:
          A pytree of leaves [B, ...].
        """
        raise TypeError(f"{type(self).__name__} has no method initial_carry, which its use needs")

    def apply(
        self,
        params: Any,
        inputs: jax.Array,
        carry: Carry,
        *,
        reset: jax.Array | None = None,
        key: Key | None = None,
    ) -> tuple[jax.Array, Carry]:
        """Computes the hidden states along the positions, and the carry for the next call.

        Every core overrides this method or `_apply`. `_apply` is called with at least one position
        and batch row, and with the key as the `zoo.arrays.random_keys.Keys` of a batch.

        Args:
          params: the parameters.
          inputs: x, [B, T, E].
          carry: the result of `initial_carry`, or the carry of the call before.
          reset: bool [B, T], positions before which the carry is zeroed; None for none.
          key: the key of dropout, one key or the keys of a batch; None turns dropout off.

        Returns:
          (hidden [B, T, output_size], carry).

        Raises:
          TypeError: reset is not bool [B, T].
        """
        batch, time, _ = inputs.shape
        if not batch * time:
            return jnp.zeros((batch, time, self.output_size), accumulator(inputs)), carry
        if reset is not None and (reset.dtype != bool or reset.shape != (batch, time)):
            raise TypeError(
                f"{type(self).__name__}.apply: reset is {reset.dtype} of the shape {reset.shape}: "
                f"give bool of the shape {(batch, time)}, True where a text begins"
            )
        of_batch = None if key is None else random_keys.for_batch(key, batch)
        # States are at least float32, whatever the type of the weights; the carry keeps its type.
        inputs = inputs.astype(accumulator(inputs))
        given = jax.tree.map(lambda x: _as_type(x, inputs.dtype), carry)
        hidden, last = self._apply(params, inputs, given, reset, of_batch)
        return hidden, jax.tree.map(lambda new, old: _as_type(new, old.dtype), last, carry)

    def _apply(self, params, inputs, carry, reset, key):
        raise TypeError(f"{type(self).__name__} has no method apply, which its use needs")

    def decoder_carry(self, carry: Carry) -> Carry:
        """Converts an encoder's carry to a decoder's; unchanged unless a core overrides it.

        Args:
          carry: the carry after the encoder's inputs.
        """
        return carry


def _as_type(array, dtype):
    """Casts an array to a type if it is floating-point."""
    return array.astype(dtype) if jnp.issubdtype(array.dtype, jnp.floating) else array
