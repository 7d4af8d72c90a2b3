"""The LSTM's projection, its parameters at the start of training, and its dropout."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import examples
from zoo.base.arrays import products, sharded_functions
from zoo.cores import LSTM
from zoo.layers.lstm import lstm

BATCH, TIME, SIZE, INPUT_SIZE = 3, 5, 7, 4
RESET = np.zeros((BATCH, TIME), bool)
RESET[0, [0, 3]] = RESET[2, [1, 2, 4]] = True


def plain_scan(projections, recurrent, hidden, cell, keep, projection, mask, peepholes):
    def step(carry, inputs):
        inputs_product, mask = inputs
        hidden, cell = carry[0] * mask, carry[1] * mask
        scores = inputs_product + hidden @ recurrent
        input_gate, forget, candidate, output = jnp.split(scores, 4, axis=-1)
        if peepholes is not None:
            input_gate += peepholes[None, 0] * cell
            forget += peepholes[None, 1] * cell
        cell = jax.nn.sigmoid(forget) * cell + jax.nn.sigmoid(input_gate) * jnp.tanh(candidate)
        if peepholes is not None:
            output += peepholes[None, 2] * cell
        hidden = (jax.nn.sigmoid(output) * jnp.tanh(cell)) @ projection
        return (hidden, cell), hidden

    carry, outputs = jax.lax.scan(step, (hidden, cell), (projections, keep))
    return outputs, carry


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("has_peepholes, as_columns", [(False, False), (True, False), (True, True)])
def test_a_projected_recurrence_and_its_gradients_are_those_of_the_plain_scan(
    random, has_peepholes, as_columns, monkeypatch
):
    if as_columns:  # as the products of few rows with large recurrent weights
        monkeypatch.setattr(sharded_functions, "is_local", lambda tree: True)
        for bound in ("TRANSPOSED", "COLUMNS"):
            monkeypatch.setattr(products, bound, 0)
    shapes = (TIME, BATCH, 4 * SIZE), (3, 4 * SIZE), (BATCH, 3), (BATCH, SIZE), (SIZE, 3)
    *arguments, projection = (jnp.asarray(random.normal(size=shape)) for shape in shapes)
    others = projection, jnp.asarray(random.normal(size=(3, SIZE)))
    if not has_peepholes:
        others = projection, None
    keep = jnp.asarray(1.0 - RESET.T[:, :, None])
    cotangents = (
        jnp.asarray(random.normal(size=(TIME, BATCH, 3))),
        tuple(jnp.asarray(random.normal(size=(BATCH, size))) for size in (3, SIZE)),
    )

    @functools.partial(jax.jit, static_argnums=0)
    def forward_and_backward(function, cotangents):
        results, transpose = jax.vjp(
            lambda others, *x: function(*x, keep, others[0], None, others[1]), others, *arguments
        )
        return results, transpose(cotangents)

    actual = forward_and_backward(lstm, cotangents)
    expected = forward_and_backward(plain_scan, cotangents)
    for actual_leaf, expected_leaf in zip(
        jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True
    ):
        assert np.abs(expected_leaf).max() > 1e-3
        np.testing.assert_allclose(actual_leaf, expected_leaf, rtol=1e-10, atol=1e-12)


def test_new_parameters():
    first, second = LSTM(SIZE, layers=2, forget_bias=1.5).init(jax.random.key(0), INPUT_SIZE)
    assert first["input"].shape == (INPUT_SIZE, 4 * SIZE)
    assert second["input"].shape == first["recurrent"].shape == (SIZE, 4 * SIZE)
    for weights in (first, second):
        # The gates' order: input, forget, candidate, output.
        np.testing.assert_array_equal(weights["bias"], np.repeat([0, 1.5, 0, 0], SIZE))
        for name in ("input", "recurrent"):
            assert 0.9 * SIZE**-0.5 < np.abs(weights[name]).max() <= SIZE**-0.5
    assert np.abs(first["recurrent"] - second["recurrent"]).max() > 0.1
    assert np.abs(second["input"] - second["recurrent"]).max() > 0.1


def masks_of(core, random):
    """Hidden states with dropout over those without: the masks [B, T, D] of the last layer."""
    params = examples.random_params(core, random, INPUT_SIZE)
    inputs = jnp.asarray(random.normal(size=(BATCH, TIME, INPUT_SIZE)))
    carry = examples.randomised(core.initial_carry(BATCH), random)
    apply = jax.jit(core.apply)
    hidden, end = apply(params, inputs, carry)
    dropped, dropped_end = apply(params, inputs, carry, key=jax.random.key(4))
    return np.asarray(dropped / hidden), (end, dropped_end)


def test_dropout_is_on_outputs_and_not_on_the_recurrence(random):
    masks, (end, dropped_end) = masks_of(LSTM(SIZE, dropout=0.5), random)
    np.testing.assert_allclose(masks, np.where(masks == 0, 0, 2), rtol=1e-5)
    assert 0.2 < (masks == 0).mean() < 0.8
    assert (masks[:, 1:] != masks[:, :1]).any()
    for actual_leaf, expected_leaf in zip(
        jax.tree.leaves(dropped_end), jax.tree.leaves(end), strict=True
    ):
        np.testing.assert_allclose(actual_leaf, expected_leaf, rtol=1e-5, atol=1e-6)
