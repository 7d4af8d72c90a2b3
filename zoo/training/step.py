"""One training step, as a pure function.

It runs on one device or, under `jax.pmap` with the named axis, on several: every device has its
share of the lanes, losses and gradients are summed over devices, and the only division is by the
number of tokens of the whole batch, so that the number of devices changes nothing but rounding.
A batch with few tokens, as an epoch of whole sentences may end with, is divided by more than it
has: two tokens must not move the parameters as far as a full batch does.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from zoo.keys import Keys
from zoo.training import parts


class TrainState(NamedTuple):
    """All that a step changes.

    params: a dict of parts, each a pytree. optimizer_state: of the parts that are trained. carry:
    the model's, leaves [B, ...]. step: int32, steps done.
    """

    params: Any
    optimizer_state: Any
    carry: Any
    step: jax.Array


class Columns(NamedTuple):
    """What a step is fed: a batch's arrays, [B, T] each, and the number of each lane, [B]."""

    words: jax.Array
    targets: jax.Array
    weights: jax.Array
    reset: jax.Array
    lanes: jax.Array


class StepMetrics(NamedTuple):
    """loss: summed, nats. tokens: that were trained on. gradient_norm: of what is trained, the
    mean loss and penalty, in the parts that are not frozen. penalty: summed, not in the loss."""

    loss: jax.Array
    tokens: jax.Array
    gradient_norm: jax.Array
    penalty: jax.Array


def sum_over_devices(tree, axis):
    """The sum of each leaf over the devices of a named axis; the tree itself where it is None."""
    return tree if axis is None else jax.lax.psum(tree, axis)


def mean_loss(state, tables, columns, key, *, model, least_tokens, axis):
    """(params -> (mean loss of the batch's tokens with the penalty, (penalty, carry)), tokens, and
    what the mean is over: the tokens, or `least_tokens` if that is more).

    Arguments are train_step's.

    On several devices each has its part of the mean: the parts add up.
    """
    tokens = sum_over_devices(columns.weights.sum(), axis)
    divisor = jnp.maximum(tokens, least_tokens)
    # Normalised before the loss, not after: the cotangent of the sum is then the constant 1.
    weights = columns.weights / divisor
    step_key = jax.random.fold_in(jax.random.wrap_key_data(key), state.step)
    rows = jax.vmap(lambda lane: jax.random.fold_in(step_key, lane))(columns.lanes)

    def objective(params):
        loss, penalty, carry = model.weighted_loss(
            params,
            tables,
            columns.words,
            columns.targets,
            weights,
            state.carry,
            reset=columns.reset,
            key=Keys(step_key, rows),
        )
        return loss, (penalty, carry)

    return objective, tokens, divisor


def train_step(
    state: TrainState,
    tables: dict,
    columns: Columns,
    key: jax.Array,
    *,
    model,
    optimizer: optax.GradientTransformation,
    frozen: tuple[str, ...] = (),
    least_tokens: float = 1.0,
    axis: str | None = None,
) -> tuple[TrainState, StepMetrics]:
    """One update of the parameters on the mean loss of the batch's tokens.

    Args:
      key: the run's key data; dropout's keys come from it, the step and the lane, so that they
        depend neither on devices nor on interruptions.
      model, optimizer, frozen, least_tokens, axis: static. frozen: parts that are not trained.
        least_tokens: a sum over fewer is divided by so many. axis: the devices' axis under pmap,
        None on one device.
    """
    objective, tokens, divisor = mean_loss(
        state, tables, columns, key, model=model, least_tokens=least_tokens, axis=axis
    )
    trained, fixed = parts.split(state.params, frozen)
    (total, (penalty, carry)), gradients = jax.value_and_grad(
        lambda trained: objective({**trained, **fixed}), has_aux=True
    )(trained)
    total, penalty, gradients = sum_over_devices((total, penalty, gradients), axis)
    updates, optimizer_state = optimizer.update(gradients, state.optimizer_state, trained)
    params = {**optax.apply_updates(trained, updates), **fixed}
    new_state = TrainState(params, optimizer_state, carry, state.step + 1)
    return new_state, StepMetrics(
        (total - penalty) * divisor, tokens, optax.tree.norm(gradients), penalty * divisor
    )
