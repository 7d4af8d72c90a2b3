"""Tokens without weight add nothing, whatever they hold."""

import jax
import jax.numpy as jnp
import numpy as np

from zoo.losses.token_blocks import stop_weight_gradients, weighted_sum, zero_padding_rows

WEIGHTS = jnp.asarray([2.0, 0.0, 0.5, 0.0])


def test_the_sum_and_its_gradient():
    losses = jnp.asarray([1.5, jnp.inf, 4.0, jnp.nan])
    value, gradient = jax.value_and_grad(weighted_sum)(losses, WEIGHTS)
    assert value == 5.0
    np.testing.assert_array_equal(gradient, WEIGHTS)


def test_the_gradient_of_the_weights():
    """The losses, but of tokens that are not there; derivatives run forwards, too."""
    losses = jnp.asarray([1.5, 3.0, 4.0, jnp.nan])
    expected = [1.5, 3.0, 4.0, 0.0]
    np.testing.assert_array_equal(jax.grad(weighted_sum, argnums=1)(losses, WEIGHTS), expected)
    np.testing.assert_array_equal(jax.jacfwd(weighted_sum, argnums=1)(losses, WEIGHTS), expected)
    _, slope = jax.jvp(weighted_sum, (losses, WEIGHTS), (jnp.ones(4), jnp.asarray([0.0, 1, 0, 1])))
    assert slope == 2.5 + 3.0


def test_weights_without_gradient():
    absent = jnp.asarray([False, True, False, False])

    def squared(weights):
        return jnp.sum(stop_weight_gradients(weights, absent) ** 2 + weights)

    np.testing.assert_array_equal(stop_weight_gradients(WEIGHTS, absent), WEIGHTS)
    np.testing.assert_array_equal(jax.grad(squared)(WEIGHTS + 1), [7.0, 1.0, 4.0, 3.0])


def test_rows():
    slopes = jnp.asarray([[1.0, -1.0], [jnp.nan, 0.0], [2.0, jnp.inf], [3.0, 3.0]])
    np.testing.assert_array_equal(
        zero_padding_rows(slopes, WEIGHTS), [[1, -1], [0, 0], [2, np.inf], [0, 0]]
    )
