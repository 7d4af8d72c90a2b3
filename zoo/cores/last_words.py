"""A core that knows the last n words alone, for it begins at each of them from an empty carry.

Dymetman and Xiao, "Log-linear RNNs" (2016), section 5.3: "the sequence length for predicting the
next word is fixed at 8 words". So a hidden state is that of a recurrent network after

    x_(t-n+1) ... x_t    from an empty carry,

or after as many words as the text, or the part of it since a reset, has. Where a carried state
reads each word once, n runs are under way at each position here, begun at the n words before.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from zoo.arrays import keys
from zoo.arrays.types import Carry
from zoo.cores.core import Core
from zoo.cores.lstm import LSTM
from zoo.errors import UserError, check_least


@dataclasses.dataclass(frozen=True)
class LastWords(Core):
    """The hidden state of a core after the last words alone; n times its cost.

    The parameters are the core's; the carry has those of the runs under way, after the last
    1 ... n - 1 words. No gradient goes back over a call's first position, as with any core: a
    training length of several times n leaves few runs cut short.

    Attributes:
      core: what reads the words; it is causal.
      words: n.

    Raises:
      UserError: the core knows the words to come.

    Example:
      >>> core = cores.LastWords(cores.GRU(size=3), words=2)
      >>> hidden, carry = core.apply(core.init(key, 4), inputs, core.initial_carry(2))
      >>> hidden.shape, bool(jnp.allclose(hidden[:, 1], hidden[:, 4]))  # the inputs are all alike
      ((2, 5, 3), True)

    Source: Dymetman and Xiao (2016), section 5.3.
    """

    core: Core = LSTM()
    words: int = 8

    def __post_init__(self):
        check_least(self, words=1)
        if not self.core.causal:
            raise UserError(
                f"core of LastWords is {type(self.core).__name__}, whose hidden states know the "
                "words to come: give a causal one, such as LSTM."
            )

    @property
    def size(self) -> int:
        """The size of the core's layers."""
        return self.core.size

    @property
    def output_size(self) -> int:
        """D, that of the core."""
        return self.core.output_size

    def init(self, key: jax.Array, input_size: int) -> Any:
        """The parameters of the core."""
        return self.core.init(key, input_size)

    def initial_carry(self, batch: int) -> Carry:
        """The core's carries after the last 1 ... n - 1 words, leaves [batch, n - 1, ...]: empty
        ones."""
        flat = self.core.initial_carry(batch * (self.words - 1))
        return jax.tree.map(lambda leaf: leaf.reshape(batch, self.words - 1, *leaf.shape[1:]), flat)

    def _apply(self, params, inputs, carry, reset, key):
        batch, time, _ = inputs.shape
        runs = self.words
        if reset is None:
            reset = jnp.zeros((batch, time), bool)
        empty = self.core.initial_carry(batch)

        def step(carry, of_position):
            x, begins, number = of_position

            def begun(old, new):
                """Carries after the last 0 ... n - 1 words, [B n, ...]."""
                old = jnp.where(begins.reshape(-1, *(1,) * (old.ndim - 1)), 0, old)
                whole = jnp.concatenate([new[:, None].astype(old.dtype), old], axis=1)
                return whole.reshape(batch * runs, *old.shape[2:])

            hidden, carry = self.core.apply(
                params,
                jnp.repeat(x, runs, axis=0)[:, None],
                jax.tree.map(begun, carry, empty),
                key=None if key is None else _of_runs(key, number, runs),
            )
            carry = jax.tree.map(lambda x: x.reshape(batch, runs, *x.shape[1:])[:, :-1], carry)
            return carry, hidden.reshape(batch, runs, -1)[:, -1]

        positions = jnp.arange(time)
        along = jnp.moveaxis(inputs, 1, 0), jnp.moveaxis(reset, 1, 0), positions
        carry, hidden = jax.lax.scan(step, carry, along)
        return jnp.moveaxis(hidden, 0, 1), carry


def _of_runs(of_batch, position, runs):
    """Keys of all runs at a position: masks of weights are the same all along."""

    def of_row(key):
        numbers = position * runs + jnp.arange(runs)
        return jax.vmap(lambda number: jax.random.fold_in(key, number))(numbers)

    return keys.Keys(of_batch.batch, jax.vmap(of_row)(of_batch.rows).reshape(-1))
