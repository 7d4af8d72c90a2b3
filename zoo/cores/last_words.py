"""A core whose hidden states depend on the last n words only.

Dymetman and Xiao, "Log-linear RNNs" (2016), section 5.3: "the sequence length for predicting the
next word is fixed at 8 words". A hidden state is the state of a recurrent network after

    x_(t-n+1) ... x_t    from an empty carry,

or after fewer words, near the beginning of a text or after a reset. At each position, n runs of the
network are in progress, which began at the last n words; an ordinary core has one run.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from zoo.arrays import random_keys
from zoo.arrays.types import Carry
from zoo.cores.core import Core
from zoo.cores.lstm import LSTM
from zoo.errors import UserError, check_least


@dataclasses.dataclass(frozen=True)
class LastWords(Core):
    """A core that reads the last n words from an empty carry at each position, at n times the cost.

    The parameters are the core's. The carry holds the carries of the runs in progress, after the
    last 1 ... n - 1 words. As with any core, no gradient goes back beyond a call's first position;
    if training sequences are several times n long, few runs are cut short.

    Attributes:
      core: the core that reads the words; it must be causal.
      words: n.

    Raises:
      UserError: the core is not causal.

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
                f"core of LastWords is {type(self.core).__name__}, whose hidden states depend on "
                "later words: give a causal core, such as LSTM."
            )

    @property
    def size(self) -> int:
        """The size of the core's layers."""
        return self.core.size

    @property
    def output_size(self) -> int:
        """D, the output size of the core."""
        return self.core.output_size

    def init(self, key: jax.Array, input_size: int) -> Any:
        """Draws the parameters of the core."""
        return self.core.init(key, input_size)

    def initial_carry(self, batch: int) -> Carry:
        """Returns empty carries of the core for n - 1 runs, leaves [batch, n - 1, ...]."""
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
                """Returns the carries after the last 0 ... n - 1 words, [B n, ...]."""
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
    """Returns keys for all runs at a position; the batch's key, for weights, stays the same."""

    def of_row(key):
        numbers = position * runs + jnp.arange(runs)
        return jax.vmap(lambda number: jax.random.fold_in(key, number))(numbers)

    return random_keys.Keys(of_batch.batch, jax.vmap(of_row)(of_batch.rows).reshape(-1))
