"""States that are computed again in the backward pass: the same gradients, in less memory."""

import dataclasses

import jax
import jax.numpy as jnp
import pytest

from tests.layers import test_every_core
from zoo.cores import GRU, LSTM, Elman
from zoo.errors import UserError

# An n-gram core has no states along time to keep.
CORES = {
    name: core
    for name, core in test_every_core.DROPPING_CORES.items()
    if "variational" not in name and "grams" not in name
}
FAST = {"elman"}
CASES = [name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in CORES]


def with_chunks(core, length):
    inner = getattr(core, "core", None)  # of a bidirectional one
    if inner is not None:
        return dataclasses.replace(core, core=with_chunks(inner, length))
    return dataclasses.replace(core, rematerialise=length)


@pytest.mark.parametrize("length", [4, pytest.param(9, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", CASES)
def test_gradients_are_equal(name, length, random):
    """Of six positions: four and a shorter chunk, or all at once; dropout and resets on."""
    core = CORES[name]
    params, inputs, carry = test_every_core.core_problem(core, random)
    reset = jnp.asarray(random.uniform(size=inputs.shape[:2]) < 0.3)
    weights = jnp.asarray(random.normal(size=(3, 6, core.output_size)))

    def results(core):
        def loss(params, inputs, carry):
            hidden, last = core.apply(params, inputs, carry, reset=reset, key=jax.random.key(2))
            total = sum(jnp.sum(jnp.sin(leaf)) for leaf in jax.tree.leaves(last))
            return jnp.sum(weights * hidden) + total, (hidden, last)

        return jax.jit(jax.value_and_grad(loss, argnums=(0, 1, 2), has_aux=True))(
            params, inputs, carry
        )

    actual, expected = results(with_chunks(core, length)), results(core)
    test_every_core.assert_trees_close(actual, expected, rtol=2e-5, atol=2e-6)


def temporary_bytes(core, time):
    """What the gradient of a window needs besides its arguments and results."""
    params = jax.eval_shape(lambda: core.init(jax.random.key(0), 8))
    inputs = jax.ShapeDtypeStruct((2, time, 8), jnp.float32)
    carry = jax.eval_shape(lambda: core.initial_carry(2))

    def loss(params, inputs, carry):
        return jnp.sum(jnp.square(core.apply(params, inputs, carry)[0]))

    compiled = jax.jit(jax.grad(loss)).lower(params, inputs, carry).compile()
    return compiled.memory_analysis().temp_size_in_bytes


@pytest.mark.parametrize(
    "core", [LSTM(16), pytest.param(GRU(16), marks=pytest.mark.slow)], ids=["lstm", "gru"]
)
def test_a_long_window_takes_less_memory(core):
    whole_bytes, in_chunks = (temporary_bytes(with_chunks(core, n), 512) for n in (0, 16))
    assert in_chunks < 0.5 * whole_bytes


@pytest.mark.parametrize("core", [LSTM, GRU, Elman])
def test_a_chunk_has_no_negative_length(core):
    with pytest.raises(UserError, match=r"rematerialise of .* is -1: give at least 0"):
        core(size=3, rematerialise=-1)
