"""Weighted sums over spellings against a loop over them, and gradients against the whole."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from zoo.losses.token_blocks import sum_by_length


def loss(params, letters, lengths, inputs):
    """sum_i (i + 1) letter_i tanh(params . other), [n]."""
    positions = jnp.arange(letters.shape[1])
    is_letter = positions[None] < lengths[:, None]
    return jnp.where(is_letter, (positions[None] + 1) * letters, 0).sum(1) * jnp.tanh(
        inputs @ params
    )


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize(("number", "longest"), [(1, 1), (5, 8), (301, 16)])
def test_sum_and_gradients(random, number, longest):
    lengths = random.integers(1, longest + 1, number)
    letters = random.integers(1, 9, (number, longest))
    letters = np.where(np.arange(longest) < lengths[:, None], letters, 99)
    params, inputs = random.normal(size=2), random.normal(size=(number, 2))
    weights = random.normal(size=number)
    weights[::3] = 0

    def by_length(params, inputs, weights):
        return sum_by_length(loss, params, letters, lengths, (inputs,), weights)

    def at_once(params, inputs, weights):
        return (weights * loss(params, letters, lengths, inputs)).sum()

    expected = sum(
        weight * sum((i + 1) * row[i] for i in range(length)) * np.tanh(spelling_inputs @ params)
        for weight, row, length, spelling_inputs in zip(
            weights, letters, lengths, inputs, strict=True
        )
    )
    arguments = params, inputs, weights
    np.testing.assert_allclose(jax.jit(by_length)(*arguments), expected, rtol=1e-11, atol=1e-11)
    actual = jax.jit(jax.value_and_grad(by_length, argnums=(0, 1, 2)))(*arguments)
    expected = jax.jit(jax.value_and_grad(at_once, argnums=(0, 1, 2)))(*arguments)
    for actual_leaf, expected_leaf in zip(
        jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True
    ):
        np.testing.assert_allclose(actual_leaf, expected_leaf, rtol=1e-10, atol=1e-11)
