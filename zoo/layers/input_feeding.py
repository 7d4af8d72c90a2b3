"""Input feeding: the attentional state of a position is an input of the decoder at the next.

Luong, Pham and Manning, "Effective approaches to attention-based neural machine translation"
(2015), section 3.3. With the core's inputs x_t and the attentional states a_t of its hidden states,

    h_t = core((x_t : a_(t-1)), h_(t-1)),    a_t = attention(h_t),    a_0 = 0
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from zoo.base.arrays import sharded_functions
from zoo.base.arrays.random_keys import fold_in_rows
from zoo.base.arrays.types import Carry
from zoo.layers.attention import Attention
from zoo.layers.core import Core


@dataclasses.dataclass(frozen=True, eq=False)
class InputFed(Core):
    """A core with input feeding, whose outputs are (h_t : a_t) and whose carry is a pair of the
    core's and the last attentional states [B, R]; its parameters are the core's."""

    core: Core
    attention: Attention
    # The attention's parameters, and a `PreparedMemory`, where there are sources.
    attention_params: Any = None
    memory: Any = None

    @property
    def _fed_size(self):
        return self.attention.output_size(self.core.output_size)

    @property
    def output_size(self) -> int:
        return self.core.output_size + self._fed_size

    def init(self, key: jax.Array, input_size: int) -> Any:
        return self.core.init(key, input_size + self._fed_size)

    def initial_carry(self, batch: int) -> Carry:
        return self.core.initial_carry(batch), jnp.zeros((batch, self._fed_size))

    def _apply(self, params, inputs, carry, reset, key):
        """Computes (outputs, carry) position by position; a variational core keeps its masks."""
        varying = not getattr(self.core, "variational", False)
        arrays = params, self.attention_params, self.memory, jnp.swapaxes(inputs, 0, 1), carry
        params, attention_params, memory, inputs, carry = sharded_functions.vary_together(arrays)

        def step(carry, position):
            (core_carry, states), (x, number) = carry, position
            step_key = key
            if key is not None and varying:
                step_key = key._replace(rows=fold_in_rows(key.rows, number))
            fed = jnp.concatenate([x, states], axis=-1)[:, None]
            hidden, core_carry = self.core.apply(params, fed, core_carry, key=step_key)
            states, _ = self.attention.apply(
                attention_params, hidden, memory.memory, memory.mask, prepared=memory
            )
            return (core_carry, states[:, 0]), jnp.concatenate([hidden, states], axis=-1)[:, 0]

        carry, outputs = jax.lax.scan(step, carry, (inputs, jnp.arange(inputs.shape[0])))
        return jnp.swapaxes(outputs, 0, 1), carry
