"""Losses of scores with soft caps and temperatures against numpy, and those that are learnt."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import references
from tests.losses.softmax_problems import TOKENS, assert_values_and_gradients, problem
from tests.marks import slow
from zoo import losses


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize(
    ("soft_cap", "temperature", "smoothing"),
    [(1.5, 0.7, 0.0), (1.5, 0.7, 0.2), (None, 1.0, 0.2), (None, 1.6, 0.0)]
    + slow((None, 1.0, 0.0), (0.8, 1.0, 0.0), (0.8, 1.0, 0.2), (None, 1.6, 0.2)),
)
def test_losses_of_shaped_scores(random, words, soft_cap, temperature, smoothing):
    arrays, targets = problem(random, words), random.integers(words, size=TOKENS)
    u = random.normal(size=TOKENS)
    options = {"soft_cap": soft_cap, "temperature": temperature, "label_smoothing": smoothing}

    def formula(arrays):
        log_probs = references.softmax_log_probs(*arrays.values(), soft_cap, temperature)
        rows = zip(log_probs, targets, u, strict=True)
        return -sum(
            weight * ((1 - smoothing) * row[x] + smoothing * row.mean()) for row, x, weight in rows
        )

    def by_token(*arrays):
        return u @ losses.softmax_loss(*arrays, targets, **options)[0]

    def weighted(*arrays):
        return losses.weighted_softmax_loss(*arrays, targets, u, **options)

    def in_blocks_of_tokens(*arrays):
        return losses.weighted_softmax_loss(*arrays, targets, u, 3, **options)

    assert_values_and_gradients((by_token, weighted, in_blocks_of_tokens), arrays, formula)


def by_token(function, *arrays, soft_caps, temperatures):
    """A numpy function of log p [1, V] and a token's number, summed over the tokens of a table."""
    hidden, *table = arrays
    numbers = np.broadcast_to(soft_caps, TOKENS), np.broadcast_to(temperatures, TOKENS)
    rows = zip(hidden[:, None], *numbers, strict=True)
    return sum(
        function(references.softmax_log_probs(row, *table, cap, temperature)[0], n)
        for n, (row, cap, temperature) in enumerate(rows)
    )


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("shape", [(), (TOKENS,)])
def test_soft_caps_and_temperatures_are_learnt(random, words, shape):
    """One for all tokens, and one for each."""
    arrays, targets = problem(random, words), random.integers(words, size=TOKENS)
    u, v = random.normal(size=(2, TOKENS))
    arrays |= {
        "soft_cap": random.uniform(0.8, 2, shape),
        "temperature": random.uniform(0.5, 2, shape),
    }

    def formula(arrays):
        def token_loss(log_probs, n):
            entropy = -(np.exp(log_probs) * log_probs).sum()
            smoothed = 0.8 * log_probs[targets[n]] + 0.2 * log_probs.mean()
            return v[n] * entropy - u[n] * smoothed

        *table, soft_caps, temperatures = arrays.values()
        return by_token(token_loss, *table, soft_caps=soft_caps, temperatures=temperatures)

    def losses_and_entropies(loss):
        def function(*arrays):
            *table, cap, temperature = arrays
            options = {"soft_cap": cap, "temperature": temperature}
            statistics = losses.softmax_statistics(*table, targets, **options)
            return loss(*table, options | {"label_smoothing": 0.2}) + v @ statistics.entropy

        return function

    def token_losses(*table):
        return u @ losses.softmax_loss(*table[:3], targets, **table[3])[0]

    def weighted(*table):
        return losses.weighted_softmax_loss(*table[:3], targets, u, **table[3])

    def in_blocks_of_tokens(*table):
        return losses.weighted_softmax_loss(*table[:3], targets, u, 3, **table[3])

    functions = map(losses_and_entropies, (token_losses, weighted, in_blocks_of_tokens))
    assert_values_and_gradients([*functions], arrays, formula)


@pytest.mark.usefixtures("float64")
def test_a_temperature_is_learnt_beside_words_without_mass(random, words):
    """And with a penalty and a measure, whose gradients go through log Z."""
    table, targets = problem(random, words), random.integers(words - 2, size=TOKENS)
    u, log_m = random.normal(size=TOKENS), random.normal(size=(TOKENS, words))
    log_m[:, -2:] = table["bias"][-2:] = -np.inf
    measure = {"log_measure": jax.tree_util.Partial(lambda contexts: contexts), "contexts": log_m}

    def weighted(temperature, block, options):
        arguments = *table.values(), targets, u, block, 0.3
        return losses.weighted_softmax_loss(*arguments, temperature=temperature, **options)

    for options, log_masses in ((measure, log_m), ({}, 0)):

        def formula(arrays, log_masses=log_masses):
            scores = table["hidden"] @ table["weights"].T + table["bias"]
            scores = scores / arrays["temperature"]
            log_z = np.log(np.exp(scores + log_masses).sum(-1))
            return u @ (log_z - scores[range(TOKENS), targets] + 0.3 * log_z**2)

        functions = [
            lambda temperature, block=block, options=options: weighted(temperature, block, options)
            for block in (None, 3)
        ]
        assert_values_and_gradients(functions, {"temperature": np.array(0.7)}, formula)


def test_a_soft_cap_raises_a_bias_of_minus_infinity_to_minus_the_cap():
    table = jnp.zeros((1, 2)), jnp.zeros((3, 2)), jnp.array([0, 0, -jnp.inf])
    loss, log_z = losses.softmax_loss(*table, jnp.array([2]), soft_cap=1.5)
    np.testing.assert_allclose(loss - log_z, [1.5], rtol=1e-6)
    np.testing.assert_allclose(log_z, np.log(2 + np.exp([-1.5])), rtol=1e-6)


def test_bfloat16_is_capped_in_float32(random):
    arrays = [jnp.bfloat16(array) for array in problem(random, 13).values()]
    loss, _ = losses.softmax_loss(*arrays, np.zeros(TOKENS, int), soft_cap=0.8)
    assert loss.dtype == jnp.float32
    expected = references.softmax_log_probs(*(np.float64(array) for array in arrays), 0.8)
    np.testing.assert_allclose(loss, -expected[:, 0], rtol=1e-5)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"soft_cap": 0.0}, "soft_cap is 0.0: give a number above 0"),
        ({"soft_cap": jnp.ones(3)}, r"soft_cap has the shape \(3,\): give one number"),
        (
            {"temperature": jnp.array([1.0, 0.0])},
            r"temperature is \[1. 0.\]: give a number above 0",
        ),
        ({"temperature": -1.0}, "temperature is -1.0: give a number above 0"),
        ({"temperature": float("inf")}, "temperature is inf: give a number above 0"),
        ({"label_smoothing": 1.0}, "label_smoothing is 1.0: give a number of at least 0"),
        ({"temperature": "a"}, "temperature is 'a': give a number"),
        ({"soft_cap": 1j}, "soft_cap is 1j: give a number"),
        ({"label_smoothing": None}, "label_smoothing is None: give a number, such as 0.1"),
        ({"label_smoothing": jnp.ones(2)}, "label_smoothing is an array of the type float32: give"),
        ({"block": 2.5}, "block is 2.5: give a whole number of at least 1"),
    ],
)
def test_wrong_numbers(options, error):
    table = jnp.ones((2, 3)), jnp.ones((5, 3)), jnp.ones(5), jnp.array([0, 1])
    with pytest.raises((ValueError, TypeError), match=error):
        losses.softmax_loss(*table, **options)
    with pytest.raises((ValueError, TypeError), match=error):
        losses.weighted_softmax_loss(*table, jnp.ones(2), **options)
