"""Soft caps and temperatures, which shape scores before they are normalised.

o' = c tanh(o / c) / T, with a soft cap c, beyond which no score goes (Gemma Team 2024, section 2),
and a temperature T, so that p is proportional to p^(1/T). Both may be learnt.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from zoo.base.arrays.types import Array, Real, Shape
from zoo.losses import value_checks


@jax.tree_util.register_pytree_node_class
class Shaping(NamedTuple):
    """A soft cap c and a temperature T, by which scores o become c tanh(o / c) / T.

    Each is a float, an array of a number for each token, [N], which gets a gradient, or None.
    """

    soft_cap: Any = None
    temperature: Any = None

    @classmethod
    def from_options(
        cls, soft_cap: Real | None, temperature: Real = 1.0, tokens: Shape | None = None
    ) -> "Shaping":
        """Returns the shaping of tokens [...], for None without arrays; a temperature of 1 becomes
        None. Raises ValueError for a number that is known and not above 0, TypeError for another
        type."""
        numbers: dict[str, Any] = {"soft_cap": soft_cap, "temperature": temperature}
        for name, number in numbers.items():
            if number is None:
                continue
            value_checks.check_number(name, number, tokens or ())
            values = value_checks.concrete_values(number)
            if values is not None and not ((values > 0) & (values < np.inf)).all():
                raise ValueError(f"{name} is {values}: give a number above 0")
            if not isinstance(number, jax.Array) and not np.ndim(number):
                numbers[name] = float(number)
            elif tokens is None:
                raise TypeError(f"{name} is an array: give a Python number")
            else:
                floats = jnp.asarray(number, jnp.promote_types(number.dtype, jnp.float32))
                numbers[name] = jnp.broadcast_to(floats, tokens).reshape(-1)
        if isinstance(temperature, int | float) and temperature == 1:
            numbers["temperature"] = None
        return cls(**numbers)

    def tree_flatten(self):
        """Returns (arrays, constants): JAX's form of a pytree."""
        constants = tuple(number if isinstance(number, float) else None for number in self)
        return [None if isinstance(number, float) else number for number in self], constants

    @classmethod
    def tree_unflatten(cls, constants, arrays):
        """Returns the shaping of `tree_flatten`'s results."""
        pairs = zip(constants, arrays, strict=True)
        return cls(*(array if constant is None else constant for constant, array in pairs))

    @property
    def keeps_scores(self) -> bool:
        """Whether `backward` reads the shaped scores."""
        return self.soft_cap is not None or isinstance(self.temperature, jax.Array)

    def apply(self, scores: Array) -> Array:
        """Computes c tanh(o / c) / T of scores o, [..., V]; of arrays of numbers, [N, V]."""
        if self.soft_cap is not None:
            soft_cap = _column(self.soft_cap, scores)
            scores = soft_cap * jnp.tanh(scores / soft_cap)
        return scores if self.temperature is None else scores / _column(self.temperature, scores)

    def backward(self, scores: Array, gradients: Array) -> tuple[Array, "Shaping"]:
        """Computes the gradients of scores o, [N, V], and of arrays of numbers, from the gradients
        of the shaped scores; `scores`, the latter, may be None unless `keeps_scores`."""
        temperature = 1
        if self.temperature is not None:
            temperature = _column(self.temperature, gradients)
        numbers = {}
        if np.ndim(self.temperature):
            shares = jnp.where(gradients == 0, 0, gradients * scores)  # scores may be -inf
            numbers["temperature"] = -(shares / temperature).sum(axis=-1)
        gradients = gradients / temperature
        if self.soft_cap is not None:
            soft_cap = _column(self.soft_cap, gradients)
            tangents = jnp.clip(scores * temperature / soft_cap, -1, 1)
            slopes = 1 - tangents**2
            if np.ndim(self.soft_cap):
                bend = jnp.where(slopes > 0, jnp.arctanh(tangents) * slopes, 0)
                numbers["soft_cap"] = (gradients * (tangents - bend)).sum(axis=-1)
            gradients = gradients * slopes
        return gradients, self._replace(**numbers)


def _column(number, scores):
    """Returns a number, or an array of a number for each token, in the shape and type of scores."""
    return number[:, None].astype(scores.dtype) if np.ndim(number) else number


UNSHAPED = Shaping()
