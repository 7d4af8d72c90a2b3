"""Sampling from a step function whose probabilities are known."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from zoo.decoding import feed, sample
from zoo.errors import UserError

# p(next | word): a Markov chain over three words.
CHAIN = np.array([[0.2, 0.5, 0.3], [0.7, 0.1, 0.2], [0.05, 0.15, 0.8]], np.float32)


def chain_step(table, words, carry):
    """The carry counts the steps."""
    return jnp.log(table)[words], carry + 1


STEP = jax.tree_util.Partial(chain_step, CHAIN)


def draw(words, length, step=STEP, seed=0, **options):
    """Samples as numpy arrays."""
    carry = jnp.zeros((), jnp.int32)
    drawn = sample(step, jnp.array(words), carry, jax.random.key(seed), length, **options)
    return tuple(map(np.asarray, drawn))


def test_frequencies_are_those_of_the_step():
    words, _ = draw([0] * 20000, 2)
    first = np.bincount(words[:, 0], minlength=3) / len(words)
    # Four standard deviations of a frequency over 20,000 draws are below 0.015.
    np.testing.assert_allclose(first, CHAIN[0], atol=0.015)
    second = np.bincount(words[:, 1], minlength=3) / len(words)
    np.testing.assert_allclose(second, CHAIN[0] @ CHAIN, atol=0.015)


def test_the_temperature_sharpens_and_log_probs_stay_the_models():
    words, log_prob = draw([0] * 20000, 1, temperature=0.5)
    squares = CHAIN[0] ** 2
    frequencies = np.bincount(words[:, 0], minlength=3) / len(words)
    np.testing.assert_allclose(frequencies, squares / squares.sum(), atol=0.015)
    np.testing.assert_allclose(log_prob[:, 0], np.log(CHAIN[0])[words[:, 0]], rtol=1e-6)


def test_temperature_zero_is_greedy():
    words, log_prob = draw([0, 1, 2], 4, temperature=0)
    np.testing.assert_array_equal(words, [[1, 0, 1, 0], [0, 1, 0, 1], [2, 2, 2, 2]])
    np.testing.assert_allclose(
        np.exp(log_prob), [[0.5, 0.7, 0.5, 0.7], [0.7, 0.5, 0.7, 0.5], [0.8] * 4], rtol=1e-6
    )


def test_nothing_comes_after_the_boundary():
    words, log_prob = draw([0, 1], 4, temperature=0, boundary=1)
    np.testing.assert_array_equal(words, [[1, 1, 1, 1], [0, 1, 1, 1]])
    np.testing.assert_allclose(np.exp(log_prob), [[0.5, 1, 1, 1], [0.7, 0.5, 1, 1]], rtol=1e-6)


def test_seeds_repeat_and_differ():
    again, other = draw([0] * 50, 5)[0], draw([0] * 50, 5, seed=1)[0]
    np.testing.assert_array_equal(draw([0] * 50, 5)[0], again)
    assert (again != other).any()


def test_a_plain_function_is_a_step():
    step = functools.partial(chain_step, jnp.array(CHAIN))
    np.testing.assert_array_equal(draw([0], 3, step, temperature=0)[0], [[1, 0, 1]])


@pytest.mark.parametrize("temperature", [-0.1, float("nan"), float("inf")])
def test_a_temperature_below_zero_is_refused(temperature):
    with pytest.raises(UserError, match="temperature"):
        draw([0], 1, temperature=temperature)


def test_feeding_reads_every_word():
    carry = jnp.zeros((), jnp.int32)
    assert feed(STEP, jnp.array([[0, 1, 2]]), carry) == 3
    assert feed(STEP, jnp.zeros((1, 0), jnp.int32), carry) == 0
