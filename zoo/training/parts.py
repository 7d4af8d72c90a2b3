"""The parts of a model's parameters: which of them are trained.

The parameters are a dict of parts, such as {"embedding", "core", "head"}. A frozen part is read by
the loss and no more: neither gradients nor optimiser state are formed for it.
"""

import jax

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


def name(path) -> str:
    """The path of a parameter in a pytree as text, such as "head/network/bias"."""
    return jax.tree_util.keystr(path, simple=True, separator="/")
