"""A moving average of the parameters, judged in their place.

average <- d average + (1 - d) params after every step, d = min(decay, (1 + t) / (10 + t)) after t
steps, so that the values drawn at the start are soon forgotten. Polyak and Juditsky, "Acceleration
of stochastic approximation by averaging" (1992), have the mean of all steps; this one forgets.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax


class AverageState(NamedTuple):
    """The state of `keep_average`.

    Attributes:
      averaged_steps: int32, t.
      averaged_params: the averages, as the parameters.
    """

    averaged_steps: jax.Array
    averaged_params: Any


def keep_average(decay: float) -> optax.GradientTransformation:
    """Keeps the average of what the updates lead to, and leaves them alone; the last in a chain."""

    def init(params):
        # Copies: a training step donates its state, in which no array may stand twice.
        return AverageState(jnp.zeros((), jnp.int32), jax.tree.map(jnp.array, params))

    def update(updates, state, params):
        steps = state.averaged_steps + 1
        rest = 1 - jnp.minimum(decay, (1 + steps) / (10 + steps))
        new = optax.apply_updates(params, updates)
        average = jax.tree.map(
            lambda old, new: old + (rest * (new - old)).astype(old.dtype),
            state.averaged_params,
            new,
        )
        return updates, AverageState(steps, average)

    return optax.GradientTransformation(init, update)


def params_to_evaluate(params: dict, optimizer_state) -> dict:
    """The parameters to evaluate: the average of those that are trained, if one is kept."""
    average = optax.tree_utils.tree_get(optimizer_state, "averaged_params")
    return params if average is None else {**params, **average}
