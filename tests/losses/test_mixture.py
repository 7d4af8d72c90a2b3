"""The mixture's weighted sum against a float64 loop and the gradients of the per-token loss."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import references
from zoo.base.arrays import sharded_functions
from zoo.losses import mixture, softmax, weighted_softmax

TOKENS, COMPONENTS, SIZE, WORDS = 7, 3, 5, 13
TOKEN_WEIGHTS = np.array([0.3, 0, 1, 2, 0, 0.7, 0.1])


def problem(random):
    contexts = random.normal(size=(TOKENS, COMPONENTS, SIZE))
    log_prior = np.log(random.dirichlet(np.ones(COMPONENTS), TOKENS))
    weights, bias = random.normal(size=(WORDS, SIZE)), random.normal(size=WORDS)
    return contexts, log_prior, weights, bias, random.integers(WORDS, size=TOKENS)


def losses_by_hand(contexts, log_prior, weights, bias, targets):
    probabilities = np.zeros(TOKENS)
    for n in range(TOKENS):
        for m in range(COMPONENTS):
            loss, _ = references.softmax_loss(
                contexts[n, m][None], weights, bias, targets[n : n + 1]
            )
            probabilities[n] += np.exp(log_prior[n, m] - loss[0])
    return -np.log(probabilities)


def sides(arguments, targets, block):
    def fused(*arguments):
        return 3 * mixture.weighted_mixture_loss(*arguments, targets, TOKEN_WEIGHTS, block)

    def per_token(*arguments):
        return 3 * (mixture.mixture_loss(*arguments, targets) @ TOKEN_WEIGHTS)

    places = tuple(range(4))
    return [jax.jit(jax.value_and_grad(f, places))(*arguments) for f in (fused, per_token)]


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize(("block", "words"), [(1, 13), (3, 13), (7, 13), (10, 13), (3, 4)])
def test_sum_and_gradients_in_blocks_of_tokens(random, block, words, monkeypatch):
    monkeypatch.setattr(sharded_functions, "is_local", lambda tree: True)
    monkeypatch.setattr(softmax, "LEAST_ROWS_AT_A_TIME", words)
    monkeypatch.setattr(weighted_softmax, "ENTRIES_AT_A_TIME", words)
    *arguments, targets = problem(random)
    (value, gradients), (other_value, expected_gradients) = sides(arguments, targets, block)
    expected = 3 * losses_by_hand(*arguments, targets) @ TOKEN_WEIGHTS
    np.testing.assert_allclose([value, other_value], expected, rtol=1e-12)
    for gradient, expected_gradient in zip(gradients, expected_gradients, strict=True):
        np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-9, atol=1e-12)


@pytest.mark.slow
@pytest.mark.usefixtures("float64")
def test_both_kinds_of_blocks_sum_alike_without_gradients(random, monkeypatch):
    *arguments, targets = problem(random)
    expected = losses_by_hand(*arguments, targets) @ TOKEN_WEIGHTS
    for minimum in (1, 10**6):
        monkeypatch.setattr(weighted_softmax, "LEAST_SENT_AT_A_TIME", minimum)
        monkeypatch.setattr(softmax, "LOGITS_AT_A_TIME", 2 * COMPONENTS * WORDS)
        total = mixture.weighted_mixture_loss(*arguments, targets, TOKEN_WEIGHTS)
        np.testing.assert_allclose(total, expected, rtol=1e-12)


def test_bfloat16_gradients_of_sure_tokens(random):
    """Where p(x) is near 1, expected and observed cancel: rounded one by one, little is left."""
    tokens, components = 20, 2
    shape = tokens, components, 16
    states = 1.5 * random.normal(size=(tokens, 1, 16)) + 0.1 * random.normal(size=shape)
    log_prior = np.log(random.dirichlet(np.ones(components), tokens)).astype(np.float32)
    words = random.normal(size=(65, 16)), random.normal(size=65)
    contexts, weights, bias = (jnp.asarray(x, jnp.bfloat16) for x in (states, *words))
    targets = (states[:, 0] @ words[0].T + words[1][None]).argmax(-1)

    def summed(contexts, weights):
        token_weights = np.ones(tokens, np.float32)
        arguments = contexts, log_prior, weights, bias, targets, token_weights
        return mixture.weighted_mixture_loss(*arguments, 7)

    gradients = jax.jit(jax.grad(summed, (0, 1)))(contexts, weights)
    assert [g.dtype for g in gradients] == [jnp.bfloat16] * 2
    arguments = contexts.reshape(-1, 16), weights, bias, np.repeat(targets, components)
    losses, _ = references.softmax_loss(*arguments)
    joint = np.exp(log_prior - losses.reshape(tokens, components))
    posterior = (joint / joint.sum(1, keepdims=True)).ravel()
    expected = references.softmax_gradients(*arguments, posterior, 0 * posterior)
    references.assert_rows_close(gradients[0].reshape(-1, 16), expected[0], 0.01)
    references.assert_rows_close(gradients[1], expected[1], 0.01)


def test_a_token_without_weight_gives_no_nan(random):
    *arguments, targets = problem(random)
    arguments = [jnp.asarray(x, jnp.float32) for x in arguments]
    arguments[1] = arguments[1].at[1].set(-jnp.inf)  # of weight 0: an infinite loss
    arguments[0] = arguments[0].at[4].set(3e38)  # of weight 0: its logits overflow
    (value, gradients), _ = sides(arguments, targets, 3)
    assert np.isfinite(value)
    assert all(np.isfinite(gradient).all() for gradient in gradients)
