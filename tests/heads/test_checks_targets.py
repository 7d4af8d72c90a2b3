"""What every head makes of its arguments before it computes anything."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import examples
from tests.heads import head_references, test_every_head
from tests.heads.test_with_expert import StubExpert
from tests.marks import slow
from zoo.base.arrays.random_keys import Keys
from zoo.heads import (
    NCE,
    CharLSTM,
    CNNSoftmax,
    LogLinear,
    Softmax,
    SpreadUnknown,
    WithExpert,
)
from zoo.lexicon.spelling import Spelling

SIZE, WORDS, BATCH, TIME = 7, 13, 3, 5
HEADS = {name: case.head for name, case in test_every_head.HEADS.items()} | {
    "penalised log-linear": LogLinear(penalty=0.3),
    "sampled letters": CNNSoftmax(head_references.NETWORK, sampled=NCE(samples=3)),
    "speller": CharLSTM(Spelling("characters"), size=4, letter_size=2, renormalised=True),
    "expert": WithExpert(StubExpert(), LogLinear(penalty=0.3)),
    "spread unknown": SpreadUnknown(Softmax(), examples.trained_and_other()[0]),
}


@functools.cache
def problem(name):
    """(head, params, tables, words)."""
    head, random = HEADS[name], np.random.default_rng(5)
    spread = isinstance(head, SpreadUnknown)
    lexicon = examples.trained_and_other()[1] if spread else examples.lexicon()
    params = examples.random_params(head, random, SIZE, lexicon)
    if getattr(head, "tied", False):
        params["weights"] = jnp.asarray(random.normal(size=(WORDS, SIZE)), jnp.float32)
    tables = head.tables(lexicon)
    return head, params, tables, len(lexicon)


def batch(*shape, seed=0):
    """(hidden, targets, options of the methods with targets), float32."""
    random = np.random.default_rng(seed)
    hidden = jnp.asarray(random.normal(size=(*shape, SIZE)), jnp.float32)
    return hidden, jnp.asarray(random.integers(0, 8, shape), jnp.int32)


def options(head, targets):
    return {} if head.background is None else {"context": targets}


TARGET_METHODS = (
    "loss",
    "weighted_loss",
    "weighted_loss_and_penalty",
    "log_prob",
    "log_prob_and_log_z",
)


def with_targets(head, method, params, tables, hidden, context):
    """A method as a function of (targets, token weights); of losses with a key for their noise."""
    keywords = options(head, context) | ({"key": jax.random.key(4)} if "loss" in method else {})

    def call(targets, weights):
        last = (weights,) if "weighted" in method else ()
        return getattr(head, method)(params, tables, hidden, targets, *last, **keywords)

    return call


# One function checks the targets of all heads; these heads have all the kinds of its arguments.
REPRESENTATIVES = ("softmax", "adaptive", "NCE", "spread unknown")
NAMES = [*REPRESENTATIVES, *slow(*sorted(HEADS.keys() - {*REPRESENTATIVES}))]


@pytest.mark.parametrize("name", NAMES)
def test_targets_that_are_no_words_are_refused(name):
    head, params, tables, words = problem(name)
    hidden, targets = batch(BATCH, TIME)
    for wrong in (-1, -100, words, 10**6):
        bad, weights = targets.at[2, 1].set(wrong), jnp.ones((BATCH, TIME))
        message = (
            rf"{type(head).__name__}\.\w+: targets has {wrong} at \[2, 1\]: give .* {words - 1}"
        )
        for method in TARGET_METHODS:
            call = with_targets(head, method, params, tables, hidden, targets)
            with pytest.raises(ValueError, match=message):
                call(bad, weights)


def test_without_weight_a_target_may_be_no_word():
    head, params, tables, words = problem("softmax")
    hidden, targets = batch(BATCH, TIME)
    call = with_targets(head, "weighted_loss", params, tables, hidden, targets)
    weights = jnp.ones((BATCH, TIME)).at[2, 1].set(0)
    for wrong in (-1, words):
        loss = call(targets.at[2, 1].set(wrong), weights)
        np.testing.assert_allclose(loss, call(targets, weights), rtol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_compiled_a_target_that_is_no_word_has_a_loss_of_nan(name):
    head, params, tables, words = problem(name)
    hidden, targets = batch(BATCH, TIME)
    weights = jnp.ones((BATCH, TIME))
    bad = targets.at[0, 3].set(-100).at[1, 4].set(words).at[2, 1].set(-1)
    # The head gets word 0 in place of a target outside the vocabulary.
    replaced = jnp.where(bad == targets, targets, 0)
    methods = ("loss", "weighted_loss", "log_prob_and_log_z")
    calls = [with_targets(head, name, params, tables, hidden, targets) for name in methods]
    evaluate = jax.jit(lambda *tokens: [call(*tokens) for call in calls])
    weightless = jnp.where(bad == targets, weights, 0)
    (_, bad_sum, _), (_, word_sum, _) = evaluate(bad, weightless), evaluate(targets, weightless)
    results = zip(methods, evaluate(bad, weights), evaluate(replaced, weights), strict=True)
    for method, actual, expected in results:
        if "weighted" in method:
            assert np.isnan(actual).all()
            actual, expected = bad_sum, word_sum
        else:
            actual, *log_z = actual if isinstance(actual, tuple) else (actual,)
            expected, *expected_log_z = expected if isinstance(expected, tuple) else (expected,)
            np.testing.assert_array_equal(np.isnan(actual), bad != targets)
            actual, expected = (jnp.where(bad == targets, x, 0) for x in (actual, expected))
            np.testing.assert_allclose(log_z, expected_log_z, rtol=1e-6)
        np.testing.assert_allclose(actual, expected, rtol=1e-5)


@pytest.mark.parametrize("name", ["softmax", *slow("adaptive", "Huffman", "speller")])
def test_a_target_that_is_no_word_causes_no_gradient(name):
    """Whether its weight is 0, as of padding, or its loss, NaN, is masked, or is not."""
    head, params, tables, _ = problem(name)
    hidden, targets = batch(BATCH, TIME)
    bad = targets.at[:, 3:].set(-100)
    is_word = jnp.asarray(bad >= 0)

    def masked(params, hidden, bad):
        return jnp.where(is_word, head.loss(params, tables, hidden, bad), 0).sum()

    def unmasked(params, hidden, bad):
        return head.loss(params, tables, hidden, bad).sum()

    def short(params, hidden, bad):
        return head.loss(params, tables, hidden[:, :3], bad[:, :3]).sum()

    def weighted(params, hidden, bad):
        return head.weighted_loss(params, tables, hidden, bad, is_word)

    @jax.jit
    def evaluate(*arguments):
        functions = short, masked, unmasked, weighted
        return [jax.value_and_grad(function, (0, 1))(*arguments) for function in functions]

    (value, gradients), *results = evaluate(params, hidden, bad)
    for (actual, slopes), expected in zip(results, (value, np.nan, value), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-5)
        jax.tree.map(
            lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-6), slopes, gradients
        )


WEIGHTS = {
    "one number": 0.5,
    "a whole number": 2,
    "of positions": np.arange(5),
    "of batch rows": np.array([[0.5], [0.0], [2.0]]),
    "of one batch row": np.array([[1.0, 0.5, 0.0, 2.0, 0.25]]),
    "a mask": np.arange(15).reshape(3, 5) % 4 < 2,
}


@pytest.mark.parametrize("name", ["softmax", "expert", *slow("adaptive", "penalised log-linear")])
def test_weights_broadcast(name):
    head, params, tables, _ = problem(name)
    hidden, targets = batch(BATCH, TIME)

    @jax.jit
    def evaluate(params, hidden, weights):
        keywords = options(head, targets)
        losses = head.loss(params, tables, hidden, targets, **keywords)
        total = head.weighted_loss(params, tables, hidden, targets, weights, **keywords)
        return losses, total

    everywhere = jax.eval_shape(evaluate, params, hidden, jnp.ones((BATCH, TIME)))[1]
    for weights in WEIGHTS.values() if name == "softmax" else (WEIGHTS["of batch rows"],):
        losses, total = evaluate(params, hidden, weights)
        expected = np.sum(np.float64(losses) * np.broadcast_to(weights, (BATCH, TIME)))
        np.testing.assert_allclose(total, expected, rtol=1e-5)
        assert total.dtype == everywhere.dtype == jnp.float32


def test_the_gradient_of_weights_that_broadcast_is_summed():
    head, params, tables, _ = problem("softmax")
    hidden, targets = batch(BATCH, TIME)
    losses = np.asarray(jax.jit(head.loss)(params, tables, hidden, targets))
    slopes = jax.jit(jax.grad(head.weighted_loss, argnums=4))
    for weights, axes in ((np.ones(TIME), 0), (np.ones((BATCH, 1)), 1), (1.0, (0, 1))):
        gradient = slopes(params, tables, hidden, targets, jnp.asarray(weights, jnp.float32))
        expected = losses.sum(axes, keepdims=axes == 1)
        np.testing.assert_allclose(gradient, expected, rtol=1e-5)


@pytest.mark.parametrize("name", ["expert", *slow("speller", "sampled letters")])
def test_tokens_without_weight_may_hold_anything(name):
    """As tests/heads/test_every_head.py has it of the others."""
    head, params, tables, _ = problem(name)
    hidden, targets = batch(BATCH, TIME)
    weights = jnp.ones((BATCH, TIME)).at[:, 3:].set(0)
    extreme_hidden = hidden.at[0, 3].set(jnp.nan).at[1, 3, 2].set(jnp.inf).at[2, 4].set(1e30)
    invalid_targets = targets.at[0, 3].set(-100).at[1, 4].set(10**6).at[2, 3].set(-1)

    @jax.jit
    def evaluate(params, hidden, targets, context):
        keywords = {} if head.background is None else {"context": context}
        columns = params, tables, hidden, targets, weights
        function = jax.value_and_grad(head.weighted_loss, argnums=(0, 2, 4))
        return function(*columns, key=jax.random.key(1), **keywords)

    value, gradients = evaluate(params, hidden, targets, targets)
    extreme_value, extreme_gradients = evaluate(
        params, extreme_hidden, invalid_targets, jnp.where(invalid_targets < 0, -1, targets)
    )
    np.testing.assert_allclose(extreme_value, value, rtol=1e-6)
    for leaf, expected in zip(
        jax.tree.leaves(extreme_gradients[0]), jax.tree.leaves(gradients[0]), strict=True
    ):
        np.testing.assert_allclose(leaf, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(extreme_gradients[1][:, 3:], 0)
    assert np.isfinite(extreme_gradients[2]).all()
    np.testing.assert_allclose(extreme_gradients[2][:, :3], gradients[2][:, :3], rtol=1e-5)
    assert np.abs(gradients[2][:, 3:]).min() > 0.01  # the losses of those that are tokens


SHAPES = [(0,), (0, 5), (3, 0)]
# Without tokens the head's own method is not run: these stand for the others.
FAST = {"expert"}


@pytest.mark.parametrize(
    "name",
    [name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in HEADS],
)
def test_no_tokens(name):
    head, params, tables, words = problem(name)
    for shape in SHAPES:
        hidden, targets = batch(*shape)
        keywords = options(head, targets)
        key = jax.random.key(0)
        if len(shape) == 2:
            key = Keys(key, jax.random.split(key, 3)[: shape[0]])
        loss = head.loss(params, tables, hidden, targets, key=key, **keywords)
        assert (loss.shape, loss.dtype) == (shape, jnp.float32)
        weights = jnp.zeros(shape)
        function = jax.value_and_grad(head.weighted_loss, argnums=(0, 2, 4))
        value, gradients = function(params, tables, hidden, targets, weights, key=key, **keywords)
        assert (value.shape, float(value)) == ((), 0)
        for leaf, like in zip(
            jax.tree.leaves(gradients), jax.tree.leaves((params, hidden, weights)), strict=True
        ):
            np.testing.assert_array_equal(leaf, np.zeros(like.shape))
        if shape != SHAPES[1]:
            continue
        assert head.weighted_loss(params, tables, hidden, targets, 1, key=key, **keywords) == 0
        assert head.log_prob(params, tables, hidden, targets, **keywords).shape == shape
        log_prob, log_z = head.log_prob_and_log_z(params, tables, hidden, targets, **keywords)
        assert log_prob.shape == log_z.shape == shape
        assert head.log_probs(params, tables, hidden, **keywords).shape == (*shape, words)
        samples = head.sample(params, tables, hidden, jax.random.key(0), **keywords)
        assert (samples.shape, samples.dtype) == (shape, jnp.int32)
        values, best_words = head.top_k(params, tables, hidden, 2, **keywords)
        assert (values.shape, best_words.shape, best_words.dtype) == (
            (*shape, 2),
            (*shape, 2),
            jnp.int32,
        )


def test_no_targets_may_be_an_empty_list():
    head, params, tables, _ = problem("softmax")
    assert head.loss(params, tables, jnp.zeros((0, SIZE)), []).shape == (0,)
