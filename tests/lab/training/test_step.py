"""A training step against numpy: finite differences of the mean loss, written out in loops."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from tests import examples, references
from zoo.base.arrays.random_keys import seed_keys
from zoo.cores import LSTM
from zoo.embeddings import Features, Lookup
from zoo.heads import LogLinear, Softmax
from zoo.lab.training.step import Batch, TrainState, train_step
from zoo.lab.training.tasks import Words, words_loss
from zoo.lab.training.updates import Updates, scale_by_rate_factor
from zoo.models import LanguageModel

MODEL = LanguageModel(Lookup(size=2, initial_scale=0.5), LSTM(size=3), Softmax(initial_scale=0.5))
LEXICON = examples.plain_lexicon(5)
INPUTS = Words(
    words=np.array([[0, 3, 1, 2], [4, 4, 0, 0]], np.int32),
    targets=np.array([[3, 1, 2, 0], [4, 2, 0, 0]], np.int32),
    reset=np.array([[0, 0, 1, 0], [1, 0, 0, 0]], bool),
)
WEIGHTS = np.array([[1, 1, 1, 1], [1, 1, 0, 0]], np.float64)
BATCH = Batch(INPUTS, WEIGHTS, np.arange(2, dtype=np.int32))


def flatten(params):
    """{name: array} of the model's parameters."""
    return {
        "table": params["embedding"]["table"],
        **params["core"][0],
        **{f"softmax {name}": array for name, array in params["head"].items()},
    }


def numpy_loss(flat):
    """The mean of -log p over the positions of weight 1."""
    carry = [(np.full((2, 3), 0.1), np.full((2, 3), -0.2))]
    hidden, _ = references.lstm(flat["table"][INPUTS.words], [flat], carry, INPUTS.reset)
    is_target = WEIGHTS > 0
    losses, _ = references.softmax_loss(
        hidden[is_target], flat["softmax weights"], flat["softmax bias"], INPUTS.targets[is_target]
    )
    return losses.mean()


def one_step(optimizer, **static):
    @jax.jit
    def initial_state():
        params = MODEL.init(jax.random.key(3), LEXICON)
        carry = ((jnp.full((2, 3), 0.1), jnp.full((2, 3), -0.2)),)
        return TrainState(params, optimizer.init(params), carry, jnp.zeros((), jnp.int32))

    state, key = initial_state(), jax.random.key_data(jax.random.key(1))
    settings = {"loss": functools.partial(words_loss, MODEL), "optimizer": optimizer, **static}
    step = jax.jit(functools.partial(train_step, **settings))
    return state, *step(state, examples.NO_TABLES, BATCH, key)


def test_one_step_of_sgd_follows_finite_differences(float64):
    state, new_state, results = one_step(Updates(optax.sgd(0.7)))
    old_params = flatten(jax.device_get(state.params))
    gradients = references.finite_differences(numpy_loss, old_params)
    for name, array in flatten(jax.device_get(new_state.params)).items():
        np.testing.assert_allclose(array, old_params[name] - 0.7 * gradients[name], atol=1e-8)
    assert float(results.tokens) == 6
    assert float(results.loss) == pytest.approx(6 * numpy_loss(old_params), rel=1e-9)
    norm = np.sqrt(sum((gradient**2).sum() for gradient in gradients.values()))
    assert float(results.gradient_norm) == pytest.approx(norm, rel=1e-6)
    assert int(new_state.step) == 1


def test_few_tokens_move_the_parameters_less_than_a_full_batch(float64):
    """6 tokens where 24 are usual make a quarter of the step of their mean."""
    state, full, full_results = one_step(Updates(optax.sgd(0.7)))
    _, few_tokens, results = one_step(Updates(optax.sgd(0.7)), usual_weight=24.0)
    _, enough, _ = one_step(Updates(optax.sgd(0.7)), usual_weight=5.5)
    for start_leaf, full_leaf, few_leaf, enough_leaf in zip(
        *(jax.tree.leaves(s.params) for s in (state, full, few_tokens, enough)), strict=True
    ):
        np.testing.assert_allclose(few_leaf - start_leaf, (full_leaf - start_leaf) / 4, atol=1e-12)
        np.testing.assert_array_equal(enough_leaf, full_leaf)
    assert float(results.loss) == pytest.approx(float(full_results.loss), rel=1e-12)
    assert float(results.gradient_norm) == pytest.approx(float(full_results.gradient_norm) / 4)


def test_the_rate_follows_the_length_of_the_window(float64):
    """A batch of 3 positions where 6 are usual has half the rate, after clipping."""
    optimizer = Updates(
        optax.chain(optax.clip_by_global_norm(0.1), optax.sgd(0.7), scale_by_rate_factor())
    )
    length = BATCH.weights.shape[1]
    state, full_rate, _ = one_step(optimizer, usual_length=length)
    _, half, _ = one_step(optimizer, usual_length=2 * length)
    leaves = map(jax.tree.leaves, (state.params, full_rate.params, half.params))
    for start, full_leaf, half_leaf in zip(*leaves, strict=True):
        np.testing.assert_allclose(
            half_leaf - start, (full_leaf - start) / 2, rtol=1e-9, atol=1e-15
        )


