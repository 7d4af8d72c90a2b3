"""The contract of attention, and its shared part: weights, context, attentional state."""

import abc
import dataclasses
import math
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from zoo.arrays import products
from zoo.arrays.types import Params
from zoo.errors import check_least
from zoo.networks import attention_functions


class PreparedMemory(NamedTuple):
    """The arrays of a memory that attention computes once, for all steps of a decoder."""

    memory: jax.Array  # [B, S, M], 0 where the mask hides it
    keys: jax.Array  # [B, S, *], with which hidden states are compared
    mask: jax.Array  # bool [B, S], True where there is memory


class Attention(abc.ABC):
    """The contract of attention. Subclasses are frozen dataclasses that define the scores.

        init(key, hidden_size, memory_size) -> params
        output_size(hidden_size) -> R
        apply(params, hidden [B, T, D], memory [B, S, M], mask [B, S])
            -> (states [B, T, R], weights [B, T, S])
        prepared(params, memory, mask) -> PreparedMemory, for many calls of `apply`

    The states are Luong's attentional states, tanh(W_c (c : h) + b). Hidden states may have K
    adjacent rows for each row of the memory, [B K, T, D] or [B K, D], such as the hypotheses of a
    beam. The memory is not repeated for them. Without rows or positions the results are empty;
    where the mask hides the whole memory, the weights and the context are 0.
    """

    # Subclasses are dataclasses.
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

    if TYPE_CHECKING:  # a field of all: R, the size of the attentional states; 0 for D
        size: int

    def __post_init__(self):
        check_least(self, size=0)

    def output_size(self, hidden_size: int) -> int:
        """Returns R, the size of the states that the head receives.

        Args:
          hidden_size: D.
        """
        return self.size or hidden_size

    def init(self, key: jax.Array, hidden_size: int, memory_size: int) -> Params:
        """Initialises {"state": [M + D, R], "state_bias": [R]} and the parameters of the scores.

        Weights are uniform in +-1/sqrt(inputs), biases 0.

        Args:
          key: random key.
          hidden_size: D.
          memory_size: M.
        """
        of_state, of_scores = jax.random.split(key)
        size = self.output_size(hidden_size)
        return {
            "state": uniform(of_state, (memory_size + hidden_size, size)),
            "state_bias": jnp.zeros(size),
            **self._init_scores(of_scores, hidden_size, memory_size),
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
        """Computes the arrays of a memory that `apply` needs, for many calls.

        Args:
          params: the parameters of `init`.
          memory: [B, S, M].
          mask: bool [B, S], True where there is memory.
        """
        memory = jnp.where(mask[:, :, None], memory, 0)  # whatever padding holds, even nan
        keys = self._keys(params, memory)
        memory, keys = (products.rounded_as(x, params["state"]) for x in (memory, keys))
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

        Args:
          params: the parameters of `init`.
          hidden: [B, T, D]; or [B K, T, D] or [B K, D], K rows for each row of the memory.
          memory: [B, S, M].
          mask: bool [B, S], True where there is memory.
          prepared: the result of `prepared`; memory and mask are then ignored.

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
        scores = self._scores(params, grouped, prepared.keys)
        weights = attention_functions.masked_softmax(scores, prepared.mask)
        context = attention_functions.contexts(weights, prepared.memory)
        states = attention_functions.attentional_states(
            grouped, context, params["state"], params["state_bias"]
        )
        return (
            states.reshape(*leading, states.shape[-1]),
            weights.reshape(*leading, weights.shape[-1]),
        )


def uniform(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Draws weights uniform in +-1/sqrt(inputs)."""
    scale = shape[0] ** -0.5
    return jax.random.uniform(key, shape, minval=-scale, maxval=scale)
