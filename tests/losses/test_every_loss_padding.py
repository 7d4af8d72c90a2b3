"""Padding may hold anything: a token of weight 0 has no part in a sum, nor in its gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.marks import slow
from zoo import losses
from zoo.base.arrays import sparse_products

TOKENS, WORDS, SIZE, COMPONENTS = 5, 13, 7, 3
PADDING = 2


def softmax(params, state, u, block):
    return losses.weighted_softmax_loss(state["hidden"], *params, state["targets"], u, block)


def measured(params, state, u, block):
    log_measure = jax.tree_util.Partial(lambda contexts: contexts)
    measure = {"log_measure": log_measure, "contexts": state["log_m"]}
    return losses.weighted_softmax_loss(
        state["hidden"], *params, state["targets"], u, block, **measure
    )


def mixture(params, state, u, block):
    arguments = state["contexts"], state["log_prior"], *params, state["targets"], u, block
    return losses.weighted_mixture_loss(*arguments)


def sparse_log_linear(params, state, u, block):
    rows, columns, values = np.arange(WORDS), np.arange(WORDS), np.ones(WORDS)
    phi = sparse_products.levels(rows, columns, values, WORDS)
    tables = {"of_signature": phi, "of_feature": phi, "log_mass": jnp.zeros(WORDS)}
    arguments = tables, *params, state["hidden"], state["targets"], u
    return losses.weighted_sparse_log_linear_loss(*arguments)


@pytest.mark.parametrize("block", [None, 2])
@pytest.mark.parametrize("anything", [np.nan, *slow(3e38)])
@pytest.mark.parametrize("loss", [softmax, measured, mixture, sparse_log_linear])
def test_states_of_padding_may_hold_anything(loss, anything, block, random):
    if block and loss in (measured, sparse_log_linear):
        pytest.skip("chooses its blocks itself")
    prior = jax.nn.log_softmax(random.normal(size=(TOKENS, COMPONENTS)))
    state = {
        "hidden": random.normal(size=(TOKENS, SIZE)),
        "contexts": random.normal(size=(TOKENS, COMPONENTS, SIZE)),
        "log_prior": np.array(prior),
        "log_m": random.normal(size=(TOKENS, WORDS)),
    }
    state = {name: np.asarray(array, np.float32) for name, array in state.items()}
    state["targets"] = random.integers(0, WORDS, TOKENS).astype(np.int32)
    params = random.normal(size=(WORDS, SIZE)), random.normal(size=WORDS)
    params = tuple(np.asarray(array, np.float32) for array in params)
    u = np.array([1.0, 0.5, 0.0, 2.0, 1.0], np.float32)
    is_present = np.arange(TOKENS) != PADDING
    present_state = {name: array[is_present] for name, array in state.items()}
    floats = ("hidden", "contexts", "log_prior")

    def sum_of(params, floats, state, u):
        return loss(params, {**state, **floats}, u, block)

    gradient = jax.jit(jax.value_and_grad(sum_of, (0, 1, 3)))
    expected, (expected_gradients, expected_state_gradients, expected_weight_gradients) = gradient(
        params, {name: present_state[name] for name in floats}, present_state, u[is_present]
    )
    for name in ("hidden", "contexts"):
        state[name][PADDING] = anything
    if anything != 3e38:
        state["log_prior"][PADDING] = np.nan
    value, (params_gradients, state_gradients, weight_gradients) = gradient(
        params, {name: state[name] for name in floats}, state, u
    )
    np.testing.assert_allclose(value, expected, rtol=1e-6)
    for array, expected_gradient in zip(params_gradients, expected_gradients, strict=True):
        np.testing.assert_allclose(array, expected_gradient, rtol=1e-4, atol=1e-6)
    for name in floats:
        np.testing.assert_array_equal(state_gradients[name][PADDING], 0)
        np.testing.assert_allclose(
            state_gradients[name][is_present], expected_state_gradients[name], rtol=1e-4, atol=1e-6
        )
    np.testing.assert_allclose(weight_gradients[is_present], expected_weight_gradients, rtol=1e-5)
    assert weight_gradients[PADDING] == 0
