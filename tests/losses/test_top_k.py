"""The best words and samples of a softmax, in blocks of words."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from tests import references
from tests.losses.test_softmax import problem
from zoo.losses import top_k
from zoo.losses.shaping import UNSHAPED


def test_a_walk_over_many_blocks_is_as_exact_as_the_sum(random):
    """In float32, over 2,000 blocks: a logarithm a block would be off by some 1e-5."""
    hidden, bias = random.normal(size=(5, 4)), np.zeros(32_000)
    weights = 0.1 * random.normal(size=(32_000, 4))
    arrays = [jnp.asarray(array, jnp.float32) for array in (hidden, weights, bias)]
    results = jax.jit(lambda *arrays: top_k.vocabulary_pass(arrays, UNSHAPED, block=16, k=2))(
        *arrays
    )
    log_z = [references.log_sum_exp(weights @ state) for state in hidden]
    np.testing.assert_allclose(results.log_z, log_z, atol=4e-6)


@functools.cache
def passed(block, k, with_key):
    """The jitted walk over the vocabulary."""

    def walk(hidden, weights, bias, key):
        key = key if with_key else None
        operands = hidden, weights, bias
        return top_k.vocabulary_pass(operands, UNSHAPED, block=block, k=k, key=key)

    return jax.jit(walk)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize(("words", "block"), [(13, 5), (13, 13), (2049, 256)])
def test_one_walk_finds_log_z_and_the_best_words(random, words, block):
    hidden, weights, bias, targets = problem(random, words, scale=0.1)
    results = passed(block, 5, False)(hidden, weights, bias, jax.random.key(0))
    scores = hidden @ weights.T + bias
    _, log_z = references.softmax_loss(hidden, weights, bias, targets)
    np.testing.assert_allclose(results.log_z, log_z, rtol=1e-12)
    best = np.argsort(-scores, axis=-1)[:, :5]
    np.testing.assert_array_equal(results.words, best)
    np.testing.assert_allclose(results.values, np.take_along_axis(scores, best, 1), rtol=1e-12)
    assert results.sample is None


@pytest.mark.parametrize("block", [4, 13])
def test_words_drawn_in_blocks_have_the_probabilities_of_the_softmax(random, block):
    draws = 20_000
    hidden, weights, bias, _ = problem(random, tokens=1)
    repeated = np.broadcast_to(hidden, (draws, 5))
    words = passed(block, 0, True)(repeated, weights, bias, jax.random.key(1)).sample
    (log_probs,) = references.softmax_log_probs(hidden, weights, bias)
    observed = np.bincount(words, minlength=13)
    assert scipy.stats.chisquare(observed, draws * np.exp(log_probs)).pvalue > 1e-3


def test_top_k_and_samples_keep_the_leading_axes(random):
    hidden, weights, bias, _ = (np.float32(array) for array in problem(random, tokens=6))
    log_probs, words = top_k.softmax_top_k(hidden.reshape(2, 3, 5), weights, bias, 4)
    expected = references.softmax_log_probs(hidden, weights, bias)
    assert words.shape == (2, 3, 4)
    sorted_log_probs = -np.sort(-expected, axis=-1)[:, :4].reshape(2, 3, 4)
    np.testing.assert_allclose(log_probs, sorted_log_probs, rtol=1e-4)
    sample = top_k.softmax_sample(hidden.reshape(2, 3, 5), weights, bias, jax.random.key(0))
    assert sample.shape == (2, 3)
