"""Tokens without weight add nothing, whatever they hold."""

import jax
import jax.numpy as jnp
import numpy as np

from zoo.heads.token_weights import weighted_rows, weighted_sum

WEIGHTS = jnp.asarray([2.0, 0.0, 0.5, 0.0])


def test_the_sum_and_its_gradient():
    losses = jnp.asarray([1.5, jnp.inf, 4.0, jnp.nan])
    value, gradient = jax.value_and_grad(weighted_sum)(losses, WEIGHTS)
    assert value == 5.0
    np.testing.assert_array_equal(gradient, WEIGHTS)


def test_rows():
    slopes = jnp.asarray([[1.0, -1.0], [jnp.nan, 0.0], [2.0, jnp.inf], [3.0, 3.0]])
    np.testing.assert_array_equal(
        weighted_rows(slopes, WEIGHTS), [[1, -1], [0, 0], [2, np.inf], [0, 0]]
    )
