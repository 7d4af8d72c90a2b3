"""The contract of attention, and what all of it shares: weights, context, attentional state."""

import abc
import dataclasses
import math
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from zoo.arrays.types import Params
from zoo.errors import check_least
from zoo.networks import attention_weights


class PreparedMemory(NamedTuple):
    """The arrays of a memory that attention computes once, for all steps of a decoder.

    Attributes:
      memory: [B, S, M], 0 where the mask hides it.
      keys: [B, S, *], what hidden states are compared with.
      mask: bool [B, S].
    """

    memory: jax.Array
    keys: jax.Array
    mask: jax.Array


class Attention(abc.ABC):
    """The contract of attention. Subclasses are frozen dataclasses, and write the scores.

        init(key, hidden_size, memory_size) -> params
        output_size(hidden_size) -> R
        apply(params, hidden [B, T, D], memory [B, S, M], mask [B, S])
            -> (states [B, T, R], weights [B, T, S])
        prepared(params, memory, mask) -> what `apply` may be given, for many calls

    The states are Luong's attentional ones, tanh(W_c (c : h) + b). Hidden states may have more rows
    than the memory, K for each of its own, side by side: [B K, T, D] or [B K, D], as the hypotheses
    of sentences are. The memory is not repeated for them. Of no rows or no positions the results
    are empty; where the mask hides the whole memory, the weights and the context are 0.
    """

    # Subclasses are dataclasses.
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

    if TYPE_CHECKING:  # a field of all: R, of the attentional states; 0 for that of hidden states
        size: int

    def __post_init__(self):
        check_least(self, size=0)

    def output_size(self, hidden_size: int) -> int:
        """R, the size of the states that the head sees."""
        return self.size or hidden_size

    def init(self, key: jax.Array, hidden_size: int, memory_size: int) -> Params:
        """{"state": [M + D, R], "state_bias": [R]} and the parameters of the scores.

        Weights start uniform in +-1/sqrt(inputs).
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
        """The parameters that keys and scores are made with."""

    @abc.abstractmethod
    def _keys(self, params: Params, memory: jax.Array) -> jax.Array:
        """[B, S, *], of the memory alone."""

    @abc.abstractmethod
    def _scores(self, params: Params, hidden: jax.Array, keys: jax.Array) -> jax.Array:
        """[B, T, S] of hidden states [B, T, D] and keys."""

    def prepared(self, params: Params, memory: jax.Array, mask: jax.Array) -> PreparedMemory:
        """The arrays that `apply` needs of a memory [B, S, M] and its mask, bool [B, S]."""
        memory = jnp.where(mask[:, :, None], memory, 0)  # whatever padding holds, even nan
        return PreparedMemory(memory, self._keys(params, memory), mask)

    def apply(
        self,
        params: Params,
        hidden: jax.Array,
        memory: jax.Array,
        mask: jax.Array,
        *,
        prepared: PreparedMemory | None = None,
    ) -> tuple[jax.Array, jax.Array]:
        """(states [..., R], weights [..., S]) of hidden states [..., D].

        Args:
          hidden: [B, T, D]; or [B K, T, D] or [B K, D], K rows for each of the memory.
          memory: [B, S, M].
          mask: bool [B, S], True where there is memory.
          prepared: of `prepared`, instead of the memory and the mask, which are not looked at then.

        Returns:
          The weights sum to 1 over the memory, or to 0 where there is none.

        Raises:
          ValueError: the rows of hidden are not K for each row of the memory.
        """
        if prepared is None:
            prepared = self.prepared(params, memory, mask)
        rows, batch = hidden.shape[0], prepared.memory.shape[0]
        if rows % batch if batch else rows:
            raise ValueError(
                f"hidden has {rows} rows, and the memory {batch}: give K rows for each of them."
            )
        *leading, size = hidden.shape
        # All positions of all rows that look at one memory, together.
        grouped = hidden.reshape(batch, math.prod(leading) // max(batch, 1), size)
        scores = self._scores(params, grouped, prepared.keys)
        weights = attention_weights.masked_softmax(scores, prepared.mask)
        context = attention_weights.contexts(weights, prepared.memory)
        states = attention_weights.attentional_states(
            grouped, context, params["state"], params["state_bias"]
        )
        return (
            states.reshape(*leading, states.shape[-1]),
            weights.reshape(*leading, weights.shape[-1]),
        )


def uniform(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Weights [inputs, outputs], uniform in +-1/sqrt(inputs)."""
    scale = shape[0] ** -0.5
    return jax.random.uniform(key, shape, minval=-scale, maxval=scale)
