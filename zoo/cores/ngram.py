"""The feed-forward n-gram model, whose hidden states depend on the last n - 1 words only.

Bengio et al. (2003); Labeau and Allauzen (2017), section 2.2. With e_t the vector of the word
before position t,

    h_t = relu(W_0 e_t + W_1 e_(t-1) + ... + W_(n-2) e_(t-n+2) + b)

optionally with further layers on it. Positions before the beginning of the text, or before a reset,
add nothing to the sum.

The products W_k e_t are computed once, at position t, and added to the sums of all positions that
need them. So the carry holds the partial sums of the next n - 2 positions.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from zoo.arrays import products, random_keys
from zoo.arrays.types import Carry
from zoo.cores.core import Core
from zoo.errors import check_least
from zoo.networks import dropout


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
        context_key, *keys = jax.random.split(key, self.layers)
        shape = (self.order - 1, input_size, self.size)
        return {
            "context": _uniform(context_key, shape, shape[0] * shape[1]),
            "bias": jnp.zeros(self.size),
            "layers": tuple(
                {
                    "weights": _uniform(k, (self.size, self.size), self.size),
                    "bias": jnp.zeros(self.size),
                }
                for k in keys
            ),
        }

    def initial_carry(self, batch: int) -> Carry:
        """Returns zeros, the partial sums [B, n - 2, D] of the next positions; () for bigrams."""
        return jnp.zeros((batch, self.order - 2, self.size)) if self.order > 2 else ()

    def _apply(self, params, inputs, carry, reset, key):
        batch, time, _ = inputs.shape
        rows = None if key is None else key.rows
        inputs = _drop(inputs, self.input_dropout, rows, 0)
        ahead = self.order - 2
        # The text that each position, past the end too, belongs to; the carry belongs to text 0.
        text = jnp.zeros((batch, time), jnp.int32)
        if reset is not None:
            text = jnp.cumsum(reset, axis=1, dtype=jnp.int32)
        of_targets = jnp.concatenate([text, jnp.repeat(text[:, -1:], ahead, axis=1)], axis=1)

        sums = jnp.zeros((batch, time + ahead, self.size), inputs.dtype)
        if ahead:
            same = of_targets[:, :ahead] == 0
            sums = sums.at[:, :ahead].add(jnp.where(same[:, :, None], carry, 0))
        flat = inputs.reshape(batch * time, -1)
        for back, weights in enumerate(params["context"]):
            ahead_sums = products.matmul(flat, weights).reshape(batch, time, -1)
            same = of_targets[:, back : back + time] == text
            ahead_sums = jnp.where(same[:, :, None], ahead_sums, 0)
            sums = sums.at[:, back : back + time].add(ahead_sums)

        hidden = jax.nn.relu(sums[:, :time] + params["bias"][None, None])
        hidden = _drop(hidden, self.dropout, rows, 1)
        for use, layer in enumerate(params["layers"], 2):
            hidden = jax.nn.relu(products.affine(hidden, layer["weights"], layer["bias"]))
            hidden = _drop(hidden, self.dropout, rows, use)
        return hidden, sums[:, time:] if ahead else ()


def _drop(x, rate, rows, use):
    """Applies dropout to x [B, T, D] if `rows` are given and the rate is not 0."""
    if rows is None or not rate:
        return x
    return x * dropout.masks(random_keys.fold_in_rows(rows, use), x.shape[1:], rate, x.dtype)


def _uniform(key, shape, inputs):
    scale = (6 / inputs) ** 0.5
    return jax.random.uniform(key, shape, minval=-scale, maxval=scale)
