"""Attention: functions of hidden states, a memory and parameters.

For a hidden state h, the vectors m_1 ... m_S of a memory and a score s(h, m),

    a_i = exp s(h, m_i) / sum_j exp s(h, m_j),    c = sum_i a_i m_i

over the positions i of the memory that are not masked. Masked positions have weight 0; if all are
masked, all weights and c are 0. Scores after Luong, Pham and Manning (2015), equation 8, and
Bahdanau, Cho and Bengio (2015), appendix A.1.2.

Hidden states are [B, T, D] and the memory is [B, S, M], shared by all T: positions in time, or the
K hypotheses of a sentence, T = K. So a memory is never repeated.
"""

import abc
import dataclasses
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp

from zoo.base.arrays import precision, products
from zoo.base.arrays.precision import accumulator
from zoo.base.arrays.random_keys import uniform
from zoo.base.arrays.types import Params
from zoo.base.component_registry import Component
from zoo.errors import check_least


@jax.custom_vjp
def additive_scores(queries: jax.Array, keys: jax.Array, vector: jax.Array) -> jax.Array:
    """Computes s(h, m) = v . tanh(q + k), [B, T, S], Bahdanau's score for q = W h and k = U m, in
    at least float32. Of the [B, T, S, A] activations, at most [B, S, A] are held at a time; the
    backward pass recomputes them in the same way."""

    def scores(query):
        return products.matmul(jnp.tanh(query[:, None] + keys), vector)

    if queries.shape[1] == 1:
        return scores(queries[:, 0])[:, None]
    return jnp.swapaxes(jax.lax.map(scores, jnp.swapaxes(queries, 0, 1)), 0, 1)


def _additive_backward(residuals, cotangent):
    """Computes the gradients of queries, keys and vector; recomputes tanh(q + k) by queries."""
    queries, keys, vector = residuals
    wide = accumulator(queries)

    def step(sums, inputs):
        query, scores_gradient = inputs
        activated = jnp.tanh(query[:, None] + keys).astype(wide)
        inside = scores_gradient[:, :, None] * (1 - activated * activated)
        vector_gradient = jnp.einsum("bs,bsa->a", scores_gradient, activated)
        return (sums[0] + inside, sums[1] + vector_gradient), inside.sum(1) * vector[None]

    sums = jnp.zeros(keys.shape, wide), jnp.zeros(vector.shape, wide)
    (keys_gradient, vector_gradient), query_gradients = jax.lax.scan(
        step, sums, (jnp.swapaxes(queries, 0, 1), jnp.swapaxes(cotangent, 0, 1))
    )
    return (
        jnp.swapaxes(query_gradients, 0, 1).astype(queries.dtype),
        (keys_gradient * vector[None, None]).astype(keys.dtype),
        vector_gradient.astype(vector.dtype),
    )


additive_scores.defvjp(lambda *arrays: (additive_scores(*arrays), arrays), _additive_backward)


def masked_softmax(scores: jax.Array, mask: jax.Array) -> jax.Array:
    """Computes exp s_i / sum_j exp s_j over the positions of a mask, and exactly 0 elsewhere.

    Gives weights [B, T, S], which sum to 1, or to 0 in a row whose positions are all masked.
    """
    return jax.nn.softmax(scores, axis=-1, where=mask[:, None])


# ----- the contract of attention, and its shared part: weights, context, attentional state


class PreparedMemory(NamedTuple):
    """The arrays of a memory that attention computes once, for all steps of a decoder."""

    memory: jax.Array  # [B, S, M], 0 where the mask hides it
    keys: jax.Array  # [B, S, *], with which hidden states are compared
    mask: jax.Array  # bool [B, S], True where there is memory


