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


def _nearer(average, params, share):
    """Returns average + share (params - average): the parameters to the bit if the share is 1."""

    def one(old, new):
        return jnp.where(share == 1, new, old + (share * (new - old)).astype(old.dtype))

    return jax.tree.map(one, average, params)


class MeanState(NamedTuple):
    """The state of `keep_mean`."""

    averaging: jax.Array
    averaged_steps: jax.Array
    averaged_params: Any


def _keep(start, share_of) -> optax.GradientTransformation:
    """Keeps an average of the updated parameters; the updates themselves do not change."""

    def init(params):
        # Copies: a training step donates its state, which must not have an array twice.
        return start(jnp.zeros((), jnp.int32), jax.tree.map(jnp.array, params))

    def update(updates, state, params):
        steps, share = share_of(state)
        new = optax.apply_updates(params, updates)
        average = _nearer(state.averaged_params, new, share)
        return updates, state._replace(averaged_steps=steps, averaged_params=average)

    return optax.GradientTransformation(init, update)


def keep_average(decay: float) -> optax.GradientTransformation:
    """Keeps a moving average of the updated parameters."""

    def share_of(state):
        steps = state.averaged_steps + 1
        return steps, 1 - jnp.minimum(decay, (1 + steps) / (10 + steps))

    return _keep(AverageState, share_of)


def keep_mean(begun: bool) -> optax.GradientTransformation:
    """Keeps the mean of the updated parameters since `begin`."""

    def share_of(state):
        steps = jnp.where(state.averaging, state.averaged_steps + 1, 0)
        return steps, 1 / jnp.maximum(steps, 1)  # 1 until the mean begins

    return _keep(lambda *rest: MeanState(jnp.array(begun), *rest), share_of)


def begin(optimizer_state: Any) -> Any:
    """Returns an optimiser's state whose mean begins with the next step."""
    averaging = optax.tree_utils.tree_get(optimizer_state, "averaging")
    # True, on the same devices as before.
    return optax.tree_utils.tree_set(optimizer_state, averaging=averaging | True)


def stopped_improving(before: list[float], value: float, window: int) -> bool:
    """Whether a validation is worse than the best of all validations before but the last n."""
    return len(before) > window and value > min(before[: len(before) - window])


def params_to_evaluate(params: dict, optimizer_state) -> dict:
    """Returns the parameters to evaluate: trained parts are replaced by their average, if any."""
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
    """Checks training.frozen against the parameters."""
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


def axes_of(model, names: tuple[str, ...]) -> Axes:
    """Returns the names of the parameters' axes in some parts of a model, by whole path."""
    return {
        f"{name}/{path}": of_parameter
        for name in names
        for path, of_parameter in model.component(name).parameter_axes.items()
    }


def factor_of(rates: tuple[tuple[str, float], ...], of: str) -> float:
    """Returns the learning-rate factor of a parameter: the longest matching prefix's; else 1."""
    fitting = {prefix: rate for prefix, rate in rates if f"{of}/".startswith(f"{prefix}/")}
    return fitting[max(fitting, key=len)] if fitting else 1.0


def scale_updates(rates: tuple[tuple[str, float], ...]) -> optax.GradientTransformation:
    """Multiplies each update by the factor of its parameter."""

    def times_factor(path, leaf):
        return leaf * factor_of(rates, path_name(path))

    return optax.stateless(lambda updates, _: jax.tree.map_with_path(times_factor, updates))


def check_rates(params: dict, frozen: tuple[str, ...], rates: tuple[tuple[str, float], ...]):
    """Checks training.rates against the parameters."""
    leaves = jax.tree_util.tree_leaves_with_path(split(params, frozen)[0])
    names = [path_name(path).split("/") for path, _ in leaves]
    prefixes = {"/".join(of[:depth]) for of in names for depth in range(1, len(of) + 1)}
    for prefix, _ in rates:
        if prefix not in prefixes:
            near = [other for other in sorted(prefixes) if other.count("/") <= prefix.count("/")]
            raise UserError(
                f"training.rates names {prefix!r}, under which no parameter is trained: give one "
                f"of {', '.join(near)}."
            )
