"""Log p of chosen words, and divergences of stored words, against numpy in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import references
from tests.losses.softmax_problems import SIZES, assert_values_and_gradients, problem
from zoo import losses
from zoo.losses import softmax

TOKENS = 7
K = 4


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize(("words", "logits"), SIZES)
@pytest.mark.parametrize(("soft_cap", "temperature"), [(None, 1.0), (1.5, 0.7)])
def test_log_probs_of_chosen_words(random, words, logits, soft_cap, temperature, monkeypatch):
    """Words in any order; one token asks twice for the same."""
    if logits is not None:
        monkeypatch.setattr(softmax, "LOGITS_AT_A_TIME", logits)
        monkeypatch.setattr(softmax, "LEAST_ROWS_AT_A_TIME", 1)
    arrays, ids = problem(random, words), random.integers(words, size=(TOKENS, K))
    ids[0, 1], ids[1] = ids[0, 0], [words - 1, 0, words - 2, 1]
    u = random.normal(size=(TOKENS, K))
    options = {"soft_cap": soft_cap, "temperature": temperature}

    def formula(arrays):
        log_probs = references.softmax_log_probs(*arrays.values(), soft_cap, temperature)
        return sum(u[n, k] * log_probs[n, ids[n, k]] for n in range(TOKENS) for k in range(K))

    def function(*arrays):
        return (u * losses.softmax_word_log_probs(*arrays, ids, **options)).sum()

    assert_values_and_gradients([function], arrays, formula)


def test_leading_axes_and_words_without_mass(random):
    hidden, weights = random.normal(size=(3, 5, 7)), random.normal(size=(13, 7))
    bias = random.normal(size=13)
    bias[11:] = -np.inf
    ids = random.integers(11, size=(3, 5, 2))
    ids[2, 4, 1] = 12
    expected = references.softmax_log_probs(hidden.reshape(15, 7), weights[:11], bias[:11])
    expected = np.concatenate([expected, np.full((15, 2), -np.inf)], axis=1)
    expected = np.take_along_axis(expected, ids.reshape(15, 2), axis=1).reshape(3, 5, 2)
    table = [jnp.float32(x) for x in (hidden, weights, bias)]
    actual = jax.jit(losses.softmax_word_log_probs)(*table, jnp.int8(ids))
    np.testing.assert_allclose(actual, expected, rtol=1e-5)


def test_no_array_of_all_words_or_of_all_rows_is_held():
    tokens, size, count, words = 1024, 64, 64, 50_000
    shapes = [(tokens, size), (words, size), (words,), (tokens, count)]
    table = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]

    def loss(hidden, weights, bias, u, ids):
        return (u * losses.softmax_word_log_probs(hidden, weights, bias, ids)).sum()

    ids = jax.ShapeDtypeStruct((tokens, count), jnp.int32)
    compiled = jax.jit(jax.grad(loss, (0, 1, 2))).lower(*table, ids).compile()
    rows, logits = 4 * tokens * count * size, 4 * tokens * words
    assert compiled.memory_analysis().temp_size_in_bytes < min(rows * 3, logits / 4)


@pytest.mark.parametrize(
    ("ids", "error"),
    [
        ([[0, 13], [1, 2]], r"words has 13 at \[0, 1\]: give ids from 0 to 12"),
        ([[0.0, 1.0], [1.0, 2.0]], "words is of the type float.*: give whole numbers"),
        ([[0, 1]], r"words has the shape \(1, 2\)"),
    ],
)
def test_wrong_words(random, ids, error):
    table = [jnp.float32(array) for array in problem(random, 13).values()]
    with pytest.raises((ValueError, TypeError), match=error):
        losses.softmax_word_log_probs(table[0][:2], *table[1:], np.array(ids))


def test_ids_of_no_word_are_nan_in_compiled_code(random):
    table = [jnp.float32(array) for array in problem(random, 13).values()]
    ids = jnp.zeros((TOKENS, 2), int).at[2, 1].set(-1).at[3, 0].set(13)

    def function(*arguments):
        log_probs = losses.softmax_word_log_probs(*arguments)
        return jnp.nansum(log_probs), log_probs

    gradients, actual = jax.jit(jax.grad(function, (0, 1, 2), has_aux=True))(*table, ids)
    np.testing.assert_array_equal(np.isnan(actual), (ids < 0) | (ids == 13))
    assert all(np.isfinite(gradient).all() for gradient in gradients)


@pytest.mark.usefixtures("float64")
def test_divergence_of_stored_words_and_the_rest(random):
    p = np.log(random.dirichlet(np.ones(13), size=3))
    q = np.log(random.dirichlet(np.ones(13), size=3))
    u = random.normal(size=3)

    def formula(arrays):
        total = 0.0
        for weight, log_p, log_q in zip(u, arrays["p"], arrays["q"], strict=True):
            rest_p, rest_q = 1 - np.exp(log_p).sum(), 1 - np.exp(log_q).sum()
            divergence = (np.exp(log_p) * (log_p - log_q)).sum() + rest_p * np.log(rest_p / rest_q)
            total += weight * divergence
        return total

    def function(p, q):
        return u @ losses.top_k_kl_divergence(p, q)

    assert_values_and_gradients([function], {"p": p[:, :4], "q": q[:, :4]}, formula)


def test_all_words_leave_no_rest(random):
    """And stored words without mass add nothing."""
    p, q = random.dirichlet(np.ones(5), size=2).astype(np.float32)
    p[0], q[1:] = 0, q[1:] + q[0] / 4
    p, q = p / p.sum(), q / q.sum()
    expected = sum(a * np.log(a / b) for a, b in zip(p[1:], q[1:], strict=True))
    with np.errstate(divide="ignore"):
        log_p, log_q = np.log(p), np.log(q)
    value, gradient = jax.value_and_grad(losses.top_k_kl_divergence, 1)(log_p, log_q)
    np.testing.assert_allclose(value, expected, atol=1e-5)
    np.testing.assert_allclose(gradient[1:], -p[1:], atol=1e-4)