def test_a_short_window_is_divided_by_its_share_of_the_usual_tokens(float64):
    """Where 24 tokens in 8 positions are usual, 6 in 4 positions are divided by 12."""

    def loss(params, tables, inputs, weights, carry, keys):
        return params["a"] * weights.sum(), jnp.zeros(()), carry

    optimizer = Updates(optax.chain(optax.sgd(0.7), scale_by_rate_factor()))
    params = {"a": jnp.asarray(3.0)}
    state = TrainState(params, optimizer.init(params), jnp.zeros((2, 1)), jnp.zeros((), jnp.int32))
    assert BATCH.weights.shape == (2, 4) and BATCH.weights.sum() == 6
    key = jax.random.key_data(jax.random.key(1))
    usual = {"usual_weight": 24.0, "usual_length": 8}
    new_state, results = train_step(state, {}, BATCH, key, loss=loss, optimizer=optimizer, **usual)
    # The gradient is 6 / 12, and the rate half of 0.7.
    assert float(results.gradient_norm) == pytest.approx(0.5)
    assert float(new_state.params["a"]) == pytest.approx(3 - 0.35 * 0.5)
    assert float(results.loss) == pytest.approx(3 * 6)


def test_a_step_carries_the_last_state(float64):
    state, new_state, _ = one_step(Updates(optax.sgd(0.7)))
    flat = flatten(jax.device_get(state.params))
    carry = [(np.full((2, 3), 0.1), np.full((2, 3), -0.2))]
    _, last = references.lstm(flat["table"][INPUTS.words], [flat], carry, INPUTS.reset)
    np.testing.assert_allclose(new_state.carry[0], last[0], atol=1e-12)


@pytest.mark.slow
def test_a_batch_without_words_changes_nothing():
    optimizer = Updates(optax.sgd(0.7))
    params = MODEL.init(jax.random.key(3), LEXICON)
    carry = MODEL.core.initial_carry(2)
    state = TrainState(params, optimizer.init(params), carry, jnp.zeros((), jnp.int32))
    batch = BATCH._replace(weights=np.zeros((2, 4), np.float32))
    key = jax.random.key_data(jax.random.key(1))
    loss = functools.partial(words_loss, MODEL)
    new_state, results = train_step(
        state, examples.NO_TABLES, batch, key, loss=loss, optimizer=optimizer
    )
    for before, after in zip(
        jax.tree.leaves(params), jax.tree.leaves(new_state.params), strict=True
    ):
        np.testing.assert_array_equal(before, after)
    assert float(results.loss) == float(results.tokens) == 0


@pytest.mark.slow
def test_a_penalty_is_trained_and_reported_apart(float64):
    """Of a log-linear model with the penalty 0.1 * sum_f a_f^2."""
    plain = LanguageModel(Features(size=3), LSTM(size=3), LogLinear())
    penalised = dataclasses.replace(plain, head=LogLinear(penalty=0.1))
    lexicon = examples.lexicon()
    params = examples.random_params(plain, np.random.default_rng(4), lexicon)
    carry, tables = plain.core.initial_carry(2), plain.tables(lexicon)
    key = jax.random.key_data(jax.random.key(1))

    def step(model):
        optimizer = Updates(optax.sgd(0.7))
        state = TrainState(params, optimizer.init(params), carry, jnp.zeros((), jnp.int32))
        loss = functools.partial(words_loss, model)
        return train_step(state, tables, BATCH, key, loss=loss, optimizer=optimizer)

    (before, without), (after, results) = step(plain), step(penalised)
    hidden, _ = plain.hidden(params, tables, INPUTS.words, carry, reset=INPUTS.reset)

    def penalty(head_params):
        adaptors = plain.head.adaptor(head_params, hidden)
        return 0.1 * jnp.sum(WEIGHTS[..., None] * adaptors**2)

    assert float(without.penalty) == 0
    assert float(results.loss) == pytest.approx(float(without.loss), rel=1e-9)
    assert float(results.penalty) == pytest.approx(float(penalty(params["head"])), rel=1e-9)
    head_gradients = jax.grad(penalty)(params["head"])
    for name, gradient in head_gradients.items():
        difference = after.params["head"][name] - before.params["head"][name]
        np.testing.assert_allclose(difference, -0.7 * gradient / 6, rtol=1e-6, atol=1e-9)


def test_start_values_and_steps_have_keys_of_their_own():
    keys = [jax.random.key_data(key).tolist() for key in seed_keys(7)]
    assert keys == [[0, 7], [0, 8]]
