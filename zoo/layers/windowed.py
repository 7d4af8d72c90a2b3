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

from zoo.base.arrays import products
from zoo.base.arrays.random_keys import Keys, fold_in_rows, uniform
from zoo.base.arrays.types import Carry
from zoo.errors import UserError, check_least
from zoo.layers import dropout
from zoo.layers.core import Core
from zoo.layers.lstm import LSTM


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
        return self.core.size

    @property
    def output_size(self) -> int:
        return self.core.output_size

    def init(self, key: jax.Array, input_size: int) -> Any:
        return self.core.init(key, input_size)

    def initial_carry(self, batch: int) -> Carry:
        """Returns empty carries of the core for n - 1 runs, leaves [batch, n - 1, ...]."""
        flat = self.core.initial_carry(batch * (self.words - 1))
        return jax.tree.map(lambda leaf: leaf.reshape(batch, self.words - 1, *leaf.shape[1:]), flat)

    def _apply(self, params, inputs, carry, reset, key):
        """Computes (hidden, carry) with all runs in progress as rows of the core's batch."""
        batch, time, _ = inputs.shape
        runs = self.words
        if reset is None:
            reset = jnp.zeros((batch, time), bool)
        empty = self.core.initial_carry(batch)

        def step(carry, inputs_at_position):
            x, begins, number = inputs_at_position

            def begun(array, initial):
                """Returns the carries after the last 0 ... n - 1 words, [B n, ...]."""
                array = jnp.where(begins.reshape(-1, *(1,) * (array.ndim - 1)), 0, array)
                carries = jnp.concatenate([initial[:, None].astype(array.dtype), array], axis=1)
                return carries.reshape(batch * runs, *array.shape[2:])

            hidden, carry = self.core.apply(
                params,
                jnp.repeat(x, runs, axis=0)[:, None],
                jax.tree.map(begun, carry, empty),
                key=None if key is None else _run_keys(key, number, runs),
            )
            carry = jax.tree.map(lambda x: x.reshape(batch, runs, *x.shape[1:])[:, :-1], carry)
            return carry, hidden.reshape(batch, runs, -1)[:, -1]

        along = jnp.moveaxis(inputs, 1, 0), jnp.moveaxis(reset, 1, 0), jnp.arange(time)
        carry, hidden = jax.lax.scan(step, carry, along)
        return jnp.moveaxis(hidden, 0, 1), carry


def _run_keys(keys, position, runs):
    """Returns keys for all runs at a position; the batch's key, for weights, stays the same."""

    def row_keys(key):
        numbers = position * runs + jnp.arange(runs)
        return jax.vmap(lambda number: jax.random.fold_in(key, number))(numbers)

    return Keys(keys.batch, jax.vmap(row_keys)(keys.rows).reshape(-1))


# ---- the feed-forward n-gram model, whose hidden states depend on the last n - 1 words only
# Bengio et al. (2003); Labeau and Allauzen (2017), section 2.2. With e_t the vector of the word
# before position t,
#
#     h_t = relu(W_0 e_t + W_1 e_(t-1) + ... + W_(n-2) e_(t-n+2) + b)
#
# optionally with further layers on it. Positions before the beginning of the text, or before a
# reset, add nothing to the sum.
#
# The products W_k e_t are computed once, at position t, and added to the sums of all positions that
# need them. So the carry holds the partial sums of the next n - 2 positions.


@dataclasses.dataclass(frozen=True)
class NGram(Core):
    """The feed-forward n-gram model: h_t is computed from the last order - 1 words.

    Attributes:
      size: D, the size of each layer.
      order: n.
      layers: the number of layers, at least 1.
      dropout: the dropout rate of every layer's output, including the last layer's.
      input_dropout: the dropout rate of the vectors of words; a word has the same mask in all
        n-grams that it is in.

    Example:
      >>> core = cores.NGram(size=3, order=4)
      >>> hidden, carry = core.apply(core.init(key, 4), inputs, core.initial_carry(2))
      >>> hidden.shape, carry.shape  # the sums for the next two positions
      ((2, 5, 3), (2, 2, 3))
    """

    size: int = 128
    order: int = 3
    layers: int = 1
    dropout: float = 0.0
    input_dropout: float = 0.0

    def __post_init__(self):
        check_least(self, size=1, order=2, layers=1)
        dropout.check_rates(self, "dropout", "input_dropout")

    def init(self, key: jax.Array, input_size: int) -> Any:
        """Draws the weights, uniform with the variance 2 / inputs for rectifiers (He et al. 2015).

        Returns:
          {"context": [n - 1, E, D], the last word first, "bias": [D], "layers": a tuple of
          {"weights": [D, D], "bias": [D]}, one for each further layer}.
        """

        def layer(key):
            weights = uniform(key, (self.size, self.size), (6 / self.size) ** 0.5)
            return {"weights": weights, "bias": jnp.zeros(self.size)}

        context_key, *keys = jax.random.split(key, self.layers)
        shape = (self.order - 1, input_size, self.size)
        return {
            "context": uniform(context_key, shape, (6 / (shape[0] * input_size)) ** 0.5),
            "bias": jnp.zeros(self.size),
            "layers": tuple(map(layer, keys)),
        }

    def initial_carry(self, batch: int) -> Carry:
        """Returns zeros, the partial sums [B, n - 2, D] of the next positions; () for bigrams."""
        return jnp.zeros((batch, self.order - 2, self.size)) if self.order > 2 else ()

    def _apply(self, params, inputs, carry, reset, key):
        """Computes (hidden, carry) from the products W_k e_t, added to the positions' sums."""
        batch, time, _ = inputs.shape
        rows = None if key is None else key.rows
        inputs = _drop(inputs, self.input_dropout, rows, 0)
        ahead = self.order - 2
        # The text that each position, past the end too, belongs to; the carry belongs to text 0.
        text = jnp.zeros((batch, time), jnp.int32)
        if reset is not None:
            text = jnp.cumsum(reset, axis=1, dtype=jnp.int32)
        target_text = jnp.concatenate([text, jnp.repeat(text[:, -1:], ahead, axis=1)], axis=1)

        sums = jnp.zeros((batch, time + ahead, self.size), inputs.dtype)
        if ahead:
            same_text = target_text[:, :ahead] == 0
            sums = sums.at[:, :ahead].add(jnp.where(same_text[:, :, None], carry, 0))
        flat = inputs.reshape(batch * time, -1)
        for back, weights in enumerate(params["context"]):
            ahead_sums = products.matmul(flat, weights).reshape(batch, time, -1)
            same_text = target_text[:, back : back + time] == text
            ahead_sums = jnp.where(same_text[:, :, None], ahead_sums, 0)
            sums = sums.at[:, back : back + time].add(ahead_sums)

        hidden = jax.nn.relu(sums[:, :time] + params["bias"][None, None])
        hidden = _drop(hidden, self.dropout, rows, 1)
        for use, layer in enumerate(params["layers"], 2):
            hidden = jax.nn.relu(products.affine(hidden, layer["weights"], layer["bias"]))
            hidden = _drop(hidden, self.dropout, rows, use)
        return hidden, sums[:, time:] if ahead else ()


def _drop(x, rate, rows, use):
    if rows is None or not rate:
        return x
    return x * dropout.masks(fold_in_rows(rows, use), x.shape[1:], rate, x.dtype)
