"""The LSTM against a numpy loop, and its backward pass by hand against autodiff."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks import plain_scans
from tests import examples, references
from zoo.cores import LSTM
from zoo.layers.lstm import lstm

BATCH, TIME, SIZE, INPUT_SIZE = 3, 5, 7, 4
RESET = np.zeros((BATCH, TIME), bool)
RESET[0, [0, 3]] = RESET[2, [1, 2, 4]] = True


def recurrence_problem(random, reset, projection=0):
    """Arguments of `lstm`, the projection last if there is one."""
    arguments = [
        random.normal(size=(TIME, BATCH, 4 * SIZE)),
        random.normal(size=(projection or SIZE, 4 * SIZE)),
        random.normal(size=(BATCH, projection or SIZE)),
        random.normal(size=(BATCH, SIZE)),
        1.0 - reset.T[:, :, None],
    ]
    if projection:
        arguments.append(random.normal(size=(SIZE, projection)))
    return [jnp.asarray(argument) for argument in arguments]


@functools.cache
def with_transpose(function):
    """Jitted: (results, gradients of all arguments but `keep`) for cotangents of all results."""

    def forward_and_backward(cotangents, keep, *arguments):
        results, transpose = jax.vjp(lambda *x: function(*x, keep), *arguments)
        return results, transpose(cotangents)

    return jax.jit(forward_and_backward)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("reset", [np.zeros_like(RESET), RESET], ids=["no reset", "resets"])
@pytest.mark.parametrize("seen", ["all results", "hidden", "last hidden", "last cell"])
def test_recurrence_and_its_gradients_are_those_of_the_plain_scan(random, reset, seen):
    *arguments, keep = recurrence_problem(random, reset)
    last = random.normal(size=(2, BATCH, SIZE)) * [
        [[seen in ("all results", "last hidden")]],
        [[seen in ("all results", "last cell")]],
    ]
    hidden = random.normal(size=(TIME, BATCH, SIZE)) * (seen in ("all results", "hidden"))
    cotangents = jnp.asarray(hidden), (jnp.asarray(last[0]), jnp.asarray(last[1]))
    found = with_transpose(lstm)(cotangents, keep, *arguments)
    expected = with_transpose(plain_scans.lstm)(cotangents, keep, *arguments)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert np.abs(other).max() > 1e-3
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


@pytest.mark.usefixtures("float64")
def test_a_projected_recurrence_and_its_gradients_are_those_of_the_plain_scan(random):
    *arguments, keep, projection = recurrence_problem(random, RESET, projection=3)
    cotangents = (
        jnp.asarray(random.normal(size=(TIME, BATCH, 3))),
        tuple(jnp.asarray(random.normal(size=(BATCH, size))) for size in (3, SIZE)),
    )

    @functools.partial(jax.jit, static_argnums=0)
    def forward_and_backward(function, cotangents):
        results, transpose = jax.vjp(
            lambda projection, *x: function(*x, keep, projection), projection, *arguments
        )
        return results, transpose(cotangents)

    found = forward_and_backward(lstm, cotangents)
    expected = forward_and_backward(plain_scans.lstm, cotangents)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert np.abs(other).max() > 1e-3
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize(("layers", "projection"), [(1, 0), (2, 0), (3, 0), (2, 3)])
def test_values_are_those_of_a_loop(random, layers, projection):
    core = LSTM(SIZE, layers=layers, projection=projection)
    params = examples.random_params(core, random, INPUT_SIZE, scale=0.7)
    assert params[0]["input"].shape == (INPUT_SIZE, 4 * SIZE)
    carry = examples.randomised(core.initial_carry(BATCH), random)
    inputs = jnp.asarray(random.normal(size=(BATCH, TIME, INPUT_SIZE)))
    hidden, end = jax.jit(core.apply)(params, inputs, carry, reset=RESET)
    expected_hidden, expected_end = references.lstm(inputs, params, carry, RESET)
    np.testing.assert_allclose(hidden, expected_hidden, rtol=1e-10, atol=1e-12)
    for one, other in zip(jax.tree.leaves(end), jax.tree.leaves(expected_end), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


@pytest.mark.usefixtures("float64")
def test_gradients_of_a_layer_are_those_of_a_loop(random):
    core = LSTM(2)
    (params,) = examples.random_params(core, random, 3, scale=0.7)
    ((hidden, cell),) = examples.randomised(core.initial_carry(2), random)
    arrays = {
        **params,
        "inputs": jnp.asarray(random.normal(size=(2, 3, 3))),
        "hidden": hidden,
        "cell": cell,
    }
    reset = RESET[1:, 1:4]
    of_hidden, of_last = random.normal(size=(2, 3, 2)), random.normal(size=(2, 2, 2))

    def weighted_sum(hidden, last_hidden, last_cell):
        ends = (last_hidden * of_last[0]).sum() + (last_cell * of_last[1]).sum()
        return (hidden * of_hidden).sum() + ends

    def loss(arrays):
        params = {name: arrays[name] for name in ("input", "recurrent", "bias")}
        carry = ((arrays["hidden"], arrays["cell"]),)
        hidden, (last,) = core.apply((params,), arrays["inputs"], carry, reset=reset)
        return weighted_sum(hidden, *last)

    def expected_loss(arrays):
        hidden, *last = references.lstm_layer(
            arrays["inputs"], arrays, arrays["hidden"], arrays["cell"], reset
        )
        return weighted_sum(hidden, *last)

    gradients = jax.jit(jax.grad(loss))(arrays)
    expected = references.finite_differences(expected_loss, arrays)
    for name, gradient in gradients.items():
        np.testing.assert_allclose(gradient, expected[name], rtol=1e-6, atol=1e-8, err_msg=name)


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
    for one, other in zip(jax.tree.leaves(dropped_end), jax.tree.leaves(end), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_a_variational_mask_is_the_same_at_all_positions(random):
    masks, _ = masks_of(LSTM(SIZE, dropout=0.5, variational=True), random)
    np.testing.assert_allclose(masks, np.where(masks[:, :1] == 0, 0, 2 * np.ones(TIME)[:, None]))
    assert (masks[0, 0] != masks[1, 0]).any()


def test_input_dropout_is_on_the_inputs(random):
    core = LSTM(1, input_dropout=0.5)
    # Ones through a positive weight: an input that is dropped leaves the state at zero.
    weights = {"input": [[9.0, 0, 1, 9]], "recurrent": [[0.0, -99, 0, 0]], "bias": [0.0, -99, 0, 0]}
    params = ({name: jnp.asarray(value) for name, value in weights.items()},)
    hidden, _ = jax.jit(core.apply)(
        params, jnp.ones((8, 40, 1)), core.initial_carry(8), key=jax.random.key(0)
    )
    kept = np.tanh(np.tanh(2.0))
    np.testing.assert_allclose(hidden, np.where(np.asarray(hidden) == 0, 0, kept), rtol=1e-4)
    assert 0.35 < (np.asarray(hidden) == 0).mean() < 0.65


def test_layers_have_masks_of_their_own():
    """Were the masks of inputs, between layers and of outputs equal, half would live in each."""
    core = LSTM(SIZE, layers=2, dropout=0.5, input_dropout=0.5, variational=True)
    # Each cell of a layer sees its own place below, and keeps nothing.
    eye, nothing = np.eye(SIZE, dtype=np.float32), np.zeros((SIZE, SIZE), np.float32)
    weights = {
        "input": jnp.asarray(np.concatenate([nothing, nothing, 9 * eye, nothing], axis=1)),
        "recurrent": jnp.zeros((SIZE, 4 * SIZE)),
        "bias": jnp.zeros(4 * SIZE),
    }
    hidden, ((first, _), (second, _)) = jax.jit(core.apply)(
        (weights, weights), jnp.ones((64, 1, SIZE)), core.initial_carry(64), key=jax.random.key(0)
    )
    alive = [(np.asarray(x) != 0).mean() for x in (first, second, hidden[:, 0])]
    np.testing.assert_allclose(alive, [0.5, 0.25, 0.125], atol=0.08)
