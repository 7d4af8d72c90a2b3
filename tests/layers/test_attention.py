"""Attention against loops in numpy, its gradients against finite differences and plain autodiff."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import examples, references
from zoo.attention import Bahdanau, Luong
from zoo.errors import UserError
from zoo.layers import attention

BATCH, TIME, SOURCE, SIZE, MEMORY = 3, 5, 4, 7, 6
KINDS = {
    "luong": Luong(),
    "luong, larger": Luong(size=9),
    "bahdanau": Bahdanau(),
    "bahdanau, units": Bahdanau(size=2, units=8),
}
# A full row, one with padding on the left, and one without memory.
MASK = np.array([[True] * 4, [False, False, True, True], [False] * 4])


# The others stand for these two: they have the other sizes, given and not.
SLOW = {"luong, larger", "bahdanau"}


@pytest.fixture(
    params=[
        pytest.param(kind, id=name, marks=pytest.mark.slow if name in SLOW else ())
        for name, kind in KINDS.items()
    ]
)
def component(request):
    return request.param


def problem(component, random, batch=BATCH):
    """(params, hidden, memory)."""
    params = examples.random_params(component, random, SIZE, MEMORY, scale=0.6)
    hidden = jnp.asarray(random.normal(size=(batch, TIME, SIZE)))
    return params, hidden, jnp.asarray(random.normal(size=(batch, SOURCE, MEMORY)))


def score(params, h, m):
    """s(h, m) of two vectors."""
    if "vector" in params:
        inside = h @ params["queries"] + m @ params["keys"] + params["keys_bias"]
        return np.tanh(inside) @ params["vector"]
    return h @ (m @ params["keys"])


def reference(params, hidden, memory, mask):
    """(states, weights), a loop a sum."""
    params = {name: np.asarray(array, np.float64) for name, array in params.items()}
    hidden, memory = np.asarray(hidden, np.float64), np.asarray(memory, np.float64)
    states = np.zeros((*hidden.shape[:2], len(params["state_bias"])))
    weights = np.zeros((*hidden.shape[:2], memory.shape[1]))
    for row, time in np.ndindex(hidden.shape[:2]):
        h, context = hidden[row, time], np.zeros(memory.shape[2])
        places = np.flatnonzero(mask[row])
        scores = [score(params, h, memory[row, place]) for place in places]
        for place, place_score in zip(places, scores, strict=True):
            weights[row, time, place] = np.exp(place_score - references.log_sum_exp(scores))
            context += weights[row, time, place] * memory[row, place]
        context_and_hidden = np.concatenate([context, h])
        states[row, time] = np.tanh(context_and_hidden @ params["state"] + params["state_bias"])
    return states, weights


@pytest.mark.usefixtures("float64")
def test_values_are_those_of_a_loop(component, random):
    params, hidden, memory = problem(component, random)
    states, weights = jax.jit(component.apply)(params, hidden, memory, jnp.asarray(MASK))
    expected_states, expected_weights = reference(params, hidden, memory, MASK)
    np.testing.assert_allclose(states, expected_states, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(weights, expected_weights, rtol=1e-12, atol=1e-13)
    assert states.shape[-1] == component.output_size(SIZE)
    np.testing.assert_array_equal(np.where(MASK[:, None], 0, weights), 0)
    np.testing.assert_allclose(weights.sum(-1), [[1] * TIME, [1] * TIME, [0] * TIME])


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("name", ["luong", "bahdanau"])
def test_gradients_are_those_of_finite_differences(random, name):
    component = KINDS[name]
    params, hidden, memory = problem(component, random)
    arrays = {**params, "hidden": hidden[:, :2], "memory": memory}
    factors = random.normal(size=(BATCH, 2, SIZE)), random.normal(size=(BATCH, 2, SOURCE))

    @jax.jit
    def weighted_sum(arrays):
        params = {name: arrays[name] for name in arrays if name not in ("hidden", "memory")}
        states, weights = component.apply(params, arrays["hidden"], arrays["memory"], MASK)
        return (states * factors[0]).sum() + (weights * factors[1]).sum()

    gradients = jax.grad(weighted_sum)(arrays)
    expected = references.finite_differences(weighted_sum, arrays)
    for name, gradient in gradients.items():
        assert np.abs(gradient).max() > 1e-3, name
        np.testing.assert_allclose(gradient, expected[name], rtol=1e-6, atol=1e-8, err_msg=name)
    np.testing.assert_array_equal(gradients["memory"][~MASK], 0)


def test_additive_scores_hold_little(random):
    """Less than the [B, T, S, A] numbers of the formula, with gradients."""
    shapes = (8, 64, 32), (8, 64, 32), (32,)
    arguments = [jnp.asarray(random.normal(size=shape), jnp.float32) for shape in shapes]
    gradient = jax.grad(lambda *x: attention.additive_scores(*x).sum(), argnums=(0, 1, 2))
    compiled = jax.jit(gradient).lower(*arguments).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < 8 * 64 * 64 * 32 * 4 / 4


@pytest.mark.usefixtures("float64")
def test_hypotheses_look_at_the_memory_of_their_sentence(component, random):
    params, hidden, memory = problem(component, random)
    apply, mask = jax.jit(component.apply), jnp.asarray(MASK)
    states, weights = apply(params, hidden, memory, mask)
    prepared = jax.jit(component.prepared)(params, memory, mask)
    # TIME hypotheses a sentence, side by side, one step; with a time axis, and without.
    rows = hidden.reshape(BATCH * TIME, SIZE)
    for step in (rows, rows[:, None]):
        results = apply(params, step, memory, mask, prepared=prepared)
        for actual, desired in zip(results, (states, weights), strict=True):
            assert actual.shape[:-1] == step.shape[:-1]
            np.testing.assert_allclose(actual.reshape(desired.shape), desired, rtol=1e-12)
    # Three hypotheses of two positions each.
    hypotheses = jnp.concatenate([hidden, hidden[:, :1]], axis=1).reshape(BATCH * 3, 2, SIZE)
    states_of_rows, _ = apply(params, hypotheses, memory, mask)
    np.testing.assert_allclose(states_of_rows.reshape(BATCH, 6, -1)[:, :TIME], states, rtol=1e-12)


def test_padding_is_not_looked_at_even_if_it_is_no_number(component, random):
    params, hidden, memory = problem(component, random)
    spoilt = jnp.where(jnp.asarray(MASK)[:, :, None], memory, jnp.nan)

    @jax.jit
    def evaluate(params, hidden, memory):
        def total(params, hidden, memory):
            states, weights = component.apply(params, hidden, memory, jnp.asarray(MASK))
            return (states**2).sum() + (weights**2).sum(), (states, weights)

        return jax.grad(total, argnums=(0, 1, 2), has_aux=True)(params, hidden, memory)

    results, expected = evaluate(params, hidden, spoilt), evaluate(params, hidden, memory)
    for actual, desired in zip(jax.tree.leaves(results), jax.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(actual, desired)
        assert np.isfinite(actual).all()


def test_large_scores_do_not_overflow():
    scores = jnp.asarray([[[1e30, -1e30, 3.0], [-3e38, -3e38, -3e38]]])
    mask = jnp.asarray([[True, True, False]])
    weights = attention.masked_softmax(scores, mask)
    np.testing.assert_array_equal(weights, [[[1, 0, 0], [0.5, 0.5, 0]]])
    with jax.debug_nans(True):
        slopes = jax.grad(lambda s: (attention.masked_softmax(s, mask)[..., 0] ** 2).sum())
        gradient = jax.jit(slopes)(scores)
    np.testing.assert_array_equal(gradient[0, 0], 0)


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
@pytest.mark.slow
def test_parameters_of_few_bits_give_float32_states_and_weights(component, random, dtype):
    params, hidden, memory = problem(component, random)
    narrow = jax.tree.map(lambda x: x.astype(dtype), (params, hidden, memory))
    apply, mask = jax.jit(component.apply), jnp.asarray(MASK)
    states, weights = apply(*narrow, mask)
    assert (states.dtype, weights.dtype) == (jnp.float32, jnp.float32)
    expected, expected_weights = apply(params, hidden, memory, mask)
    np.testing.assert_allclose(states.astype(jnp.float32), expected, atol=0.15)
    np.testing.assert_allclose(weights, expected_weights, atol=0.1)
    np.testing.assert_allclose(weights[:2].sum(-1), 1, rtol=1e-6)
    gradients = jax.grad(
        lambda p, h, m: component.apply(p, h, m, mask)[0].sum().astype(jnp.float32)
    )
    assert {leaf.dtype for leaf in jax.tree.leaves(gradients(*narrow))} == {jnp.dtype(dtype)}


@pytest.mark.parametrize(("rows", "batch", "time"), [(0, 0, TIME), (BATCH, BATCH, 0)])
def test_of_nothing_the_results_are_empty(component, random, rows, batch, time):
    params, _, _ = problem(component, random)
    memory, mask = jnp.ones((batch, SOURCE, MEMORY)), jnp.ones((batch, SOURCE), bool)
    apply = jax.jit(component.apply)
    states, weights = apply(params, jnp.ones((rows, time, SIZE)), memory, mask)
    assert states.shape == (rows, time, component.output_size(SIZE))
    assert weights.shape == (rows, time, SOURCE)


def test_no_places_at_all(component, random):
    params, hidden, memory = problem(component, random)
    mask = jnp.ones((BATCH, 0), bool)
    states, weights = jax.jit(component.apply)(params, hidden, memory[:, :0], mask)
    assert weights.shape == (BATCH, TIME, 0)
    hidden_part = params["state"][MEMORY:]
    expected = np.tanh(hidden @ hidden_part + params["state_bias"][None, None])
    np.testing.assert_allclose(states, expected, rtol=1e-5, atol=1e-6)


def test_new_parameters_and_their_sizes(component):
    params = component.init(jax.random.key(0), SIZE, MEMORY)
    size = component.size or SIZE
    shapes = {"state": (MEMORY + SIZE, size), "state_bias": (size,)}
    if isinstance(component, Luong):
        shapes |= {"keys": (MEMORY, SIZE)}
    else:
        units = component.units or SIZE
        shapes |= {"queries": (SIZE, units), "keys": (MEMORY, units)}
        shapes |= {"keys_bias": (units,), "vector": (units,)}
    assert {name: array.shape for name, array in params.items()} == shapes
    for name, array in params.items():
        assert (array == 0).all() if "bias" in name else 0.3 < np.abs(array).max() * 6**0.5 < 2.5


def test_what_cannot_be_is_refused(component, random):
    params, hidden, memory = problem(component, random)
    with pytest.raises(ValueError, match="hidden has 2 rows, and the memory 3"):
        component.apply(params, hidden[:2], memory, jnp.asarray(MASK))
    with pytest.raises(UserError, match=r"size of Luong is -1"):
        Luong(size=-1)
    with pytest.raises(UserError, match=r"size of Bahdanau is -1"):
        Bahdanau(size=-1)
    with pytest.raises(UserError, match=r"units of Bahdanau is -1"):
        Bahdanau(units=-1)
