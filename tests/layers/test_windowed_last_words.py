"""A core of the last words alone, against that core run from each of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import examples
from zoo.cores import LSTM, Bidirectional, LastWords
from zoo.errors import UserError
from zoo.heads import Softmax
from zoo.models import LanguageModel

BATCH, TIME, SIZE, INPUTS, WORDS = 3, 7, 5, 4, 3


def by_loop(core, params, inputs, starts, weights):
    """sum of weights * hidden, each hidden state from a run of its own; starts: [B, T]."""
    total = 0.0
    for row in range(BATCH):
        for position in range(TIME):
            first = max(int(starts[row, position]), position - WORDS + 1)
            run = inputs[row : row + 1, first : position + 1]
            hidden, _ = core.apply(params, run, core.initial_carry(1))
            total += jnp.sum(hidden[0, -1] * weights[row, position])
    return total


@pytest.mark.slow
def test_values_and_gradients_are_those_of_separate_runs(float64, random):
    inner = LSTM(SIZE)
    core = LastWords(inner, words=WORDS)
    params = examples.random_params(core, random, INPUTS, scale=0.7)
    inputs = jnp.asarray(random.normal(size=(BATCH, TIME, INPUTS)))
    weights = jnp.asarray(random.normal(size=(BATCH, TIME, SIZE)))
    reset = np.zeros((BATCH, TIME), bool)
    reset[1, [0, 4]] = reset[2, 3] = True
    starts = np.maximum.accumulate(np.where(reset, np.arange(TIME), 0), axis=1)

    def at_once(params, inputs):
        hidden, _ = core.apply(params, inputs, core.initial_carry(BATCH), reset=reset)
        return jnp.sum(hidden * weights)

    actual = jax.value_and_grad(at_once, argnums=(0, 1))(params, inputs)
    expected = jax.value_and_grad(
        lambda params, inputs: by_loop(inner, params, inputs, starts, weights), argnums=(0, 1)
    )(params, inputs)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7), actual, expected
    )


def test_older_words_are_forgotten(random):
    core = LastWords(LSTM(SIZE), words=WORDS)
    params = examples.random_params(core, random, INPUTS, scale=0.7)
    inputs = jnp.asarray(random.normal(size=(BATCH, TIME, INPUTS)))
    apply = jax.jit(core.apply)
    hidden, _ = apply(params, inputs, core.initial_carry(BATCH))
    changed_hidden, _ = apply(params, inputs.at[:, 2].set(0), core.initial_carry(BATCH))
    is_unchanged = np.abs(np.asarray(hidden - changed_hidden)).max(axis=(0, 2)) < 1e-6
    assert is_unchanged.tolist() == [True, True, False, False, False, True, True]


def test_one_word_alone_has_no_carry(random):
    core = LastWords(LSTM(SIZE), words=1)
    params = examples.random_params(core, random, INPUTS, scale=0.7)
    inputs = jnp.asarray(random.normal(size=(BATCH, TIME, INPUTS)))
    hidden, carry = core.apply(params, inputs, core.initial_carry(BATCH))
    assert all(leaf.shape[:2] == (BATCH, 0) for leaf in jax.tree.leaves(carry))
    flat = inputs.reshape(BATCH * TIME, 1, INPUTS)
    single_runs, _ = core.core.apply(params, flat, core.core.initial_carry(BATCH * TIME))
    np.testing.assert_allclose(hidden.reshape(single_runs.shape), single_runs, rtol=1e-5)


def test_what_it_takes():
    assert LanguageModel(core=LastWords(), head=Softmax()).core.output_size == LSTM().size
    with pytest.raises(UserError, match="core of LastWords is Bidirectional"):
        LastWords(Bidirectional())
    with pytest.raises(UserError, match="words of LastWords is 0"):
        LastWords(words=0)
