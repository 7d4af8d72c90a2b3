"""Updates of parameters by gradients: the interface of a training step, and dense updates."""

import abc
from typing import Any

import jax
import optax

from zoo.training.data_parallel import sum_over_devices


class Updates(abc.ABC):
    """The interface by which a training step computes gradients and updates parameters."""

    @abc.abstractmethod
    def init(self, params) -> Any:
        """Returns the optimiser's state before the first step."""

    @abc.abstractmethod
    def value_and_gradients(self, objective, params, batch_rows) -> tuple[Any, Any]:
        """Computes an objective and its gradients."""

    @abc.abstractmethod
    def sum_over_devices(self, gradients, params, axis: str | None) -> Any:
        """Sums gradients over devices."""

    @abc.abstractmethod
    def update(
        self, params, state, step, gradients, rate_factor: float = 1.0
    ) -> tuple[Any, Any, jax.Array]:
        """Updates parameters by gradients."""


class DenseUpdates(Updates):
    """Updates of all parameters by an optax transformation."""

    def __init__(self, transformation: optax.GradientTransformation):
        """Wraps a transformation."""
        self.transformation = optax.with_extra_args_support(transformation)

    def init(self, params):
        return self.transformation.init(params)

    def value_and_gradients(self, objective, params, batch_rows):
        """Returns ((value, auxiliary), gradients); see Updates.value_and_gradients."""
        return jax.value_and_grad(objective, has_aux=True)(params, batch_rows)

    def sum_over_devices(self, gradients, params, axis):
        return sum_over_devices(gradients, axis)

    def update(self, params, state, step, gradients, rate_factor=1.0):
        """Returns (params, state, norm of the gradients) after a step; see Updates.update."""
        updates, state = self.transformation.update(
            gradients, state, params, rate_factor=rate_factor
        )
        return optax.apply_updates(params, updates), state, optax.tree.norm(gradients)


def scale_by_rate_factor() -> optax.GradientTransformationExtraArgs:
    """Multiplies updates by the `rate_factor` of `Updates.update`."""

    def update(updates, state, params=None, *, rate_factor=1.0, **others):
        return jax.tree.map(lambda update: update * rate_factor, updates), state

    return optax.GradientTransformationExtraArgs(lambda params: optax.EmptyState(), update)
