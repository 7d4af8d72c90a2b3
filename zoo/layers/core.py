"""The base class of cores, which turn vectors into hidden states along time."""

import abc
import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import jax
import jax.numpy as jnp

from zoo.base.arrays import products, row_blocks, sharded_functions
from zoo.base.arrays.precision import accumulator
from zoo.base.arrays.random_keys import Keys, fold_in_rows, uniform
from zoo.base.arrays.types import Carry, Key, Params, Shape
from zoo.base.component_registry import Component
from zoo.errors import UserError, check_least
from zoo.layers import dropout
from zoo.lexicon import Lexicon


class Core(Component):
    """Base class of cores. Subclasses are frozen dataclasses; methods are pure functions.

    Every core writes `init`, `initial_carry`, and `apply` or `_apply`.

    Arguments of methods:
      key: a key of `jax.random`; of `apply`, it turns dropout on, and may be `Keys` of
        zoo.base.arrays.random_keys, so that a row's masks do not depend on the other rows.
      input_size: E.
      params: the parameters of `init`.
      inputs: x, [B, T, E].
      carry: the result of `initial_carry`, or the carry of the call before, leaves [B, ...].
      reset: bool [B, T], positions before which the carry is zeroed; None for none.
    """

    if TYPE_CHECKING:  # a field of most, without a value here

        @property
        def size(self) -> int: ...

    # Whether a hidden state depends only on its own and earlier positions. Other cores may be
    # encoders, but not the core of a language model.
    causal: ClassVar[bool] = True

    # See Head.ordered_by_frequency: a core sees vectors instead of words.
    ordered_by_frequency: bool = False

    def for_lexicon(self, params: Params, lexicon: Lexicon, new_lexicon: Lexicon) -> Params:
        """Returns the parameters for another lexicon, unchanged: none belongs to a word."""
        return params

    @property
    def output_size(self) -> int:
        """D, the size of a hidden state: `size`, unless a core overrides it."""
        return self.size

    def init(self, key: jax.Array, input_size: int) -> Any:
        """Draws the parameters at the start of training."""
        raise self._unwritten("init")

    def initial_carry(self, batch: int) -> Carry:
        """Returns the carry before any input, leaves [batch, ...]."""
        raise self._unwritten("initial_carry")

    def apply(
        self,
        params: Any,
        inputs: jax.Array,
        carry: Carry,
        *,
        reset: jax.Array | None = None,
        key: Key | None = None,
    ) -> tuple[jax.Array, Carry]:
        """Computes the hidden states along the positions, and the carry for the next call.

        Without batch rows or positions, the hidden states are empty and the carry is returned
        unchanged. `_apply` is called with at least one of each, and with the `Keys` of a batch.

        Returns:
          (hidden [B, T, output_size], carry).

        Raises:
          TypeError: reset is not bool [B, T].
          UserError: `_apply` returns hidden states of another shape.
        """
        batch, time, _ = inputs.shape
        if not batch * time:
            return jnp.zeros((batch, time, self.output_size), accumulator(inputs)), carry
        if reset is not None and (reset.dtype != bool or reset.shape != (batch, time)):
            raise TypeError(
                f"{type(self).__name__}.apply: reset is {reset.dtype} of the shape {reset.shape}: "
                f"give bool of the shape {(batch, time)}, True where a text begins"
            )
        batch_keys = None if key is None else Keys.from_key(key, batch)
        # States are at least float32, whatever the type of the weights; the carry keeps its type.
        inputs = inputs.astype(accumulator(inputs))
        cast_carry = jax.tree.map(lambda x: _as_type(x, inputs.dtype), carry)
        hidden, last = self._apply(params, inputs, cast_carry, reset, batch_keys)
        if hidden.shape != (batch, time, self.output_size):
            raise UserError(
                f"{type(self).__name__}._apply returns hidden states of the shape {hidden.shape}: "
                f"return {(batch, time, self.output_size)}, the last being its output_size"
            )
        return hidden, jax.tree.map(lambda array, like: _as_type(array, like.dtype), last, carry)

    def _apply(self, params, inputs, carry, reset, key):
        raise self._unwritten("_apply")

    def decoder_carry(self, carry: Carry) -> Carry:
        """Converts an encoder's carry to a decoder's; unchanged unless a core overrides it."""
        return carry


