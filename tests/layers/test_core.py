"""Layers and skip connections against numpy loops, their gradients against finite differences."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import examples, references
from tests.marks import slow
from zoo.base.arrays import products
from zoo.base.arrays.random_keys import Keys
from zoo.cores import GRU, LSTM, Elman
from zoo.errors import UserError
from zoo.layers import dropout

BATCH, TIME, SIZE, INPUT_SIZE = 3, 5, 7, 4
RESET = np.zeros((BATCH, TIME), bool)
RESET[0, [0, 3]] = RESET[2, [1, 2, 4]] = True
LAYERS = {
    "elman": (Elman, references.elman_layer),
    "relu": (
        functools.partial(Elman, activation="relu"),
        functools.partial(references.elman_layer, activation=lambda x: np.maximum(x, 0)),
    ),
    "sigmoid": (
        functools.partial(Elman, activation="sigmoid"),
        functools.partial(references.elman_layer, activation=references.sigmoid),
    ),
    "gru": (GRU, references.gru_layer),
    "lstm": (LSTM, references.lstm_layer),
    "peepholes": (functools.partial(LSTM, peepholes=True), references.lstm_layer),
}


def assert_trees_close(actual, expected, **tolerances):
    for actual_leaf, expected_leaf in zip(
        jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True
    ):
        np.testing.assert_allclose(actual_leaf, expected_leaf, **tolerances)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize(
    ("layers", "last_size", "skip"),
    [(1, 0, False), (3, 3, True)] + slow((1, 0, True), (3, 0, False), (3, 0, True), (3, 3, False)),
)
@pytest.mark.parametrize("name", LAYERS)
def test_values_are_those_of_a_loop(random, name, layers, last_size, skip):
    make, layer = LAYERS[name]
    core, last = make(SIZE, layers=layers, last_size=last_size, skip=skip), last_size or SIZE
    assert core.output_size == ((layers - 1) * SIZE + last if skip else last)
    params = examples.random_params(core, random, INPUT_SIZE, scale=0.7)
    carry = examples.randomised(core.initial_carry(BATCH), random)
    inputs = jnp.asarray(random.normal(size=(BATCH, TIME, INPUT_SIZE)))
    results = jax.jit(core.apply)(params, inputs, carry, reset=RESET)
    expected = references.stacked(layer, inputs, params, carry, RESET, skip)
    assert_trees_close(results, expected, rtol=1e-10, atol=1e-12)


def test_the_carry_of_another_number_of_layers_is_refused():
    core = GRU(SIZE, layers=2)
    params = core.init(jax.random.key(0), INPUT_SIZE)
    inputs = jnp.zeros((BATCH, TIME, INPUT_SIZE))
    carry = core.initial_carry(BATCH)
    for wrong in (carry[:1], carry * 2):
        with pytest.raises(ValueError, match=r"shorter|longer"):
            core.apply(params, inputs, wrong)


@pytest.mark.usefixtures("float64")
def test_a_projected_lstm_skips_with_its_projections(random):
    core = LSTM(SIZE, layers=3, projection=2, skip=True)
    assert core.output_size == 6
    params = examples.random_params(core, random, INPUT_SIZE, scale=0.7)
    assert [len(layer["input"]) for layer in params] == [4, 6, 6]
    carry = examples.randomised(core.initial_carry(BATCH), random)
    inputs = jnp.asarray(random.normal(size=(BATCH, TIME, INPUT_SIZE)))
    results = jax.jit(core.apply)(params, inputs, carry, reset=RESET)
    expected = references.lstm(inputs, params, carry, RESET, skip=True)
    assert_trees_close(results, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("name", LAYERS)
def test_gradients_are_those_of_a_loop(random, name):
    make, layer = LAYERS[name]
    core = make(2, layers=2, skip=True)
    params = examples.random_params(core, random, 3, scale=0.7)
    carry = examples.randomised(core.initial_carry(2), random)
    inputs, reset = jnp.asarray(random.normal(size=(2, 3, 3))), RESET[1:, 1:4]
    leaves, tree = jax.tree.flatten((params, carry, inputs))
    ends = len(jax.tree.leaves(carry))
    weights = random.normal(size=(2, 3, 4)), random.normal(size=(ends, 2, 2))
    arrays = {f"{place:02}": leaf for place, leaf in enumerate(leaves)}

    def weighted_sum(apply, arrays):
        params, carry, inputs = jax.tree.unflatten(tree, arrays.values())
        hidden, last = apply(params, inputs, carry)
        ends = jax.tree.leaves(last)
        return (hidden * weights[0]).sum() + sum(
            (end * w).sum() for end, w in zip(ends, weights[1], strict=True)
        )

    apply = functools.partial(core.apply, reset=reset)
    gradients = jax.jit(jax.grad(functools.partial(weighted_sum, apply)))(arrays)
    loop = functools.partial(references.stacked, layer, reset=reset, skip=True)
    expected = references.finite_differences(
        lambda arrays: weighted_sum(lambda p, x, c: loop(x, p, c), arrays), arrays
    )
    for place, gradient in gradients.items():
        assert np.abs(gradient).max() > 1e-4 or name == "relu"  # whose cells may all be 0
        np.testing.assert_allclose(gradient, expected[place], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
@pytest.mark.parametrize("name", ["elman", "gru", "lstm"])
@pytest.mark.slow
def test_parameters_of_few_bits_give_float32_states_and_a_carry_of_its_type(random, name, dtype):
    core = LAYERS[name][0](SIZE, layers=2, skip=True, dropout=0.5)
    params = examples.random_params(core, random, INPUT_SIZE, scale=0.5)
    inputs = jnp.asarray(random.normal(size=(BATCH, TIME, INPUT_SIZE)), jnp.float32)
    carry = core.initial_carry(BATCH)
    narrow = jax.tree.map(lambda x: x.astype(dtype), (params, inputs, carry))
    apply = jax.jit(core.apply)
    (hidden, _), carry_types = (
        apply(params, inputs, carry),
        apply(*narrow, reset=jnp.zeros((BATCH, TIME), bool)),
    )
    assert carry_types[0].dtype == jnp.float32
    assert {leaf.dtype for leaf in jax.tree.leaves(carry_types[1])} == {jnp.dtype(dtype)}
    np.testing.assert_allclose(carry_types[0].astype(jnp.float32), hidden, atol=0.05)


def test_new_parameters():
    first, second = GRU(SIZE, layers=2, skip=True).init(jax.random.key(0), INPUT_SIZE)
    shapes = {name: array.shape for name, array in second.items()}
    assert shapes == {
        "input": (SIZE + INPUT_SIZE, 3 * SIZE),
        "recurrent": (SIZE, 3 * SIZE),
        "bias": (3 * SIZE,),
        "recurrent_bias": (SIZE,),
    }
    (third,) = Elman(SIZE).init(jax.random.key(0), INPUT_SIZE)
    assert {name: array.shape for name, array in third.items()} == {
        "input": (INPUT_SIZE, SIZE),
        "recurrent": (SIZE, SIZE),
        "bias": (SIZE,),
    }
    for weights in (first, second, third):
        for name, array in weights.items():
            if "bias" in name:
                np.testing.assert_array_equal(array, 0)
            else:
                assert 0.8 * SIZE**-0.5 < np.abs(array).max() <= SIZE**-0.5


def test_settings_that_cannot_be_are_refused():
    with pytest.raises(UserError, match=r"activation of Elman is 'step': give one of tanh, sigm"):
        Elman(activation="step")
    with pytest.raises(UserError, match=r"layers of \w+ is 0"):
        GRU(layers=0)
    with pytest.raises(UserError, match=r"dropout of \w+ is 1"):
        Elman(dropout=1.0)
    with pytest.raises(UserError, match=r"last_dropout of Elman is 1\.5"):
        Elman(last_dropout=1.5)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("large", [*slow(False), True], ids=["copied", "large"])
@pytest.mark.parametrize(
    "core",
    [
        LSTM(SIZE, layers=2, projection=3, recurrent_dropout=0.5),
        *slow(*(kind(SIZE, layers=2, recurrent_dropout=0.5) for kind in (GRU, Elman))),
    ],
    ids=lambda core: type(core).__name__,
)
def test_dropped_recurrent_weights_have_one_mask_for_all_rows_and_positions(
    random, core, large, monkeypatch
):
    """A core of the weights U m has the same values, and its gradient times m is that of U."""
    if large:
        monkeypatch.setattr(products, "TRANSPOSED", 0)
        monkeypatch.setattr(dropout, "DRAWN_AT_A_TIME", 2 * core.blocks * SIZE)
    params = examples.random_params(core, random, INPUT_SIZE)
    inputs = jnp.asarray(random.normal(size=(BATCH, TIME, INPUT_SIZE)))
    carry = examples.randomised(core.initial_carry(BATCH), random)
    slopes = random.normal(size=(BATCH, TIME, core.output_size))
    key = jax.random.key(4)

    def value(params, key):
        hidden, _ = core.apply(params, inputs, carry, reset=RESET, key=key)
        return (hidden * slopes).sum(), hidden

    keys = Keys.from_key(key, BATCH)
    masks = [
        np.where(core._weight_mask(layer["recurrent"], keys, place).is_kept, 2, 0)
        for place, layer in enumerate(params)
    ]
    assert all(0.2 < (mask == 0).mean() < 0.8 for mask in masks)
    assert (masks[0] != masks[1]).any()

    def times_masks(layers):
        pairs = zip(layers, masks, strict=True)
        return tuple({**layer, "recurrent": layer["recurrent"] * mask} for layer, mask in pairs)

    differentiate = jax.jit(jax.grad(value, has_aux=True))
    gradients, hidden = differentiate(params, key)
    expected, expected_hidden = differentiate(times_masks(params), None)
    np.testing.assert_allclose(hidden, expected_hidden, rtol=1e-10, atol=1e-12)
    assert_trees_close(gradients, times_masks(expected), rtol=1e-9, atol=1e-12)
    assert np.abs(differentiate(params, None)[1] - hidden).max() > 0.01


@pytest.mark.slow
def test_a_masked_matrix_takes_less_than_two_copies_of_it():
    """A step keeps the masked U of each layer, and a byte an entry of its mask; no transpose."""

    def temporary_bytes(rate):
        core = LSTM(600, layers=2, recurrent_dropout=rate)
        params = core.init(jax.random.key(0), INPUT_SIZE)
        inputs = jnp.ones((BATCH, TIME, INPUT_SIZE))

        def loss(params, key):
            return core.apply(params, inputs, core.initial_carry(BATCH), key=key)[0].sum()

        compiled = jax.jit(jax.grad(loss)).lower(params, jax.random.key(1)).compile()
        return compiled.memory_analysis().temp_size_in_bytes

    matrix_bytes = 2 * 600 * 2400 * 4
    assert temporary_bytes(0.0) < 0.5 * matrix_bytes
    assert temporary_bytes(0.5) < 2 * matrix_bytes
