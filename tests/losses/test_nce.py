"""Noise-contrastive estimation against a loop in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from zoo.losses import nce_loss


def reference(true, noise, log_expected_true, log_expected_noise, mask):
    """Adds up the logistic losses of one token."""
    total = np.logaddexp(0, log_expected_true - true)
    for score, log_expected, counts in zip(noise, log_expected_noise, mask, strict=True):
        total += counts * np.logaddexp(0, score - log_expected)
    return total


@pytest.mark.parametrize("draws", [7, 32, 75])  # below, at and above the factors of one logarithm
def test_values_and_gradients_are_the_logistic_losses(draws, random):
    true, log_true = random.normal(size=(2, 3, 5)) * 4
    noise, log_noise = random.normal(size=(2, 3, 5, draws)) * 4
    noise[0, 0], noise[0, 1] = 60.0, -60.0  # all factors near 1: no product over- or underflows
    mask = random.random((3, 5, draws)) < 0.8
    arguments = true, noise, log_true, log_noise
    single = tuple(jnp.asarray(x, jnp.float32) for x in arguments)
    expected = np.array(
        [[reference(*(x[b, t] for x in (*arguments, mask))) for t in range(5)] for b in range(3)]
    )
    np.testing.assert_allclose(jax.jit(nce_loss)(*single, mask), expected, rtol=1e-5, atol=1e-5)

    slopes = jax.jit(jax.grad(lambda t, n: nce_loss(t, n, *single[2:], mask).sum(), (0, 1)))
    true_gradients, noise_gradients = slopes(*single[:2])
    np.testing.assert_allclose(
        true_gradients, -1 / (1 + np.exp(true - log_true)), rtol=1e-4, atol=1e-6
    )
    shares = mask / (1 + np.exp(log_noise - noise))
    np.testing.assert_allclose(noise_gradients, shares, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("draws", [31, 32, 75])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_noise_words_of_narrow_types_are_summed_in_float32(draws, dtype):
    """float16 has no 2^32, and bfloat16 rounds each product of factors to three digits."""
    noise = jnp.zeros((1, draws), dtype)
    arguments = noise[:, 0], noise, noise[:, 0], noise
    value, slope = jax.value_and_grad(lambda *x: nce_loss(*x).sum(), 1)(*arguments)
    np.testing.assert_allclose(value, (draws + 1) * np.log(2), rtol=1e-3 if draws else 0)
    np.testing.assert_array_equal(slope, np.full((1, draws), 0.5))
    assert slope.dtype == noise.dtype


def test_hundreds_of_noise_words_do_not_overflow():
    """The product of 256 factors of 2 is more than a float32 holds."""
    noise = jnp.zeros((1, 300), jnp.float32)
    loss = nce_loss(jnp.zeros(1), noise, jnp.zeros(1), noise)
    np.testing.assert_allclose(loss, [301 * np.log(2)], rtol=1e-6)
