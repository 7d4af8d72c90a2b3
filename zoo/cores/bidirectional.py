"""The bidirectional recurrent network (Schuster and Paliwal 1997), for encoders.

One core reads each text of a row from its beginning, and another of the same kind, with parameters
of its own, reads it from its end:

    h_t = (forward state after x_a ... x_t : backward state after x_(b-1) ... x_t)

for the text at positions a to b - 1, which a reset begins and the next reset, or the end of the
row, ends. So neither core sees anything but the row's own words: positions before the first reset,
such as padding on the left, are a text by themselves.
"""

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from zoo.arrays import keys
from zoo.arrays.types import Carry
from zoo.cores.core import Core
from zoo.cores.lstm import LSTM
from zoo.errors import check_choices


@dataclasses.dataclass(frozen=True)
class Bidirectional(Core):
    """A core along each text and another one back: 2 D numbers a position.

    The two meet in the output alone; layers of one do not see those of the other. As a hidden state
    depends on what comes after it, a language model refuses this core.

    The parameters are {"forward", "backward"}, those of the core each; the carry is a pair of the
    core's, (forward, backward). The forward one goes on after the row's last position; the backward
    one has read the row's last text to its beginning. Of the carries that a call begins with, the
    backward core takes its own at the end of the row's first text.

    Attributes:
      core: what reads in either direction.
      merge: how `decoder_carry` makes one carry of two: "sum", for a decoder's layers of the core's
        size, or "concatenate", for layers of twice the size.

    Example:
      >>> core = cores.Bidirectional(cores.GRU(size=3, layers=2))
      >>> memory, carry = core.apply(core.init(key, 4), inputs, core.initial_carry(2))
      >>> memory.shape, [state.shape for state in core.decoder_carry(carry)]
      ((2, 5, 6), [(2, 3), (2, 3)])
    """

    core: Core = LSTM()
    merge: str = "sum"

    causal: ClassVar[bool] = False

    def __post_init__(self):
        check_choices(self, merge=("sum", "concatenate"))

    @property
    def size(self) -> int:
        """The size D of a hidden state of either direction."""
        return self.core.size

    @property
    def output_size(self) -> int:
        """The size 2 D of both hidden states together."""
        return 2 * self.core.output_size

    def init(self, key: jax.Array, input_size: int) -> Any:
        """{"forward", "backward"}: the parameters of the core in either direction."""
        forward, backward = jax.random.split(key)
        return {
            "forward": self.core.init(forward, input_size),
            "backward": self.core.init(backward, input_size),
        }

    def initial_carry(self, batch: int) -> Carry:
        """The carries of the core before any input, forward and backward."""
        return self.core.initial_carry(batch), self.core.initial_carry(batch)

    def decoder_carry(self, carry: Carry) -> Carry:
        """The sum of the two carries, or their numbers side by side, as `merge` says."""
        forward, backward = (self.core.decoder_carry(one) for one in carry)
        if self.merge == "sum":
            return jax.tree.map(jnp.add, forward, backward)
        return jax.tree.map(lambda *two: jnp.concatenate(two, axis=-1), forward, backward)

    def _apply(self, params, inputs, carry, reset, key):
        if key is None:
            forward_key = backward_key = None
        else:
            forward_key, backward_key = (keys.fold_in(key, use) for use in range(2))
        forward_carry, backward_carry = carry
        forward, forward_carry = self.core.apply(
            params["forward"], inputs, forward_carry, reset=reset, key=forward_key
        )
        order = None if reset is None else backward_order(reset)
        # Resets stay where they are: a text, read from its end, begins at the same position.
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
    """int32 [B, T]: position a + b - 1 - t for each t of a text at a to b - 1.

    Args:
      reset: bool [B, T], where texts begin; another one may begin at position 0 without.
    """
    time = reset.shape[1]
    positions = jnp.arange(time, dtype=jnp.int32)[None]
    starts = jax.lax.cummax(jnp.where(reset, positions, 0), axis=1)
    # The end of a text is where the next one begins.
    begins = jnp.where(reset, positions, time)[:, 1:]
    begins = jnp.pad(begins, ((0, 0), (0, 1)), constant_values=time)
    ends = jax.lax.cummin(begins, axis=1, reverse=True)
    return starts + ends - 1 - positions


def _reordered(x, order):
    """x [B, T, *] in an order of positions that is its own inverse; back to front for None."""
    return x[:, ::-1] if order is None else _permuted(x, order)


@jax.custom_vjp
def _permuted(x, order):
    return jnp.take_along_axis(x, order[:, :, None], axis=1)


# The gradient is taken by the same order, where autodiff would add it up position by position.
_permuted.defvjp(
    lambda x, order: (_permuted(x, order), order),
    lambda order, cotangent: (_permuted(cotangent, order), None),
)
