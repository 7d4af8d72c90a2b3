"""The contract of a core: from vectors to hidden states, along time."""

import jax.numpy as jnp


class Core:
    """What every core offers. Subclasses are frozen dataclasses; methods are pure functions.

        init(key, input_size) -> params
        initial_carry(batch) -> carry, every leaf [batch, ...]
        apply(params, inputs [B, T, E], carry, *, reset=None, key=None)
            -> (hidden [B, T, D], carry)

    reset, bool [B, T], marks positions before which the carry is zeroed. key turns dropout on: one
    key, or `zoo.arrays.keys.Keys`, so that a row's masks do not depend on the rows beside it. Of no
    lanes or no positions the hidden states are empty, and the carry is what it was.
    """

    size: int

    @property
    def output_size(self) -> int:
        """D, the size of a hidden state: `size`, unless a core says otherwise."""
        return self.size

    def _of_nothing(self, inputs, carry):
        """What `apply` gives where B or T is 0."""
        return jnp.zeros((*inputs.shape[:2], self.output_size), inputs.dtype), carry
