"""Bahdanau's additive attention: v . tanh(W h + U m) (Bahdanau, Cho and Bengio 2015, A.1.2)."""

import dataclasses

import jax
import jax.numpy as jnp

from zoo.arrays import products
from zoo.arrays.types import Params
from zoo.attention.attention import Attention, uniform
from zoo.errors import check_least
from zoo.networks import attention_functions


@dataclasses.dataclass(frozen=True)
class Bahdanau(Attention):
    """Attention with the additive score s(h, m) = v . tanh(W h + U m + b).

    As in Luong's attention, the query is the hidden state of the same position, so that all
    positions are computed at once. In Bahdanau's decoder the query is the state of the position
    before, and the context is an input of the decoder.

    The parameters are {"queries": W, [D, A], "keys": U, [M, A], "keys_bias": b, [A], "vector": v,
    [A], "state": [M + D, R], "state_bias": [R]}; the last two are for the attentional state.

    Attributes:
      size: R, the size of the attentional states; 0 for the size of the hidden states.
      units: A, the size of the sum within the score; 0 for the size of the hidden states.

    Example:
      >>> component = attention.Bahdanau(units=8)
      >>> params = component.init(key, 4, 6)
      >>> once = component.prepared(params, memory, mask)  # for all steps of a decoder
      >>> hypotheses = jnp.ones((10, 4))  # five for each of the two sentences
      >>> states, weights = component.apply(params, hypotheses, memory, mask, prepared=once)
      >>> states.shape, weights.shape
      ((10, 4), (10, 5))
    """

    size: int = 0
    units: int = 0

    def __post_init__(self):
        super().__post_init__()
        check_least(self, units=0)

    def _init_scores(self, key: jax.Array, hidden_size: int, memory_size: int) -> Params:
        units = self.units or hidden_size
        of_queries, of_keys, of_vector = jax.random.split(key, 3)
        return {
            "queries": uniform(of_queries, (hidden_size, units)),
            "keys": uniform(of_keys, (memory_size, units)),
            "keys_bias": jnp.zeros(units),
            "vector": uniform(of_vector, (units, 1))[:, 0],
        }

    def _keys(self, params: Params, memory: jax.Array) -> jax.Array:
        return products.affine(memory, params["keys"], params["keys_bias"])

    def _scores(self, params: Params, hidden: jax.Array, keys: jax.Array) -> jax.Array:
        return attention_functions.additive_scores(
            products.matmul(hidden, params["queries"]), keys, params["vector"]
        )