def _as_type(array, dtype):
    return array.astype(dtype) if jnp.issubdtype(array.dtype, jnp.floating) else array


# ---- rematerialisation along time: states are recomputed in the backward pass instead of kept
# Chen et al., "Training deep nets with sublinear memory cost" (2016), along the positions of a
# window. The inputs of each chunk and the state before it are kept, and the backward pass
# recomputes the rest, one chunk at a time.


def in_chunks(function: Callable, length: int, weights: Any, arrays: Any, state: Any):
    """Applies function(weights, arrays, state) -> (outputs [T, ...], state), whose positions depend
    on earlier ones only through the state, chunk by chunk with rematerialisation."""
    time = jax.tree.leaves(arrays)[0].shape[0]
    if not row_blocks.is_known(time):  # exported for any number: keeps nothing anyway
        return function(weights, arrays, state)
    if length >= time:
        return jax.checkpoint(function)(weights, arrays, state)
    weights, arrays, state = sharded_functions.vary_together((weights, arrays, state))
    chunks, remainder = divmod(time, length)
    end = chunks * length
    in_order = jax.tree.map(lambda x: x[:end].reshape(chunks, length, *x.shape[1:]), arrays)

    @jax.checkpoint
    def apply_chunk(weights, chunk, state):
        outputs, state = function(weights, chunk, state)
        return state, outputs

    state, outputs = jax.lax.scan(lambda s, chunk: apply_chunk(weights, chunk, s), state, in_order)
    outputs = jax.tree.map(lambda x: x.reshape(end, *x.shape[2:]), outputs)
    if not remainder:
        return outputs, state
    state, last_outputs = apply_chunk(weights, jax.tree.map(lambda x: x[end:], arrays), state)
    return jax.tree.map(lambda a, b: jnp.concatenate([a, b]), outputs, last_outputs), state


# ------------------- stacked recurrent layers, the base class of `LSTM`, `GRU` and `Elman`
# With x_t the inputs and h^n_t the state of layer n of N,
#
#     without skip:  layer n reads h^(n-1)_t (layer 1: x_t);   the output is h^N_t
#     with skip:     layer n reads (x_t : h^(n-1)_t);          the output is (h^1_t : ... : h^N_t)
#
# With skip, as in Graves (2013), section 2, the input goes to every layer, and every layer's states
# to the output, which has N times as many numbers.


