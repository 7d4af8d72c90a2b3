"""Penalties on hidden states, by loops of numbers."""

import jax.numpy as jnp
import numpy as np
import pytest

from zoo.layers import dropout

RESET = np.array([[0, 0, 1, 0, 0], [1, 0, 0, 0, 1], [0, 1, 0, 0, 0]], bool)


@pytest.mark.usefixtures("float64")
def test_they_are_means_over_the_numbers_of_a_state(random):
    hidden = random.normal(size=(3, 5, 7))
    activation = dropout.activation_penalty(jnp.asarray(hidden))
    temporal = dropout.temporal_penalty(jnp.asarray(hidden), jnp.asarray(RESET))
    for row in range(3):
        for position in range(5):
            state = hidden[row, position]
            np.testing.assert_allclose(activation[row, position], sum(state**2) / 7, rtol=1e-12)
            expected = 0.0
            if position and not RESET[row, position]:
                expected = sum((state - hidden[row, position - 1]) ** 2) / 7
            np.testing.assert_allclose(temporal[row, position], expected, rtol=1e-12)


@pytest.mark.parametrize("time", [0, 1])
def test_without_a_state_before_there_is_no_step(random, time):
    hidden = jnp.asarray(random.normal(size=(2, time, 7)))
    penalty = dropout.temporal_penalty(hidden, jnp.zeros((2, time), bool))
    np.testing.assert_array_equal(penalty, np.zeros((2, time)))
