"""Updates of parameters by gradients: the interface that a training step knows, and the dense
one."""

import abc
from typing import Any

import jax
import optax


def sum_over_devices(tree, axis: str | None):
    """The sum of each leaf over the devices of a named axis; the tree itself where it is None."""
    return tree if axis is None else jax.lax.psum(tree, axis)


class Updates(abc.ABC):
    """How parameters are changed by the gradients of an objective."""

    @abc.abstractmethod
    def init(self, params) -> Any:
        """The optimiser's state before the first step."""

    @abc.abstractmethod
    def value_and_gradients(self, objective, params, lanes) -> tuple[Any, Any]:
        """((value, auxiliary), gradients) of an objective of (params, lanes)."""

    @abc.abstractmethod
    def sum_over_devices(self, gradients, params, axis: str | None) -> Any:
        """The gradients of all devices of a named axis together."""

    @abc.abstractmethod
    def update(self, params, state, step, gradients) -> tuple[Any, Any, jax.Array]:
        """(params, state, norm of the gradients before clipping) after a step.

        Args:
          step: steps done before, int32.
        """


class DenseUpdates(Updates):
    """Gradients of all parameters, by an optax transformation."""

    def __init__(self, transformation: optax.GradientTransformation):
        """transformation: all that becomes of the gradients, clipping and the like too."""
        self.transformation = transformation

    def init(self, params):
        return self.transformation.init(params)

    def value_and_gradients(self, objective, params, lanes):
        """((value, auxiliary), gradients as params are)."""
        return jax.value_and_grad(objective, has_aux=True)(params, lanes)

    def sum_over_devices(self, gradients, params, axis):
        return sum_over_devices(gradients, axis)

    def update(self, params, state, step, gradients):
        """(params, state, norm of the gradients) after a step."""
        updates, state = self.transformation.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, optax.tree.norm(gradients)
