"""The bidirectional core against two loops over each text, one from either end."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import examples, references
from zoo.cores import GRU, LSTM, Bidirectional
from zoo.errors import UserError
from zoo.heads import Softmax
from zoo.layers.bidirectional import backward_order
from zoo.models import LanguageModel

BATCH, TIME, SIZE, INPUT_SIZE = 3, 5, 7, 4
RESET = np.zeros((BATCH, TIME), bool)
RESET[0, [0, 3]] = RESET[2, [1, 2, 4]] = True


def texts(row, reset):
    """(start, stop, whether a reset begins it) of each text of a row."""
    bounds = [0, *np.flatnonzero(reset[row]), reset.shape[1]]
    for start, stop in itertools.pairwise(bounds):
        if start < stop:
            yield start, stop, reset[row, start]


def reference(inputs, params, carry, reset):
    """(hidden [B, T, 2 D], the last states, forward and backward, [B, D] each)."""
    hidden, last = np.zeros((BATCH, TIME, 2 * SIZE)), np.zeros((2, BATCH, SIZE))
    for row in range(BATCH):
        for start, stop, begins in texts(row, reset):
            text = np.asarray(inputs)[row : row + 1, start:stop]
            for way, (name, x) in enumerate([("forward", text), ("backward", text[:, ::-1])]):
                begin = np.zeros((1, SIZE)) if begins else carry[way][0][row : row + 1]
                states, end = references.gru_layer(x, params[name][0], begin)
                states = states[0][::-1] if way else states[0]
                hidden[row, start:stop, way * SIZE : (way + 1) * SIZE] = states
                last[way, row] = end[0]
    return hidden, last


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("reset", [None, RESET], ids=["no reset", "resets"])
def test_values_are_those_of_two_loops(random, reset):
    core = Bidirectional(GRU(SIZE))
    params = examples.random_params(core, random, INPUT_SIZE, scale=0.7)
    carry = examples.randomised(core.initial_carry(BATCH), random)
    inputs = jnp.asarray(random.normal(size=(BATCH, TIME, INPUT_SIZE)))
    hidden, last = jax.jit(core.apply)(params, inputs, carry, reset=reset)
    reset = np.zeros_like(RESET) if reset is None else reset
    expected, expected_last = reference(inputs, params, carry, reset)
    np.testing.assert_allclose(hidden, expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose([way[0] for way in last], expected_last, rtol=1e-10, atol=1e-12)


@pytest.mark.usefixtures("float64")
def test_a_layer_reads_both_directions_of_the_layer_below(random):
    core = Bidirectional(GRU(SIZE), layers=2)
    params = examples.random_params(core, random, INPUT_SIZE, scale=0.7)
    carry = examples.randomised(core.initial_carry(BATCH), random)
    inputs = jnp.asarray(random.normal(size=(BATCH, TIME, INPUT_SIZE)))
    hidden, last = jax.jit(core.apply)(params, inputs, carry, reset=RESET)
    expected = inputs
    for layer in range(2):
        expected, expected_last = reference(expected, params[layer], carry[layer], RESET)
        found = [direction[0] for direction in last[layer]]
        np.testing.assert_allclose(found, expected_last, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(hidden, expected, rtol=1e-10, atol=1e-12)
    merged = core.decoder_carry(last)
    assert len(merged) == 2
    np.testing.assert_allclose(merged[1], last[1][0][0] + last[1][1][0])
    (forward, _), merge = last[0], dataclasses.replace(core, merge="forward")
    np.testing.assert_array_equal(merge.decoder_carry(last)[0], forward[0])


def test_texts_are_turned_round_where_they_stand():
    order = backward_order(jnp.asarray(RESET)).tolist()
    assert order == [[2, 1, 0, 4, 3], [4, 3, 2, 1, 0], [0, 1, 3, 2, 4]]


@pytest.mark.usefixtures("float64")
def test_gradients_are_those_of_finite_differences(random):
    core = Bidirectional(GRU(2))
    params = examples.random_params(core, random, 3, scale=0.7)
    inputs, reset = random.normal(size=(2, 3, 3)), RESET[1:, 1:4]
    weights = random.normal(size=(2, 3, 4))
    apply = jax.jit(core.apply)

    def weighted_sum(arrays):
        hidden, last = apply(params, arrays["inputs"], core.initial_carry(2), reset=reset)
        return (hidden * weights).sum() + sum(leaf.sum() for leaf in jax.tree.leaves(last))

    gradient = jax.grad(weighted_sum)({"inputs": jnp.asarray(inputs)})["inputs"]
    expected = references.finite_differences(weighted_sum, {"inputs": inputs})["inputs"]
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-8)


def test_carries_are_merged_for_a_decoder(random):
    core = Bidirectional(LSTM(SIZE, layers=2))
    carry = examples.randomised(core.initial_carry(BATCH), random)
    summed = core.decoder_carry(carry)
    assert jax.tree.structure(summed) == jax.tree.structure(core.core.initial_carry(BATCH))
    np.testing.assert_array_equal(summed[1][0], carry[0][1][0] + carry[1][1][0])
    beside = Bidirectional(core.core, merge="concatenate").decoder_carry(carry)
    twice = LSTM(2 * SIZE, layers=2).initial_carry(BATCH)
    assert jax.tree.map(jnp.shape, beside) == jax.tree.map(jnp.shape, twice)
    expected = np.concatenate([carry[0][0][1], carry[1][0][1]], axis=1)
    np.testing.assert_array_equal(beside[0][1], expected)
    assert core.core.decoder_carry(carry[0]) is carry[0]
    with pytest.raises(
        UserError, match="merge of Bidirectional is 'mean': give one of sum, concatenate"
    ):
        Bidirectional(merge="mean")


def test_directions_drop_other_numbers(random):
    core = Bidirectional(LSTM(SIZE, dropout=0.5))
    params = examples.random_params(core, random, INPUT_SIZE)
    inputs = jnp.asarray(random.normal(size=(BATCH, TIME, INPUT_SIZE)))
    hidden, _ = jax.jit(core.apply)(
        params, inputs, core.initial_carry(BATCH), key=jax.random.key(0)
    )
    forward, backward = np.split(np.asarray(hidden) == 0, 2, axis=-1)
    for memory_order in (backward, backward[:, ::-1]):
        assert 0.2 < (forward != memory_order).mean() < 0.8


def test_a_language_model_refuses_a_core_that_reads_on():
    with pytest.raises(UserError, match=r"^model\.core is Bidirectional, whose hidden"):
        LanguageModel(core=Bidirectional(), head=Softmax())
