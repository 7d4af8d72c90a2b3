"""A moving average of the parameters, evaluated in their place.

average <- d average + (1 - d) params after every step, d = min(decay, (1 + t) / (10 + t)) after t
steps, so that the random start values are soon forgotten. Polyak and Juditsky, "Acceleration of
stochastic approximation by averaging" (1992), take the mean of all steps; this average decays.
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
    """Keeps a moving average of the updated parameters; the updates themselves do not change.

    Args:
      decay: the greatest d of the average, in (0, 1).

    Returns:
      A transformation, to be the last of an `optax.chain`.
    """

    def init(params):
        # Copies: a training step donates its state, which must not have an array twice.
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
    """Returns the parameters to evaluate: trained parts are replaced by their average, if any.

    Args:
      params: {part: parameters}, all parts of the model.
      optimizer_state: the state of the optimiser, perhaps with an `AverageState` in it.
    """
    average = optax.tree_utils.tree_get(optimizer_state, "averaged_params")
    return params if average is None else {**params, **average}
