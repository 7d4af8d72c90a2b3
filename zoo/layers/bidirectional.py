"""The bidirectional recurrent network (Schuster and Paliwal 1997), for encoders.

A forward core reads each text of a row from its beginning. A backward core of the same kind, with
parameters of its own, reads it from its end:

    h_t = (forward state after x_a ... x_t : backward state after x_(b-1) ... x_t)

The text at positions a to b - 1 begins at a reset and ends at the next reset or at the end of the
row. A hidden state only depends on the words of its text. Positions before the first reset, such as
padding on the left, are a text of their own.
"""

import dataclasses
import itertools
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from zoo.base.arrays.types import Carry
from zoo.errors import check_choices, check_least
from zoo.layers.core import Core
from zoo.layers.lstm import LSTM


@dataclasses.dataclass(frozen=True)
class Bidirectional(Core):
    """A forward and a backward core over each text: hidden states of 2 D numbers.

    The two cores are joined at their outputs only, not between their layers. A hidden state depends
    on later words, so that a language model refuses this core.

    The parameters are {"forward": the core's parameters, "backward": the core's parameters}, and
    the carry is a pair of the core's carries, (forward, backward); of several layers, both are
    tuples. The forward carry is the state after the row's last position. The backward carry is the
    state after the row's last text has been read to its beginning; a call's initial backward carry
    is used at the end of the row's first text.

    Attributes:
      core: the core of either direction.
      merge: how `decoder_carry` joins the two carries: "sum", for a decoder whose layers have the
        core's size, "concatenate", for a decoder with layers of twice the size, or "forward", which
        leaves the backward carry out.
      layers: the number of such pairs of cores, each of which reads the hidden states of both
        directions of the pair below, as PyTorch's bidirectional layers do.

    Example:
      >>> core = cores.Bidirectional(cores.GRU(size=3, layers=2))
      >>> memory, carry = core.apply(core.init(key, 4), inputs, core.initial_carry(2))
      >>> memory.shape, [state.shape for state in core.decoder_carry(carry)]
      ((2, 5, 6), [(2, 3), (2, 3)])
    """

    core: Core = LSTM()
    merge: str = "sum"
    layers: int = 1

    causal: ClassVar[bool] = False

    def __post_init__(self):
        check_choices(self, merge=("sum", "concatenate", "forward"))
        check_least(self, layers=1)

    @property
    def size(self) -> int:
        """D, the size of a hidden state of either direction."""
        return self.core.size

    @property
    def output_size(self) -> int:
        """2 D, the size of both hidden states together."""
        return 2 * self.core.output_size

    @property
    def _layer(self) -> "Bidirectional":
        return dataclasses.replace(self, layers=1)

    def init(self, key: jax.Array, input_size: int) -> Any:
        if self.layers > 1:
            sizes = [input_size, *(self.layers - 1) * [self.output_size]]
            keys = jax.random.split(key, self.layers)
            return tuple(map(self._layer.init, keys, sizes))
        forward, backward = jax.random.split(key)
        return {
            "forward": self.core.init(forward, input_size),
            "backward": self.core.init(backward, input_size),
        }

    def initial_carry(self, batch: int) -> Carry:
        if self.layers > 1:
            return tuple(self._layer.initial_carry(batch) for _ in range(self.layers))
        return self.core.initial_carry(batch), self.core.initial_carry(batch)

    def decoder_carry(self, carry: Carry) -> Carry:
        """Returns the two carries as `merge` joins them; of several layers, one after another."""
        if self.layers > 1:
            return tuple(itertools.chain.from_iterable(map(self._layer.decoder_carry, carry)))
        forward, backward = (self.core.decoder_carry(core_carry) for core_carry in carry)
        if self.merge == "forward":
            return forward
        if self.merge == "sum":
            return jax.tree.map(jnp.add, forward, backward)
        return jax.tree.map(lambda *carries: jnp.concatenate(carries, axis=-1), forward, backward)

    def _apply(self, params, inputs, carry, reset, key):
        """Computes (hidden, carry) of the core and, over reversed texts, of the backward core."""
        if self.layers > 1:
            carries = []
            for layer, (weights, layer_carry) in enumerate(zip(params, carry, strict=True)):
                layer_key = None if key is None else key.fold_in(layer)
                inputs, last = self._layer.apply(
                    weights, inputs, layer_carry, reset=reset, key=layer_key
                )
                carries.append(last)
            return inputs, tuple(carries)
        if key is None:
            forward_key = backward_key = None
        else:
            forward_key, backward_key = (key.fold_in(use) for use in range(2))
        forward_carry, backward_carry = carry
        forward, forward_carry = self.core.apply(
            params["forward"], inputs, forward_carry, reset=reset, key=forward_key
        )
        order = None if reset is None else backward_order(reset)
        # Resets stay where they are: a reversed text begins at the same position.
        backward, backward_carry = self.core.apply(
            params["backward"],
            _reordered(inputs, order),
            backward_carry,
            reset=reset,
            key=backward_key,
        )
        hidden = jnp.concatenate([forward, _reordered(backward, order)], axis=-1)
        return hidden, (forward_carry, backward_carry)


def backward_order(reset: jax.Array) -> jax.Array:
    """Returns the order of positions that reverses each text of a row."""
    time = reset.shape[1]
    positions = jnp.arange(time, dtype=jnp.int32)[None]
    starts = jax.lax.cummax(jnp.where(reset, positions, 0), axis=1)
    # The end of a text is where the next one begins.
    begins = jnp.where(reset, positions, time)[:, 1:]
    begins = jnp.pad(begins, ((0, 0), (0, 1)), constant_values=time)
    return starts + jax.lax.cummin(begins, axis=1, reverse=True) - 1 - positions


def _reordered(x, order):
    """Reorders positions of x [B, T, *] by an order that is its own inverse; None reverses all."""
    return x[:, ::-1] if order is None else _permuted(x, order)


@jax.custom_vjp
def _permuted(x, order):
    return jnp.take_along_axis(x, order[:, :, None], axis=1)


# The gradient is gathered by the same order; automatic differentiation would scatter and add it.
_permuted.defvjp(
    lambda x, order: (_permuted(x, order), order),
    lambda order, cotangent: (_permuted(cotangent, order), None),
)
