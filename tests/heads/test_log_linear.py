"""The log-linear head against the dense formula, and what its features and background promise."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import examples, references
from tests.marks import slow
from zoo.errors import UserError
from zoo.heads import LogLinear
from zoo.lexicon import with_features
from zoo.losses import softmax

SIZE = 5
HEAD = LogLinear()
# Word 4 shares its features with word 3, which has mass; nobody shares those of words 8 and 12,
# and both twins, 10 and 11, are without.
MASSLESS = (4, 8, 10, 11, 12)


@functools.cache
def matrix():
    """phi, [V, F]."""
    return references.feature_matrix(examples.FEATURES, examples.lexicon().feature_names)


def expected_log_probs(params, hidden, background):
    adaptors = [np.asarray(params["weights"]) @ h + np.asarray(params["bias"]) for h in hidden]
    return references.log_linear_log_probs(adaptors, matrix(), background)


@pytest.fixture
def params(random, lexicon, float64):
    features = len(lexicon.feature_names)
    return {
        "weights": jnp.asarray(random.normal(size=(features, SIZE))),
        "bias": jnp.asarray(random.normal(size=features)),
    }


@pytest.fixture
def hidden(random, float64):
    return jnp.asarray(random.normal(size=(4, SIZE)))


def test_identity_features_over_a_uniform_background_are_a_softmax(random, hidden):
    features = [{f"Word:{place}": 1.0} for place in range(13)]
    lexicon = with_features(examples.plain_lexicon(), features)
    weights, bias = random.normal(size=(13, SIZE)), random.normal(size=13)
    # Features are in the order of their names: Word:10 comes before Word:2.
    order = [int(name.removeprefix("Word:")) for name in lexicon.feature_names]
    params = {"weights": jnp.asarray(weights[order]), "bias": jnp.asarray(bias[order])}
    log_probs = jax.jit(HEAD.log_probs)(params, lexicon.tables(), hidden)
    expected = references.softmax_log_probs(hidden, weights, bias)
    np.testing.assert_allclose(log_probs, expected, rtol=1e-6, atol=1e-6)


@functools.cache
def _gradients():
    def summed(params, tables, hidden, targets):
        return jnp.sum(HEAD.loss(params, tables, hidden, targets))

    return jax.jit(jax.grad(summed, argnums=(0, 2)))


@pytest.mark.parametrize("massless", [(), MASSLESS])
def test_without_parameters_the_background_is_left(params, hidden, massless):
    zeros = jax.tree.map(jnp.zeros_like, params)
    tables = examples.lexicon(massless).tables()
    log_probs = jax.jit(HEAD.log_probs)(zeros, tables, hidden)
    expected = np.broadcast_to(examples.log_background(massless), (4, 13))
    np.testing.assert_allclose(log_probs, expected, rtol=1e-6)


def test_no_background_is_a_uniform_one(params, hidden):
    lexicon = with_features(examples.plain_lexicon(), list(examples.FEATURES))
    log_probs = jax.jit(HEAD.log_probs)(params, lexicon.tables(), hidden)
    expected = expected_log_probs(params, hidden, np.zeros(13))
    np.testing.assert_allclose(log_probs, expected, rtol=1e-6, atol=1e-6)


def test_words_without_mass_have_none_and_spoil_nothing(params, hidden):
    tables = examples.lexicon(MASSLESS).tables()
    expected = expected_log_probs(params, hidden, examples.log_background(MASSLESS))
    actual = jax.jit(HEAD.log_probs)(params, tables, hidden)
    assert (np.asarray(actual)[:, list(MASSLESS)] == -np.inf).all()
    np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-6)

    targets = jnp.asarray([0, 3, 7, 9])
    gradients = _gradients()(params, tables, hidden, targets)
    with_mass = np.setdiff1d(np.arange(13), MASSLESS)
    bias_gradient = np.zeros(matrix().shape[1])
    for log_probs, target in zip(expected, targets, strict=True):
        bias_gradient += np.exp(log_probs[with_mass]) @ matrix()[with_mass] - matrix()[target]
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradients))
    np.testing.assert_allclose(gradients[0]["bias"], bias_gradient, rtol=1e-6, atol=1e-6)


def test_a_target_without_mass_is_infinitely_bad_unless_it_has_no_weight(params, hidden):
    tables, targets = examples.lexicon(MASSLESS).tables(), jnp.asarray([0, 4, 8, 9])
    np.testing.assert_array_equal(
        np.isinf(jax.jit(HEAD.loss)(params, tables, hidden, targets)), [False, True, True, False]
    )
    function = jax.jit(jax.value_and_grad(HEAD.weighted_loss, argnums=(0, 2)))
    weights = jnp.asarray([1.0, 0, 0, 2])
    value, gradients = function(params, tables, hidden, targets, weights)
    expected = expected_log_probs(params, hidden, examples.log_background(MASSLESS))
    np.testing.assert_allclose(value, -(expected[0, 0] + 2 * expected[3, 9]), rtol=1e-6)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradients))


@pytest.mark.parametrize("norm", [3.5, *slow(1.0, 2.0)])
def test_the_penalty_is_the_norm_of_the_adaptor(params, hidden, norm, monkeypatch):
    """What is trained has it, however it is written, and a word on how much of it that is."""
    monkeypatch.setattr(
        softmax, "LOGITS_AT_A_TIME", 3 * len(params["bias"])
    )  # blocks of two tokens
    head, targets = LogLinear(penalty=0.3, penalty_norm=norm), jnp.asarray([0, 3, 7, 9])
    tables, weights = examples.lexicon().tables(), np.array([0.5, 2.0, 0.0, 1.0])

    def by_hand(head):
        def function(params, hidden, weights):
            return jnp.sum(weights * head.loss(params, tables, hidden, targets))

        return function

    def summed(head):
        def function(params, hidden, weights):
            return head.weighted_loss(params, tables, hidden, targets, weights)

        return function

    @jax.jit
    def evaluate(params, hidden, weights):
        parts = head.weighted_loss_and_penalty(params, tables, hidden, targets, weights)
        forms = (by_hand(HEAD), by_hand(head), summed(HEAD), summed(head))
        slopes = (jax.value_and_grad(form, argnums=(0, 1, 2)) for form in forms)
        return parts, *(slope(params, hidden, weights) for slope in slopes)

    parts, *results = evaluate(params, hidden, jnp.asarray(weights))
    states = np.asarray(hidden)
    adaptors = states @ np.asarray(params["weights"]).T + np.asarray(params["bias"])[None]
    norms = (np.abs(adaptors) ** norm).sum(axis=1)
    slopes = 0.3 * norm * np.abs(adaptors) ** (norm - 1) * np.sign(adaptors) * weights[:, None]
    expected = (
        {"weights": slopes.T @ states, "bias": slopes.sum(axis=0)},
        slopes @ np.asarray(params["weights"]),
        0.3 * norms,
    )
    np.testing.assert_allclose(parts[1], 0.3 * weights @ norms, rtol=1e-10)
    for (plain, plain_gradients), (value, gradients) in (results[:2], results[2:]):
        np.testing.assert_allclose(value - plain, 0.3 * weights @ norms, rtol=1e-9)
        np.testing.assert_allclose(value, parts[0], rtol=1e-10)
        jax.tree.map(
            lambda penalised, unpenalised, difference: np.testing.assert_allclose(
                penalised - unpenalised, difference, rtol=1e-7, atol=1e-10
            ),
            gradients,
            plain_gradients,
            expected,
        )


def test_a_penalty_leaves_a_model_that_is_its_background_where_it_is(hidden):
    # The slope of |a| at 0 is 0: where nothing else moves the adaptor, neither does the penalty.
    head = LogLinear(initial_scale=0.0, penalty=0.3, penalty_norm=1.0)
    params = head.init(jax.random.key(0), SIZE, examples.lexicon())
    targets, tables = jnp.zeros(hidden.shape[:-1], int), head.tables(examples.lexicon())

    def penalty(params, hidden):
        return head.weighted_loss_and_penalty(params, tables, hidden, targets, 1.0)[1]

    slopes = jax.jit(jax.grad(penalty))(params, hidden)
    assert not any(np.any(leaf) for leaf in jax.tree.leaves(slopes))


def test_prepared_parameters_say_the_same(params, hidden):
    tables = examples.lexicon().tables()
    prepared = jax.jit(HEAD.prepared)(params, tables)
    assert prepared[0].shape[1] == SIZE
    empty = {"weights": None, "bias": None}  # no feature vector is read
    targets = jnp.asarray([0, 3, 7, 9])
    score = jax.jit(HEAD.log_prob_and_log_z)
    scores = score(empty, tables, hidden, targets, prepared=prepared)
    np.testing.assert_allclose(scores, score(params, tables, hidden, targets), rtol=1e-12)
    key, sample = jax.random.key(1), jax.jit(HEAD.sample)
    words = sample(empty, tables, hidden, key, prepared=prepared)
    np.testing.assert_array_equal(words, sample(params, tables, hidden, key))


def test_bad_penalties():
    with pytest.raises(UserError, match=r"penalty of LogLinear is -1"):
        LogLinear(penalty=-1.0)
    with pytest.raises(UserError, match=r"penalty_norm of LogLinear is 0\.5"):
        LogLinear(penalty_norm=0.5)


def test_a_lexicon_without_features_is_an_error():
    with pytest.raises(UserError, match="the log-linear head needs words with features"):
        HEAD.init(jax.random.key(0), SIZE, examples.plain_lexicon())
