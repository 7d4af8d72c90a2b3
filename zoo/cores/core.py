"""The contract of a core: from vectors to hidden states, along time."""

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar

import jax
import jax.numpy as jnp

from zoo.arrays import keys
from zoo.arrays.types import Carry, Key, Params
from zoo.lexicon import Lexicon


class Core:
    """The contract of cores. Subclasses are frozen dataclasses; methods are pure functions.

        init(key, input_size) -> params
        initial_carry(batch) -> carry, every leaf [batch, ...]
        apply(params, inputs [B, T, E], carry, *, reset=None, key=None)
            -> (hidden [B, T, D], carry)

    reset, bool [B, T], marks positions before which the carry is zeroed. key turns dropout on: one
    key, or `zoo.arrays.keys.Keys`, so that a row's masks do not depend on the rows beside it. Of no
    lanes or no positions the hidden states are empty, and the carry is what it was.
    """

    # Subclasses are dataclasses.
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

    if TYPE_CHECKING:  # a field of most, without a value here

        @property
        def size(self) -> int: ...

    # Whether a hidden state depends on its own position and those before alone. A core that reads
    # on may be an encoder, and not the core of a language model.
    causal: ClassVar[bool] = True

    # A core sees no words: as Head.ordered_by_frequency, and `for_lexicon` below.
    ordered_by_frequency: bool = False

    def for_lexicon(self, params: Params, lexicon: Lexicon, other: Lexicon) -> Params:
        """The parameters for another lexicon: unchanged, for no parameter is of a word."""
        return params

    @property
    def output_size(self) -> int:
        """D, the size of a hidden state: `size`, unless a core says otherwise."""
        return self.size

    def init(self, key: jax.Array, input_size: int) -> Any:
        """The parameters at the start of training; every core writes this itself."""
        raise TypeError(f"{type(self).__name__} has no method init, which its use needs")

    def initial_carry(self, batch: int) -> Carry:
        """The carry before any input, every leaf [batch, ...]; every core writes this itself."""
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
        """Computes the hidden states along the positions, and what the next call goes on from.

        Every core writes this itself, or `_apply`, which is called with some positions of some
        lanes, and the key as the `zoo.arrays.keys.Keys` of a batch.

        Args:
          params: the parameters.
          inputs: x, [B, T, E].
          carry: of `initial_carry`, or of the call before.
          reset: bool [B, T], positions before which the carry is zeroed.
          key: turns dropout on; one key, or the keys of a batch.

        Returns:
          (hidden [B, T, output_size], carry).
        """
        batch, time, _ = inputs.shape
        if not batch * time:
            return jnp.zeros((batch, time, self.output_size), inputs.dtype), carry
        of_batch = None if key is None else keys.for_batch(key, batch)
        # Inputs say what is computed with; the carry is kept in the type that it has.
        given = jax.tree.map(lambda x: _as_type(x, inputs.dtype), carry)
        hidden, last = self._apply(params, inputs, given, reset, of_batch)
        return hidden, jax.tree.map(lambda new, old: _as_type(new, old.dtype), last, carry)

    def _apply(self, params, inputs, carry, reset, key):
        raise TypeError(f"{type(self).__name__} has no method apply, which its use needs")

    def decoder_carry(self, carry: Carry) -> Carry:
        """The carry after an encoder's inputs as the layers of a decoder take it: as it is, unless
        the core says otherwise."""
        return carry


def _as_type(array, dtype):
    """An array of fractions in a type of fewer bits, or of more."""
    return array.astype(dtype) if jnp.issubdtype(array.dtype, jnp.floating) else array