class Attention(Component, abc.ABC):
    """The contract of attention. Subclasses are frozen dataclasses that define the scores.

    The states are Luong's attentional states, tanh(W_c (c : h) + b) (equation 5). Hidden states may
    have K adjacent rows for each row of the memory, [B K, T, D] or [B K, D], such as the hypotheses
    of a beam. The memory is not repeated for them. Without rows or positions the results are empty;
    where the mask hides the whole memory, the weights and the context are 0.

    Arguments of methods:
      key: random key.
      hidden_size, memory_size: D and M.
      params: the parameters of `init`.
      hidden: [B, T, D]; or [B K, T, D] or [B K, D], K rows for each row of the memory.
      memory: [B, S, M].
      mask: bool [B, S], True where there is memory.
      prepared: the result of `prepared`; memory and mask are then ignored.
    """

    size: int  # R, of the attentional states; 0 for D

    def __post_init__(self):
        check_least(self, size=0)

    def output_size(self, hidden_size: int) -> int:
        """Returns R, the size of the states that the head receives."""
        return self.size or hidden_size

    def init(self, key: jax.Array, hidden_size: int, memory_size: int) -> Params:
        """Initialises {"state": [M + D, R], "state_bias": [R]} and the parameters of the scores.

        Weights are uniform in +-1/sqrt(inputs), biases 0.
        """
        state_key, scores_key = jax.random.split(key)
        size = self.output_size(hidden_size)
        return {
            "state": _weights(state_key, (memory_size + hidden_size, size)),
            "state_bias": jnp.zeros(size),
            **self._init_scores(scores_key, hidden_size, memory_size),
        }

    @abc.abstractmethod
    def _init_scores(self, key: jax.Array, hidden_size: int, memory_size: int) -> Params:
        """Initialises the parameters of keys and scores."""

    @abc.abstractmethod
    def _keys(self, params: Params, memory: jax.Array) -> jax.Array:
        """Computes the keys of a memory [B, S, M], [B, S, *]."""

    @abc.abstractmethod
    def _scores(self, params: Params, hidden: jax.Array, keys: jax.Array) -> jax.Array:
        """Computes the scores of hidden states [B, T, D] and keys, [B, T, S]."""

    def prepared(self, params: Params, memory: jax.Array, mask: jax.Array) -> PreparedMemory:
        """Computes the arrays of a memory that `apply` needs, for many calls."""
        memory = jnp.where(mask[:, :, None], memory, 0)  # whatever padding holds, even nan
        keys = self._keys(params, memory)
        memory, keys = (precision.rounded_as(x, params["state"]) for x in (memory, keys))
        return PreparedMemory(memory, keys, mask)

    def apply(
        self,
        params: Params,
        hidden: jax.Array,
        memory: jax.Array,
        mask: jax.Array,
        *,
        prepared: PreparedMemory | None = None,
    ) -> tuple[jax.Array, jax.Array]:
        """Computes attentional states and attention weights of hidden states.

        Returns:
          (states [..., R], weights [..., S]); weights sum to 1 over the memory, to 0 without any.

        Raises:
          ValueError: the rows of hidden are not a multiple of the rows of the memory.
        """
        if prepared is None:
            prepared = self.prepared(params, memory, mask)
        rows, batch = hidden.shape[0], prepared.memory.shape[0]
        if rows % batch if batch else rows:
            raise ValueError(
                f"hidden has {rows} rows, and the memory {batch}: give K rows for each row of the "
                "memory."
            )
        *leading, size = hidden.shape
        # All positions of all rows that attend to the same memory, together.
        grouped = hidden.reshape(batch, math.prod(leading) // max(batch, 1), size)
        weights = masked_softmax(self._scores(params, grouped, prepared.keys), prepared.mask)
        context = products.einsum("bts,bsm->btm", weights, prepared.memory)
        inputs = jnp.concatenate([context, grouped], axis=-1)
        flat = inputs.reshape(inputs.shape[0] * inputs.shape[1], inputs.shape[2])
        states = jnp.tanh(products.affine(flat, params["state"], params["state_bias"]))
        return (
            states.reshape(*leading, states.shape[-1]),
            weights.reshape(*leading, weights.shape[-1]),
        )


def _weights(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    return uniform(key, shape, shape[0] ** -0.5)


# ---- bahdanau's additive attention: v . tanh(W h + U m) (Bahdanau, Cho and Bengio 2015, A.1.2)


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
        queries_key, keys_key, vector_key = jax.random.split(key, 3)
        return {
            "queries": _weights(queries_key, (hidden_size, units)),
            "keys": _weights(keys_key, (memory_size, units)),
            "keys_bias": jnp.zeros(units),
            "vector": _weights(vector_key, (units, 1))[:, 0],
        }

    def _keys(self, params: Params, memory: jax.Array) -> jax.Array:
        return products.affine(memory, params["keys"], params["keys_bias"])

    def _scores(self, params: Params, hidden: jax.Array, keys: jax.Array) -> jax.Array:
        return additive_scores(products.matmul(hidden, params["queries"]), keys, params["vector"])


# ---------- luong's general attention: h . W m (Luong, Pham and Manning 2015, section 3.1)


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
        return {"keys": _weights(key, (memory_size, hidden_size))}

    def _keys(self, params: Params, memory: jax.Array) -> jax.Array:
        return products.matmul(memory, params["keys"])

    def _scores(self, params: Params, hidden: jax.Array, keys: jax.Array) -> jax.Array:
        return products.einsum("btd,bsd->bts", hidden, keys)
