"""Importance sampling and contrastive divergence against sums over all words."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from zoo.losses import sampled_log_linear

LOG_SCORES = np.array([0.3, -1.2, 1.9, 0.0])  # a . phi + log b of four words
PROPOSAL = np.array([0.1, 0.4, 0.2, 0.3])
MODEL = np.exp(LOG_SCORES) / np.exp(LOG_SCORES).sum()
LOG_WEIGHTS = LOG_SCORES - np.log(PROPOSAL)


def test_the_mean_over_all_draws_is_that_of_the_ratio_estimator(float64):
    """E over all pairs of draws, by hand: biased, as a ratio of two means is."""
    pairs = np.array(list(itertools.product(range(4), repeat=2)))
    weights = sampled_log_linear.importance_weights(jnp.asarray(LOG_WEIGHTS[pairs]))
    estimate = sum(
        PROPOSAL[i] * PROPOSAL[j] * (u[0] * np.eye(4)[i] + u[1] * np.eye(4)[j])
        for (i, j), u in zip(pairs, np.asarray(weights), strict=True)
    )
    ratio = np.exp(LOG_WEIGHTS)
    expected = [
        sum(
            PROPOSAL[i]
            * PROPOSAL[j]
            * (ratio[i] * (i == v) + ratio[j] * (j == v))
            / (ratio[i] + ratio[j])
            for i, j in pairs
        )
        for v in range(4)
    ]
    np.testing.assert_allclose(estimate, expected, rtol=1e-12)
    assert np.abs(estimate - MODEL).max() > 0.05


def test_many_draws_give_the_expectation(random):
    draws = random.choice(4, size=200_000, p=PROPOSAL)
    weights = sampled_log_linear.importance_weights(jnp.asarray(LOG_WEIGHTS[draws], jnp.float32))
    estimates = [float(weights[draws == word].sum()) for word in range(4)]
    np.testing.assert_allclose(estimates, MODEL, atol=0.01)


@pytest.mark.parametrize("start", range(4))
def test_one_step_of_the_chain(random, start):
    """P(start -> v) = q(v) min(1, w(v) q(start) / (w(start) q(v))), and what is left stays."""
    accepted = PROPOSAL * np.minimum(1, np.exp(LOG_WEIGHTS - LOG_WEIGHTS[start]))
    expected = np.where(np.arange(4) == start, 0, accepted)
    expected[start] = 1 - expected.sum()
    observed = np.bincount(chain(random, start, 1, 20_000), minlength=4)
    assert scipy.stats.chisquare(observed, 20_000 * expected).pvalue > 1e-3


def test_a_long_chain_forgets_where_it_started(random):
    observed = np.bincount(chain(random, 1, 40, 10_000), minlength=4)
    assert scipy.stats.chisquare(observed, 10_000 * MODEL).pvalue > 1e-3


def test_each_proposal_has_its_own_threshold():
    # A step from w to w' is taken if u < w' / w: from 1 if u < 0.5, 0.4 and 0.1, from 0.5 if
    # u < 0.8 and 0.2, and from 0.4 if u < 0.25.
    log_weights = jnp.log(jnp.array([1.0, 0.5, 0.4, 0.1]))
    uniform = {
        (0.9, 0.45, 0.85, 0.15): 3,
        (0.9, 0.55, 0.35, 0.3): 2,
        (0.1, 0.45, 0.85, 0.3): 1,
        (0.1, 0.55, 0.45, 0.2): 0,
    }
    slots = sampled_log_linear.metropolis_walk(
        jnp.log(jnp.array(list(uniform))), jnp.tile(log_weights, (4, 1))
    )
    assert slots.tolist() == list(uniform.values())


def test_the_first_threshold_is_ignored(random):
    """Against a walk in a loop, for each of four first thresholds."""
    log_weights = random.normal([2, 0, 0, 0, 0, 0], size=(13, 3, 6)).astype(np.float32)
    log_thresholds = np.log(random.uniform(size=log_weights.shape)).astype(np.float32)
    expected = np.zeros((13, 3), int)
    for row in np.ndindex(13, 3):
        for slot in range(1, 6):
            ratio = log_weights[row][slot] - log_weights[row][expected[row]]
            if log_thresholds[row][slot] < ratio:
                expected[row] = slot
    assert 0 in expected and len(set(expected.ravel())) >= 4
    for first in (-np.inf, -5.0, -0.1, 0.0):
        log_thresholds[..., 0] = first
        slots = sampled_log_linear.metropolis_walk(
            jnp.asarray(log_thresholds), jnp.asarray(log_weights)
        )
        np.testing.assert_array_equal(slots, expected)


def test_no_step_stays():
    place = sampled_log_linear.metropolis_choice(jax.random.key(0), jnp.zeros((3, 1)))
    assert place.tolist() == [0, 0, 0]


def chain(random, start, steps, count):
    """The words at which `count` chains end."""
    words = random.choice(4, size=(count, 1 + steps), p=PROPOSAL)
    words[:, 0] = start
    log_weights = jnp.asarray(LOG_WEIGHTS[words], jnp.float32)
    places = jax.jit(sampled_log_linear.metropolis_choice)(jax.random.key(4), log_weights)
    return words[np.arange(count), places]
