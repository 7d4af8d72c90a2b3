"""The parts of a model's parameters: which of them are trained, and how fast.

The parameters are a dict of parts, such as {"embedding", "core", "head"}. A frozen part is read by
the loss and no more: neither gradients nor optimiser state are formed for it. The updates of the
others may be multiplied by a factor each, as the tied logits of a CNN softmax need it (Jozefowicz
et al. 2016, section 3.2, "a much smaller learning rate had to be used").
"""

import jax
import optax

from zoo.arrays.partition import Axes, path_name
from zoo.errors import UserError


def split(params: dict, frozen: tuple[str, ...]) -> tuple[dict, dict]:
    """(the parts that are trained, those that are frozen)."""
    trained = {name: part for name, part in params.items() if name not in frozen}
    return trained, {name: params[name] for name in frozen}


def check_frozen(params: dict, frozen: tuple[str, ...]):
    """Checks training.frozen against the parameters, or their shapes.

    Raises:
      UserError: there is no such part, or no parameter is left to train.
    """
    for name in frozen:
        if name not in params:
            raise UserError(
                f"training.frozen names {name!r}, which is no part of the model: there are "
                f"{', '.join(params)}."
            )
    if not jax.tree.leaves(split(params, frozen)[0]):
        raise UserError(
            f"training.frozen={frozen!r} leaves no parameter to train: take a part out of it."
        )


def axes_of(model, names: tuple[str, ...]) -> Axes:
    """Names of the axes of the parameters of some parts of a model, by their whole paths."""
    return {
        f"{name}/{path}": of_parameter
        for name in names
        for path, of_parameter in model.component(name).parameter_axes.items()
    }


def factor_of(rates: tuple[tuple[str, float], ...], of: str) -> float:
    """The factor of the longest prefix, in whole names, that a path has; 1 without any."""
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
    """UserError if a prefix of training.rates is that of no trained parameter."""
    leaves = jax.tree_util.tree_leaves_with_path(split(params, frozen)[0])
    names = [path_name(path).split("/") for path, _ in leaves]
    prefixes = {"/".join(of[:depth]) for of in names for depth in range(1, len(of) + 1)}
    for prefix, _ in rates:
        if prefix not in prefixes:
            near = [other for other in sorted(prefixes) if other.count("/") <= prefix.count("/")]
            raise UserError(
                f"training.rates names {prefix!r}, under which no parameter is trained: there are "
                f"{', '.join(near)}."
            )
