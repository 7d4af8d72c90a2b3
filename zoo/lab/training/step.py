"""One training step, as a pure function.

It runs on one device or, under a map over devices with the named axis, on several: each has its
share of the batch rows, losses and gradients are summed over devices, and the only division is by
the number of tokens of the whole batch, so that the number of devices changes nothing but rounding.
The loss of a batch with few tokens, such as the last of an epoch of whole sentences, is divided by
the number of tokens of a usual batch: two tokens must not move the parameters as far as a full
batch does.
"""

import functools
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from zoo.base.arrays.random_keys import Keys
from zoo.experiment import Training
from zoo.lab.training import average
from zoo.lab.training.devices import TrainState, sum_over_devices
from zoo.lab.training.updates import Updates


class Batch(NamedTuple):
    """A batch as a training step sees it: all that the step knows of the data."""

    inputs: Any  # a pytree of arrays [B, ...], the arguments of the task's loss
    # float32 [B, ...], weights of the terms of the loss; the loss is divided by their sum
    weights: Any
    batch_rows: Any  # int32 [B], the number of each row, from which its random keys are made


class StepMetrics(NamedTuple):
    """The figures of a training step."""

    loss: jax.Array  # the sum over tokens, without penalties, nats
    tokens: jax.Array
    gradient_norm: jax.Array
    penalty: jax.Array


def batch_shapes(batch: Batch) -> Hashable:
    """Returns the shapes of a batch's arrays, for each of which a step is compiled."""
    return tuple(leaf.shape for leaf in jax.tree.leaves(batch))


def settings(recipe: Training, optimizer: Updates) -> dict[str, Any]:
    """Returns the arguments of `train_step` that a recipe sets."""
    names = "frozen", "mean_over", "accumulate", "compute"
    return {"optimizer": optimizer, **{name: getattr(recipe, name) for name in names}}


def train_step(
    state: TrainState,
    tables: Any,
    batch: Batch,
    key: jax.Array,
    *,
    loss: Callable,
    optimizer: Updates,
    frozen: tuple[str, ...] = (),
    usual_weight: float = 1.0,
    usual_length: int = 0,
    mean_over: str = "tokens",
    accumulate: int = 1,
    compute: str = "float32",
    axis: str | None = None,
) -> tuple[TrainState, StepMetrics]:
    """Updates the parameters once, by the gradient of the mean loss of a batch.

    On several devices each computes its share of the mean, over its batch rows: the shares add up.
    """
    rate_factor = batch.weights.shape[1] / usual_length if usual_length else 1.0
    weight = sum_over_devices(batch.weights.sum(), axis)
    count = weight
    if mean_over == "pairs":
        is_pair = (batch.weights != 0).any(axis=tuple(range(1, batch.weights.ndim)))
        count = sum_over_devices(is_pair.astype(weight.dtype).sum(), axis)
    divisor = jnp.maximum(count, usual_weight * rate_factor)
    # Normalised before the loss, not after: the cotangent of the sum is then the constant 1.
    weights = batch.weights / divisor
    step_key = jax.random.fold_in(jax.random.wrap_key_data(key), state.step)
    rows = jax.vmap(lambda batch_row: jax.random.fold_in(step_key, batch_row))(batch.batch_rows)
    trained, fixed = average.split(state.params, frozen)

    def objective(trained, batch_rows):
        inputs, weights, carry, rows = batch_rows
        params = round_matrices({**trained, **fixed}, compute)
        keys = Keys(step_key, rows)
        total, penalty, carry = loss(params, tables, inputs, weights, carry, keys)
        return total, (penalty, carry)

    batch_rows = batch.inputs, weights, state.carry, rows
    value_and_gradients = functools.partial(optimizer.value_and_gradients(objective), trained)
    (total, (penalty, carry)), gradients = (
        value_and_gradients(batch_rows)
        if accumulate == 1
        else sum_pieces(value_and_gradients, batch_rows, accumulate)
    )
    total, penalty = sum_over_devices((total, penalty), axis)
    gradients = optimizer.sum_over_devices(gradients, trained, axis)
    trained, optimizer_state, norm = optimizer.update(
        trained, state.optimizer_state, state.step, gradients, rate_factor
    )
    new_state = TrainState({**trained, **fixed}, optimizer_state, carry, state.step + 1)
    return new_state, StepMetrics((total - penalty) * divisor, weight, norm, penalty * divisor)


def sum_pieces(value_and_gradients: Callable, batch: Any, count: int) -> Any:
    """Sums values and gradients over the pieces of a batch, one piece after the other."""
    pieces = jax.tree.map(
        lambda x: x.reshape(x.shape[0] // count, count, *x.shape[1:]).swapaxes(0, 1), batch
    )

    def add(sums, piece):
        (total, (penalty, carry)), gradients = value_and_gradients(piece)
        return jax.tree.map(jnp.add, sums, (total, penalty, gradients)), carry

    first = jax.tree.map(lambda x: x[0], pieces)
    (total, (penalty, _)), gradients = jax.eval_shape(value_and_gradients, first)
    zeros = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), (total, penalty, gradients))
    (total, penalty, gradients), carries = jax.lax.scan(add, zeros, pieces)
    carry = jax.tree.map(lambda x: x.swapaxes(0, 1).reshape(-1, *x.shape[2:]), carries)
    return (total, (penalty, carry)), gradients


# -------------------------------------------------------- the precision of a training step
# Parameters and the optimiser's state are always float32. With "bfloat16" a step rounds matrices to
# bfloat16 before the loss, and with them the other operand of every product: see
# `zoo.base.arrays.products`. Everything between products is float32, so are biases and vectors.
# The gradient of a matrix is summed in float32, rounded to bfloat16, since JAX gives a gradient the
# type of the matrix, and handed to the optimiser as float32. Validation and evaluation are float32.


def round_matrices(params: dict[str, Any], compute: str) -> dict[str, Any]:
    """Rounds the matrices among parameters; their gradients, also rounded, are float32 again."""
    if compute == "float32":
        return params

    def round_leaf(leaf):
        is_matrix = len(leaf.shape) >= 2 and jnp.issubdtype(leaf.dtype, jnp.floating)
        return leaf.astype(compute) if is_matrix else leaf

    return jax.tree.map(round_leaf, params)
