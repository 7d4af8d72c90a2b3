"""What is promised of every core. A new one joins by a line in CORES or DROPPING_CORES."""

import dataclasses
import functools
import itertools
import pathlib
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import examples
from zoo.base.arrays.random_keys import Keys
from zoo.cores import GRU, LSTM, Bidirectional, Core, Elman, LastWords, NGram

SIZE = 5


def core_of_the_page():
    """The core that a reader of docs/own_components.md saves."""
    page = pathlib.Path(__file__).parents[2] / "docs" / "own_components.md"
    (code,) = re.findall(r"`my_cores.py`:\n\n```python\n(.*?)```", page.read_text(), re.DOTALL)
    names = {}
    exec(code, names)
    return names["MinGRU"](SIZE)


CORES = {
    "lstm": LSTM(SIZE),
    "lstm of three layers": LSTM(SIZE, layers=3),
    "projected lstm": LSTM(SIZE + 2, layers=2, projection=3),
    "projected lstm with peepholes": LSTM(SIZE + 2, layers=2, projection=3, peepholes=True),
    "lstm with skip connections": LSTM(SIZE, layers=3, skip=True),
    "lstm with another last layer": LSTM(SIZE, layers=3, last_size=3),
    "elman": Elman(SIZE),
    "elman of two layers": Elman(SIZE, layers=2, activation="sigmoid", skip=True),
    "gru": GRU(SIZE),
    "gru of two layers": GRU(SIZE, layers=2, last_size=6, skip=True),
    "trigrams": NGram(SIZE),
    "5-grams of two layers": NGram(SIZE, order=5, layers=2),
    "bidirectional lstm": Bidirectional(LSTM(SIZE, layers=2)),
    "bidirectional trigrams": Bidirectional(NGram(SIZE)),
    "bidirectional layers": Bidirectional(GRU(SIZE), layers=2),
    "lstm of the last words": LastWords(LSTM(SIZE, layers=2), words=4),
}
# For their layers, and for their kind, others stand: these take part among the slow tests.
SLOW = {
    *("lstm of three layers", "gru of two layers", "5-grams of two layers"),
    *("bidirectional trigrams", "lstm with dropped weights", "lstm with another last layer"),
    *("elman of two layers", "elman with a last rate", "gru of the last words"),
    *("bidirectional layers", "dropping bidirectional layers"),
    # Values of these are in test_core.py, test_bidirectional.py and test_windowed_last_words.py.
    *("lstm with skip connections", "bidirectional lstm", "lstm of the last words"),
    "variational lstm",
}
OF_THE_PAGE = {"minimal gru of the page": core_of_the_page()}
CAUSAL = {name: core for name, core in {**CORES, **OF_THE_PAGE}.items() if core.causal}
# The same with dropout wherever there can be some.
DROPPING_CORES = {
    "lstm": LSTM(SIZE, layers=2, dropout=0.4, input_dropout=0.3),
    "variational lstm": LSTM(SIZE, layers=2, dropout=0.4, input_dropout=0.3, variational=True),
    "lstm with dropped weights": LSTM(SIZE, layers=2, dropout=0.4, recurrent_dropout=0.5),
    "lstm with skip connections": LSTM(
        SIZE, layers=2, dropout=0.4, input_dropout=0.3, recurrent_dropout=0.2, skip=True
    ),
    "elman": Elman(SIZE, layers=2, dropout=0.4, input_dropout=0.3, variational=True),
    "elman with a last rate": Elman(SIZE, layers=2, dropout=0.4, last_dropout=0.6),
    "gru": GRU(SIZE, layers=2, dropout=0.4, input_dropout=0.3, recurrent_dropout=0.2),
    "4-grams": NGram(SIZE, order=4, layers=2, dropout=0.4, input_dropout=0.3),
    "bidirectional gru": Bidirectional(GRU(SIZE, dropout=0.4, input_dropout=0.3)),
    "dropping bidirectional layers": Bidirectional(GRU(SIZE, dropout=0.4), layers=2),
    "gru of the last words": LastWords(GRU(SIZE, dropout=0.4, input_dropout=0.3), words=3),
}
BATCH, TIME, INPUT_SIZE = 3, 6, 4


def core_problem(core: Core, random):
    """(params, inputs [B, T, E], a carry that is not zero)."""
    params = examples.random_params(core, random, INPUT_SIZE, scale=0.7)
    inputs = jnp.asarray(random.normal(size=(BATCH, TIME, INPUT_SIZE)))
    return params, inputs, examples.randomised(core.initial_carry(BATCH), random)


@functools.cache
def compiled(core):
    """core.apply, compiled once for all tests."""
    return jax.jit(core.apply)


