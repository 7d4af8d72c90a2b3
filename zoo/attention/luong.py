"""Luong's general attention: h . W m (Luong, Pham and Manning 2015, section 3.1)."""

import dataclasses

import jax

from zoo.arrays import products
from zoo.arrays.types import Params
from zoo.attention.attention import Attention, uniform
from zoo.networks import attention_functions


@dataclasses.dataclass(frozen=True)
class Luong(Attention):
    """Global attention with the general score s(h, m) = h . W m.

    The parameters are {"keys": W, [M, D], "state": [M + D, R], "state_bias": [R]}; the last two are
    for the attentional state.

    Attributes:
      size: R, the size of the attentional states; 0 for the size of the hidden states.

    Example:
      >>> component = attention.Luong()
      >>> states, weights = component.apply(component.init(key, 4, 6), hidden, memory, mask)
      >>> states.shape, (3 * weights[1, 0]).round(3).tolist()  # the memory's vectors are alike here
      ((2, 3, 4), [1.0, 1.0, 1.0, 0.0, 0.0])
    """

    size: int = 0

    def _init_scores(self, key: jax.Array, hidden_size: int, memory_size: int) -> Params:
        return {"keys": uniform(key, (memory_size, hidden_size))}

    def _keys(self, params: Params, memory: jax.Array) -> jax.Array:
        return products.matmul(memory, params["keys"])

    def _scores(self, params: Params, hidden: jax.Array, keys: jax.Array) -> jax.Array:
        return attention_functions.bilinear_scores(hidden, keys)
