"""Parameter groups: frozen parts, and factors of the learning rate.

The parameters are a dict of parts, such as {"embedding", "core", "head"}. The loss reads frozen
parts, but computes no gradients for them, and the optimiser has no state of them. The updates of
other parameters may be multiplied by factors, as the tied logits of a CNN softmax need (Jozefowicz
et al. 2016, section 3.2, "a much smaller learning rate had to be used").
"""

import jax
import optax

from zoo.arrays.sharded_functions import Axes, path_name
from zoo.errors import UserError


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

    def update(updates, state, params=None):
        def times_factor(path, leaf):
            return leaf * factor_of(rates, path_name(path))

        return jax.tree_util.tree_map_with_path(times_factor, updates), state

    return optax.GradientTransformation(lambda params: optax.EmptyState(), update)


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
