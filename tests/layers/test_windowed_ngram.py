"""The n-gram model against its formula, a loop a sum."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import examples
from zoo.cores import NGram
from zoo.errors import UserError

BATCH, TIME, INPUT_SIZE, SIZE = 3, 5, 4, 7


def reference(params, inputs, reset):
    """Hidden states [B, T, D] of texts that start at position 0."""
    params = jax.tree.map(lambda x: np.asarray(x, np.float64), params)
    hidden = np.zeros((BATCH, TIME, SIZE))
    for row in range(BATCH):
        for t in range(TIME):
            total = params["bias"].copy()
            for back, weights in enumerate(params["context"]):
                if t - back < 0 or reset[row, t - back + 1 : t + 1].any():
                    break
                total += inputs[row, t - back] @ weights
            state = np.maximum(total, 0)
            for layer in params["layers"]:
                state = np.maximum(state @ layer["weights"] + layer["bias"], 0)
            hidden[row, t] = state
    return hidden


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize(("order", "layers"), [(2, 1), (3, 1), (4, 2), (9, 1)])
def test_hidden_states_are_those_of_the_formula(order, layers, random):
    core = NGram(SIZE, order, layers)
    params = examples.random_params(core, random, INPUT_SIZE)
    inputs = random.normal(size=(BATCH, TIME, INPUT_SIZE))
    reset = np.zeros((BATCH, TIME), bool)
    reset[0, [0, 2]] = reset[1, 3] = True
    carry = core.initial_carry(BATCH)
    hidden, _ = jax.jit(core.apply)(params, inputs, carry, reset=reset)
    np.testing.assert_allclose(hidden, reference(params, inputs, reset), rtol=1e-12, atol=1e-12)


def test_words_further_back_do_not_count(random):
    core = NGram(SIZE, order=3)
    params = core.init(jax.random.key(0), INPUT_SIZE)
    inputs = jnp.asarray(random.normal(size=(BATCH, TIME, INPUT_SIZE)))
    apply = jax.jit(core.apply)
    hidden, _ = apply(params, inputs, core.initial_carry(BATCH))
    changed_hidden, _ = apply(params, inputs.at[:, 1].set(9.0), core.initial_carry(BATCH))
    is_unchanged = (np.asarray(hidden) == np.asarray(changed_hidden)).all(axis=(0, 2))
    np.testing.assert_array_equal(is_unchanged, [True, False, False, True, True])


def test_orders_and_layers_that_cannot_be_are_refused():
    with pytest.raises(UserError, match="order of NGram is 1"):
        NGram(order=1)
    with pytest.raises(UserError, match="layers of NGram is 0"):
        NGram(layers=0)
    with pytest.raises(UserError, match=r"dropout of NGram is 1"):
        NGram(dropout=1.0)


def test_a_dropped_input_is_missing_from_all_n_grams_of_its_word():
    core = NGram(2, order=3, input_dropout=0.5)
    # The first cell shows the last word, the second the one before.
    context = jnp.asarray([[[1.0, 0.0]], [[0.0, 1.0]]])
    params = {"context": context, "bias": jnp.zeros(2), "layers": ()}
    hidden, carry = jax.jit(core.apply)(
        params, jnp.ones((8, 40, 1)), core.initial_carry(8), key=jax.random.key(0)
    )
    hidden = np.asarray(hidden)
    assert set(np.unique(hidden)) == {0, 2}
    assert 0.35 < (hidden[:, :, 0] == 2).mean() < 0.65
    np.testing.assert_array_equal(hidden[:, 1:, 1], hidden[:, :-1, 0])
    np.testing.assert_array_equal(carry[:, 0, 1], hidden[:, -1, 0])