def assert_trees_close(actual, expected, **tolerances):
    assert jax.tree.structure(actual) == jax.tree.structure(expected)
    for actual_leaf, expected_leaf in zip(
        jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True
    ):
        np.testing.assert_allclose(actual_leaf, expected_leaf, **tolerances)


def params_of(cores):
    """Parameters of a fixture, one for each core."""
    return [
        pytest.param(core, id=name, marks=pytest.mark.slow if name in SLOW else ())
        for name, core in cores.items()
    ]


@pytest.fixture(params=params_of({**CORES, **OF_THE_PAGE}))
def core(request):
    return request.param


@pytest.fixture(params=params_of(CAUSAL))
def causal(request):
    return request.param


@pytest.fixture(params=params_of(DROPPING_CORES))
def dropping(request):
    return request.param


def test_shapes_of_a_core(core, random):
    params, inputs, carry = core_problem(core, random)
    hidden, new_carry = jax.eval_shape(core.apply, params, inputs, carry)
    assert hidden.shape == (BATCH, TIME, core.output_size)
    assert jax.tree.map(jnp.shape, new_carry) == jax.tree.map(jnp.shape, carry)
    assert all(not leaf.any() for leaf in jax.tree.leaves(core.initial_carry(BATCH)))


@pytest.mark.parametrize("shape", [(0, TIME), (BATCH, 0), (0, 0)])
def test_nothing_leaves_the_carry_as_it_was(core, random, shape):
    params, _, carry = core_problem(core, random)
    carry = jax.tree.map(lambda leaf: leaf[: shape[0]], carry)
    options = {"reset": jnp.zeros(shape, bool), "key": jax.random.key(0)}
    hidden, after = core.apply(params, jnp.zeros((*shape, INPUT_SIZE)), carry, **options)
    assert (hidden.shape, hidden.dtype) == ((*shape, core.output_size), jnp.float32)
    assert_trees_close(after, carry)


def test_the_leaves_of_a_carry_can_be_donated(core):
    leaves = jax.tree.leaves(core.initial_carry(BATCH))
    assert len({leaf.unsafe_buffer_pointer() for leaf in leaves}) == len(leaves)


