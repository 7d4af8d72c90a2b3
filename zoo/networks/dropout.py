"""Dropout whose masks depend on a row's own key, never on the batch around it."""

import jax
import jax.numpy as jnp

from zoo.errors import UserError, field_name

# Rates are rounded to so many steps: random numbers of 16 bits are compared with them.
_STEPS = 65536


def check_rates(recipe, *fields: str):
    """Raises UserError for the first of the fields of the recipe that is below 0, or that `masks`
    would round to 1."""
    for field in fields:
        rate = getattr(recipe, field)
        if not (0 <= rate < 1 and _threshold(rate) < _STEPS):
            raise UserError(
                f"{field_name(recipe, field)} is {rate}: give a rate of at least 0, and below 1 by "
                f"1/{_STEPS} or more."
            )


def _threshold(rate):
    return round(rate * _STEPS)


def fold_in(keys: jax.Array, data: int) -> jax.Array:
    """New keys [B] for another use."""
    return jax.vmap(lambda key: jax.random.fold_in(key, data))(keys)


def masks(keys: jax.Array, shape: tuple[int, ...], rate: float, dtype) -> jax.Array:
    """[B, *shape] of 0 with probability `rate` (to 1/65536) and 1 / (1 - rate) otherwise.

    16 random bits a number halve the cost of the generator, which shows in a training step.
    """
    threshold = _threshold(rate)
    bits = jax.vmap(lambda key: jax.random.bits(key, shape, jnp.uint16))(keys)
    return jnp.where(bits < threshold, 0, _STEPS / (_STEPS - threshold)).astype(dtype)
