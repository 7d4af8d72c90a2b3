"""Averages of the parameters, evaluated in their place.

A moving average:

    average <- d average + (1 - d) params   after every step, d = min(decay, (1 + t) / (10 + t))

after t steps, so that the random start values are soon forgotten.

A mean, after Polyak and Juditsky, "Acceleration of stochastic approximation by averaging" (1992):
of the parameters after all steps from a trigger on. Merity, Keskar and Socher, "Regularizing and
optimizing LSTM language models" (2018), algorithm 1 (NT-ASGD), set the trigger off when validation
stops improving: when it is worse than the best of all validations but the last n.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from zoo.base.arrays.parameter_sharding import Axes, path_name
from zoo.errors import UserError


class AverageState(NamedTuple):
    """The state of `keep_average`."""

    averaged_steps: jax.Array
    averaged_params: Any


class MeanState(NamedTuple):
    """The state of `keep_mean`."""

    averaging: jax.Array
    averaged_steps: jax.Array
    averaged_params: Any


def _keep_running(make_state, next_share) -> optax.GradientTransformation:
    """Keeps an average of the updated parameters in the optimiser's state."""

    def init(params):
        # Copies: a training step donates its state, which must not have an array twice.
        return make_state(jnp.zeros((), jnp.int32), jax.tree.map(jnp.array, params))

    def update(updates, state, params):
        steps, share = next_share(state)

        def step(mean, value):
            # A share of 1 gives exactly the parameters.
            return jnp.where(share == 1, value, mean + (share * (value - mean)).astype(mean.dtype))

        new_params = optax.apply_updates(params, updates)
        average = jax.tree.map(step, state.averaged_params, new_params)
        return updates, state._replace(averaged_steps=steps, averaged_params=average)

    return optax.GradientTransformation(init, update)


def keep_average(decay: float) -> optax.GradientTransformation:
    """Keeps a moving average of the updated parameters."""

    def next_share(state):
        steps = state.averaged_steps + 1
        return steps, 1 - jnp.minimum(decay, (1 + steps) / (10 + steps))

    return _keep_running(AverageState, next_share)


def keep_mean(is_averaging: bool) -> optax.GradientTransformation:
    """Keeps the mean of the updated parameters since `begin`, or since the start."""

    def next_share(state):
        steps = jnp.where(state.averaging, state.averaged_steps + 1, 0)
        return steps, 1 / jnp.maximum(steps, 1)  # 1 until the mean begins

    return _keep_running(lambda *fields: MeanState(jnp.array(is_averaging), *fields), next_share)


def begin(optimizer_state: Any) -> Any:
    """Starts the mean of `keep_mean` with the next step; returns the optimiser's new state."""
    averaging = optax.tree_utils.tree_get(optimizer_state, "averaging")
    # True, on the same devices as before.
    return optax.tree_utils.tree_set(optimizer_state, averaging=averaging | True)


def stopped_improving(previous: list[float], value: float, window: int) -> bool:
    """Whether a value is worse than the best of the previous ones without the last `window`."""
    return len(previous) > window and value > min(previous[: len(previous) - window])


def params_to_evaluate(params: dict, optimizer_state) -> dict:
    """Replaces the trained parts of parameters by their average, if there is one."""
    average = optax.tree_utils.tree_get(optimizer_state, "averaged_params")
    return params if average is None else {**params, **average}


# ------------------------ parameter groups: frozen parts, and factors of the learning rate
# The parameters are a dict of parts, such as {"embedding", "core", "head"}. The loss reads frozen
# parts, but computes no gradients for them, and the optimiser has no state of them. The updates of
# other parameters may be multiplied by factors, as the tied logits of a CNN softmax need
# (Jozefowicz et al. 2016, section 3.2, "a much smaller learning rate had to be used").


def split(params: dict, frozen: tuple[str, ...]) -> tuple[dict, dict]:
    """Splits parameters into (trained parts, frozen parts)."""
    trained = {name: part for name, part in params.items() if name not in frozen}
    return trained, {name: params[name] for name in frozen}


def check_frozen(params: dict, frozen: tuple[str, ...]):
    """Raises UserError if training.frozen names a missing part, or leaves nothing to train."""
    for name in frozen:
        if name not in params:
            raise UserError(
                f"training.frozen names {name!r}, which is not a part of the model: its parts are "
                f"{', '.join(params)}."
            )
    if not jax.tree.leaves(split(params, frozen)[0]):
        raise UserError(
            f"training.frozen={frozen!r} leaves no parameter to train: take a part out of it."
        )


def collect_axes(model, names: tuple[str, ...]) -> Axes:
    """Returns {path such as "head/bias": names of its axes} of some parts of a model."""
    return {
        f"{name}/{path}": axes
        for name in names
        for path, axes in model.component(name).parameter_axes.items()
    }


def rate_factor(rates: tuple[tuple[str, float], ...], path: str) -> float:
    """Returns the learning-rate factor of a parameter, by the longest matching prefix; else 1."""
    matches = {prefix: rate for prefix, rate in rates if f"{path}/".startswith(f"{prefix}/")}
    return matches[max(matches, key=len)] if matches else 1.0


def scale_updates(rates: tuple[tuple[str, float], ...]) -> optax.GradientTransformation:
    """Multiplies each update by the learning-rate factor of its parameter."""

    def times_factor(path, leaf):
        return leaf * rate_factor(rates, path_name(path))

    return optax.stateless(lambda updates, _: jax.tree.map_with_path(times_factor, updates))


def check_rates(params: dict, frozen: tuple[str, ...], rates: tuple[tuple[str, float], ...]):
    """Raises UserError if training.rates names a prefix of no trained parameter."""
    leaves = jax.tree_util.tree_leaves_with_path(split(params, frozen)[0])
    names = [path_name(path).split("/") for path, _ in leaves]
    prefixes = {"/".join(parts[:depth]) for parts in names for depth in range(1, len(parts) + 1)}
    for prefix, _ in rates:
        if prefix not in prefixes:
            choices = [path for path in sorted(prefixes) if path.count("/") <= prefix.count("/")]
            raise UserError(
                f"training.rates names {prefix!r}, under which no parameter is trained: give one "
                f"of {', '.join(choices)}."
            )