def test_two_halves_are_one_run(causal, random):
    params, inputs, carry = core_problem(causal, random)
    apply = compiled(causal)
    hidden, end = apply(params, inputs, carry)
    first, middle = apply(params, inputs[:, : TIME // 2], carry)
    second, end_of_halves = apply(params, inputs[:, TIME // 2 :], middle)
    halves = np.concatenate([first, second], axis=1)
    np.testing.assert_allclose(halves, hidden, rtol=1e-5, atol=1e-6)
    assert_trees_close(end_of_halves, end, rtol=1e-5, atol=1e-6)
    with pytest.raises(AssertionError):  # and the carry matters
        unaware, _ = apply(params, inputs[:, TIME // 2 :], causal.initial_carry(BATCH))
        np.testing.assert_allclose(unaware, second, rtol=1e-2)


def test_rows_do_not_see_each_other(core, random):
    params, inputs, carry = core_problem(core, random)
    apply = compiled(core)
    hidden, _ = apply(params, inputs, carry)
    other_rows_changed = inputs.at[1:].set(-3.0)
    np.testing.assert_array_equal(apply(params, other_rows_changed, carry)[0][0], hidden[0])


def test_a_causal_core_does_not_see_the_future(causal, random):
    params, inputs, carry = core_problem(causal, random)
    apply = compiled(causal)
    hidden, _ = apply(params, inputs, carry)
    hidden_after_change, _ = apply(params, inputs.at[:, 4:].set(-3.0), carry)
    np.testing.assert_array_equal(hidden_after_change[:, :4], hidden[:, :4])
    assert (np.abs(hidden_after_change[:, 4] - hidden[:, 4]) > 1e-3).any()


def test_reset_segments_are_separate_runs(core, random):
    params, inputs, carry = core_problem(core, random)
    reset = np.zeros((BATCH, TIME), bool)
    reset[0, [2, 5]] = reset[1, 0] = reset[2, 3] = True
    hidden, _ = compiled(core)(params, inputs, carry, reset=reset)
    segments = [
        (row, start, stop)
        for row in range(BATCH)
        for start, stop in itertools.pairwise([0, *np.flatnonzero(reset[row]), TIME])
        if start < stop
    ]
    assert len(segments) == 6
    zero = core.initial_carry(BATCH)
    for row, start, stop in segments:
        begin = zero if reset[row, start] else carry
        # The same shapes, so that there is one compilation: what comes later is another text, and
        # so is what stands in the other rows, which are not seen.
        alone_inputs = np.full((BATCH, TIME, INPUT_SIZE), -3.0, np.float32)
        alone_inputs[row] = 0
        alone_inputs[row, : stop - start] = inputs[row, start:stop]
        ends = np.zeros((BATCH, TIME), bool)
        ends[row] = np.arange(TIME) == stop - start
        alone_hidden, _ = compiled(core)(params, alone_inputs, begin, reset=ends)
        np.testing.assert_allclose(
            hidden[row, start:stop], alone_hidden[row, : stop - start], rtol=1e-5, atol=1e-6
        )


def test_a_reset_lets_no_gradient_through(core, random):
    params, inputs, carry = core_problem(core, random)
    reset = np.zeros((BATCH, TIME), bool)
    reset[:2, 4] = True

    @jax.jit
    def gradients(inputs, carry):
        def late(inputs, carry):
            hidden, end = core.apply(params, inputs, carry, reset=reset)
            return jnp.sum(hidden[:, 4:]) + sum(jnp.sum(leaf) for leaf in jax.tree.leaves(end))

        return jax.grad(late, argnums=(0, 1))(inputs, carry)

    input_gradients, carry_gradients = gradients(inputs, carry)
    np.testing.assert_array_equal(input_gradients[:2, :4], 0)
    assert np.abs(input_gradients[2, 3]).min() > 0
    for leaf in jax.tree.leaves(carry_gradients):
        np.testing.assert_array_equal(leaf[:2], 0)
    forgets = isinstance(getattr(core, "core", core), NGram) or isinstance(core, LastWords)
    if not forgets:
        assert (
            min(
                np.abs(leaf[2]).min()
                for leaf in (input_gradients[:, :4], *jax.tree.leaves(carry_gradients))
            )
            > 0
        )


def test_there_is_no_dropout_without_a_key(dropping, random):
    params, inputs, carry = core_problem(dropping, random)
    inside = getattr(dropping, "core", dropping)
    rates = [field.name for field in dataclasses.fields(inside) if "dropout" in field.name]
    without = dataclasses.replace(inside, **dict.fromkeys(rates, 0.0))
    if inside is not dropping:
        without = dataclasses.replace(dropping, core=without)
    assert without != dropping
    expected = compiled(without)(params, inputs, carry)
    dropped = compiled(dropping)(params, inputs, carry)
    assert_trees_close(dropped, expected, rtol=0, atol=0)


def test_dropout_follows_the_key(dropping, random):
    params, inputs, carry = core_problem(dropping, random)
    apply = compiled(dropping)
    hidden, _ = apply(params, inputs, carry, key=jax.random.key(1))
    repeated, _ = apply(params, inputs, carry, key=jax.random.key(1))
    redrawn, _ = apply(params, inputs, carry, key=jax.random.key(2))
    np.testing.assert_array_equal(hidden, repeated)
    assert ((np.asarray(hidden) == 0) != (np.asarray(redrawn) == 0)).any()


@pytest.mark.slow
def test_dropout_of_a_row_depends_on_its_own_key_alone(dropping, random):
    params, inputs, carry = core_problem(dropping, random)
    rows = jax.random.split(jax.random.key(1), BATCH)
    keys = functools.partial(Keys, jax.random.key(2))
    apply = compiled(dropping)
    hidden, _ = apply(params, inputs, carry, key=keys(rows))
    last = jax.tree.map(lambda x: x[2:], carry)
    rows_alone, _ = apply(params, inputs[2:], last, key=keys(rows[2:]))
    np.testing.assert_allclose(rows_alone[0], hidden[2], rtol=1e-5, atol=1e-6)
    # In another batch and another place: rows 2, 0, 1.
    order = np.array([2, 0, 1])
    in_other_rows, _ = apply(
        params, inputs[order], jax.tree.map(lambda x: x[order], carry), key=keys(rows[order])
    )
    np.testing.assert_allclose(in_other_rows, hidden[order], rtol=1e-5, atol=1e-6)
    # And rows that are the same throughout, their keys too, stay so.
    first = np.zeros(BATCH, int)
    same_keys, _ = apply(
        params, inputs[first], jax.tree.map(lambda x: x[first], carry), key=keys(rows[first])
    )
    np.testing.assert_array_equal(
        same_keys[1:], np.broadcast_to(same_keys[:1], same_keys[1:].shape)
    )


def test_a_reset_is_of_truth_values(core):
    """Numbers of segments, as other libraries have, would subtract more than the carry."""
    params, carry = core.init(jax.random.key(0), 4), core.initial_carry(2)
    for reset in (jnp.ones((2, 3), jnp.int32), jnp.ones((3, 2), bool)):
        with pytest.raises(TypeError, match=r"apply: reset is .*: give bool of the shape \(2, 3\)"):
            core.apply(params, jnp.ones((2, 3, 4)), carry, reset=reset)
