"""Where the scores are those of the data, the expected gradient of a sampled loss has to be 0.

The expectation is a sum: over all draws, of which only how often each word came matters.
"""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.marks import slow
from zoo.heads import NCE, BlackOut, ImportanceSampling, UnigramNoise
from zoo.lexicon import Lexicon
from zoo.losses import noise_sampling

HEADS = {"NCE": NCE, "importance sampling": ImportanceSampling, "BlackOut": BlackOut}
# How the data's distribution p lies to the noise's: as it does, flatter, and the other way round.
P = np.array([0.437, 0.25, 0.15, 0.1, 0.063])
COUNTS = {"alike": (30, 25, 20, 15, 10), "crossed": (10, 15, 20, 25, 30), "even": (7,) * 5}
NOISE = UnigramNoise(smoothing=0.0)


def all_draws(q, count):
    """(words [n, count], probability [n]) of every way to draw each word so and so often."""
    words, probabilities = [], []
    for bars in itertools.combinations(range(count + len(q) - 1), len(q) - 1):
        times = np.diff([-1, *bars, count + len(q) - 1]) - 1
        log_ways = math.lgamma(count + 1) - sum(math.lgamma(n + 1) for n in times)
        words.append(np.repeat(np.arange(len(q)), times))
        probabilities.append(math.exp(log_ways + times @ np.log(q)))
    np.testing.assert_allclose(sum(probabilities), 1, rtol=1e-9)
    return np.array(words), np.array(probabilities)


def expected_gradient(monkeypatch, head, p, counts, unit):
    """Of the bias, [V], at the truth: sum over draws and targets of their probability, times it."""
    size, samples = len(p), head.samples
    counts = np.array(counts)
    lexicon = Lexicon(tuple("abcde"[:size]), counts)
    words, draw_probabilities = all_draws(counts / counts.sum(), samples)
    tables = head.tables(lexicon)
    params = {"weights": jnp.zeros((size, 3)), "bias": jnp.log(jnp.asarray(p))}
    ways = len(words)

    def gradient(noise_words, shape, token_weights):
        """Of tokens of the shape [..., V], each target once, with these words drawn."""
        monkeypatch.setattr(
            noise_sampling,
            "draw_noise",
            lambda tables, key, noise_shape: noise_words.reshape(noise_shape),
        )
        targets = jnp.broadcast_to(jnp.arange(size), shape)
        hidden = jnp.zeros((*shape, 3))

        def loss(params):
            return head.weighted_loss(
                params, tables, hidden, targets, token_weights, key=jax.random.key(0)
            )

        return jax.grad(loss)(params)["bias"]

    if unit == "batch":
        gradients = jax.jit(
            jax.vmap(lambda noise_words: gradient(noise_words, (1, size), jnp.asarray(p[None])))
        )
        return draw_probabilities @ np.asarray(gradients(jnp.asarray(words)))
    if unit == "token":
        words = np.repeat(words[:, None], size, axis=1)
    token_weights = jnp.asarray(draw_probabilities[:, None] * p)
    return np.asarray(jax.jit(gradient, static_argnums=1)(words, (ways, size), token_weights))


def make_head(name, samples, distinct, unit="row"):
    return HEADS[name](noise=NOISE, samples=samples, distinct=distinct, noise_per=unit)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize(
    ("samples", "distinct", "unit", "counts"),
    [
        (1, True, "row", "crossed"),
        (3, False, "token", "crossed"),
        *slow((2, False, "batch", "alike"), (6, False, "row", "alike"), (3, True, "batch", "even")),
    ],
)
def test_the_expected_gradient_at_the_truth_is_0(
    monkeypatch, name, samples, distinct, unit, counts
):
    head = make_head(name, samples, distinct, unit)
    mean_gradient = expected_gradient(monkeypatch, head, P, COUNTS[counts], unit)
    np.testing.assert_allclose(mean_gradient, 0, atol=1e-7)  # log q has 32 bits


# That of BlackOut has the slopes of several logistic losses, and so several times the bias.
BOUNDS = {"NCE": 1e-7, "importance sampling": 0.0025, "BlackOut": 0.0065}


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize(
    ("samples", "unit", "counts"),
    [(2, "batch", "crossed"), *slow((3, "token", "alike"), (6, "row", "alike"))],
)
def test_with_repeats_dropped_it_is_small(monkeypatch, name, samples, unit, counts):
    head = make_head(name, samples, True, unit)
    mean_gradient = expected_gradient(monkeypatch, head, P, COUNTS[counts], unit)
    np.testing.assert_allclose(mean_gradient, 0, atol=BOUNDS[name])


@pytest.mark.usefixtures("float64")
@pytest.mark.slow
@pytest.mark.parametrize("name", ["importance sampling", "BlackOut"])
@pytest.mark.parametrize("distinct", [False, True])
def test_it_stays_near_0_as_draws_grow(monkeypatch, name, distinct):
    """Without the draws that are the target it would be -0.1 at 8 draws and grow from there."""
    for samples, p, counts in (
        (8, (0.437, 0.4, 0.163), (5, 3, 2)),
        (64, (0.437, 0.4, 0.163), (5, 3, 2)),
        (1024, (0.437, 0.563), (3, 1)),
    ):
        head = make_head(name, samples, distinct)
        mean_gradient = expected_gradient(monkeypatch, head, np.array(p), counts, "row")
        bound = 2 * BOUNDS[name] / samples if distinct else 0
        np.testing.assert_allclose(mean_gradient, 0, atol=1e-7 + bound)