@dataclasses.dataclass(frozen=True)
class Stacked(Core, abc.ABC):
    """Base class of cores of stacked layers; subclasses define the recurrence of a layer.

    The products x_t W + b of all positions are one matrix product before the recurrence. Weights
    start uniform in +-1/sqrt(D).

    Attributes:
      size: D, the number of cells of each layer.
      layers: the number of layers.
      last_size: D of the last layer, such as the size of the words' vectors for a tied head; 0
        for `size`.
      dropout: the dropout rate of every layer's output.
      last_dropout: the dropout rate of the last layer's output; None for `dropout`.
      input_dropout: the dropout rate of the inputs.
      recurrent_dropout: the dropout rate of the entries of U; all positions and batch rows of a
        call share the mask.
      variational: whether all positions of a call share one mask, instead of one for each position.
      skip: whether the inputs go to every layer, and every layer's hidden states to the output,
        side by side: layers * D numbers (Graves 2013, section 2).
      rematerialise: the number of positions in a chunk. The inputs of each chunk and the state
        before it are kept, and the rest is recomputed in the backward pass; 0 keeps everything.
    """

    size: int = 256
    layers: int = 1
    last_size: int = 0
    dropout: float = 0.0
    last_dropout: float | None = None
    input_dropout: float = 0.0
    recurrent_dropout: float = 0.0
    variational: bool = False
    skip: bool = False
    rematerialise: int = 0

    # The number of columns of W and U, in units of D.
    blocks: ClassVar[int]

    def __post_init__(self):
        check_least(self, size=1, layers=1, last_size=0, rematerialise=0)
        rates = ["dropout", "input_dropout", "recurrent_dropout"]
        if self.last_dropout is not None:
            rates.append("last_dropout")
        dropout.check_rates(self, *rates)

    def cells(self, layer: int) -> int:
        """Returns D of a layer: `size`, or `last_size` for the last layer if it is given."""
        return self.last_size or self.size if layer == self.layers - 1 else self.size

    def state_size(self, layer: int) -> int:
        return self.cells(layer)

    @property
    def output_size(self) -> int:
        """R of the last layer, or the sum of all layers' R with `skip`."""
        return sum(map(self.state_size, range(0 if self.skip else self.layers - 1, self.layers)))

    def _shapes_and_biases(self, layer: int, inputs: int) -> tuple[dict[str, Shape], Params]:
        """Returns ({name: shape} of a layer's matrices, which start uniform in +-1/sqrt(D), {name:
        start values} of its biases)."""
        columns = self.blocks * self.cells(layer)
        shapes: dict[str, Shape] = {"input": (inputs, columns)}
        shapes["recurrent"] = self.state_size(layer), columns
        return shapes, {"bias": jnp.zeros(columns)}

    @abc.abstractmethod
    def _recurrence(self, weights, projections, state, keep):
        """Computes a layer's hidden states and its carry."""

    def init(self, key: jax.Array, input_size: int) -> Any:
        """Draws a tuple of {"input", "recurrent", "bias", ...}, one for each layer."""
        params = []
        for layer in range(self.layers):
            scale, inputs = self.cells(layer) ** -0.5, input_size
            if layer:
                inputs = self.state_size(layer - 1) + (input_size if self.skip else 0)
            shapes, biases = self._shapes_and_biases(layer, inputs)
            weight_keys = jax.random.split(jax.random.fold_in(key, layer), len(shapes))
            weights = {
                name: uniform(k, shape, scale)
                for k, (name, shape) in zip(weight_keys, shapes.items(), strict=True)
            }
            params.append({**weights, **biases})
        return tuple(params)

    def initial_carry(self, batch: int) -> Carry:
        # No array occurs twice: the carry of a training step is donated.
        return tuple(jnp.zeros((batch, self.cells(layer))) for layer in range(self.layers))

    def _apply(self, params, inputs, carry, reset, key):
        """Computes (hidden [B, T, R], carry) layer by layer, each over all positions."""
        batch, time, _ = inputs.shape
        dtype = inputs.dtype
        keep = jnp.ones((time, batch, 1), dtype)
        if reset is not None:
            keep = 1 - reset.T[:, :, None].astype(dtype)
        inputs = jnp.swapaxes(inputs, 0, 1)
        if key is not None:
            inputs = self._drop(inputs, self.input_dropout, key, 0)
        outputs: list[jax.Array] = []
        new_carry = []
        for layer, (weights, state) in enumerate(zip(params, carry, strict=True)):
            x = outputs[-1] if outputs else inputs
            if outputs and self.skip:
                x = jnp.concatenate([inputs, x], axis=-1)
            masked = {**weights, "mask": None}
            if key is not None:
                masked["mask"] = self._weight_mask(weights["recurrent"], key, layer)
            arrays = masked, (x, keep), state
            if self.rematerialise:
                hidden, last = in_chunks(self._layer, self.rematerialise, *arrays)
            else:
                hidden, last = self._layer(*arrays)
            last_layer = layer == self.layers - 1 and self.last_dropout is not None
            rate = self.last_dropout if last_layer else self.dropout
            outputs.append(hidden if key is None else self._drop(hidden, rate, key, 1 + layer))
            new_carry.append(last)
        hidden = jnp.concatenate(outputs, axis=-1) if self.skip else outputs[-1]
        return jnp.swapaxes(hidden, 0, 1), tuple(new_carry)

    def _layer(self, weights, inputs, state):
        """Computes (hidden [n, B, R], the layer's carry) from inputs (x [n, B, *], keep)."""
        x, keep = inputs
        projections = products.affine(x, weights["input"], weights["bias"])
        arrays = weights, projections, state, keep
        return self._recurrence(*sharded_functions.vary_together(arrays))

    def _drop(self, x, rate, key, use):
        """Applies dropout to x [T, B, ...]."""
        if not rate:
            return x
        return dropout.drop(x, rate, fold_in_rows(key.rows, use), self.variational)

    def _weight_mask(self, recurrent, key, layer):
        """Draws the mask of U; None for a rate of 0."""
        rate = self.recurrent_dropout
        if not rate:
            return None
        # Noise words use the batch's key, too: the constant gives another stream.
        layer_key = jax.random.fold_in(key.batch, 0x75736561 + layer)
        return dropout.weight_mask(recurrent, rate, layer_key)
