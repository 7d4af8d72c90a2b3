"""Smoothing, entropy and divergence of softmaxes against numpy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import references
from tests.losses.softmax_problems import CLOSE, SIZE, TOKENS, assert_values_and_gradients, problem
from tests.marks import slow
from zoo import losses
from zoo.losses import softmax

SHAPES = [(None, 1.0), (1.5, 0.7)]


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize(("soft_cap", "temperature"), SHAPES)
def test_statistics(random, words, soft_cap, temperature):
    arrays, targets = problem(random, words), random.integers(words, size=TOKENS)
    u, v = random.normal(size=(2, TOKENS))
    options = {"soft_cap": soft_cap, "temperature": temperature}
    expected = references.softmax_log_probs(*arrays.values(), soft_cap, temperature)
    best = expected.argmax(-1)
    targets[:4] = best[:4]
    statistics = jax.jit(lambda *arrays: losses.softmax_statistics(*arrays, targets, **options))
    actual = statistics(*arrays.values())
    np.testing.assert_allclose(actual.log_prob, expected[range(TOKENS), targets], **CLOSE)
    np.testing.assert_allclose(actual.entropy, -(np.exp(expected) * expected).sum(-1), **CLOSE)
    np.testing.assert_array_equal(actual.correct, targets == best)

    def formula(arrays):
        log_probs = references.softmax_log_probs(*arrays.values(), soft_cap, temperature)
        entropies = -(np.exp(log_probs) * log_probs).sum(-1)
        return u @ log_probs[range(TOKENS), targets] + v @ entropies

    def function(*arrays):
        results = statistics(*arrays)
        return u @ results.log_prob + v @ results.entropy

    assert_values_and_gradients([function], arrays, formula)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize(("soft_cap", "temperature"), SHAPES)
def test_divergence_of_softmaxes_of_two_sizes(random, words, soft_cap, temperature):
    q_arrays = {f"q_{name}": array for name, array in problem(random, words, 3).items()}
    arrays, u = problem(random, words) | q_arrays, random.normal(size=TOKENS)
    options = {"soft_cap": soft_cap, "temperature": temperature}

    def formula(arrays):
        arguments = [*arrays.values()]
        p = references.softmax_log_probs(*arguments[:3], soft_cap, temperature)
        q = references.softmax_log_probs(*arguments[3:], soft_cap, temperature)
        return u @ (np.exp(p) * (p - q)).sum(-1)

    def function(*arrays):
        return u @ losses.softmax_kl_divergence(*arrays, **options)

    assert_values_and_gradients([function], arrays, formula)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("massless", ["of p", "of both"])
def test_divergence_with_words_without_mass(random, words, massless):
    """-inf in the bias: such words add nothing, to the divergence and to its gradients."""
    p, q, u = problem(random, words), problem(random, words), random.normal(size=TOKENS)
    for table in (p, q) if massless == "of both" else (p,):
        table["bias"][3:9] = -np.inf
    arrays = p | {f"q_{name}": array for name, array in q.items()}
    is_word = np.delete(np.arange(words), np.s_[3:9])

    def formula(arrays):
        arguments = [*arrays.values()]
        p_gradients, q_gradients = (
            references.softmax_log_probs(*table)[:, is_word]
            for table in (arguments[:3], arguments[3:])
        )
        return u @ (np.exp(p_gradients) * (p_gradients - q_gradients)).sum(-1)

    def function(*arrays):
        return u @ losses.softmax_kl_divergence(*arrays)

    assert_values_and_gradients([function], arrays, formula)


def test_a_sure_prediction_has_nearly_no_entropy():
    """Not the difference of two large numbers."""
    bias = jnp.zeros(13).at[4].set(200.0)
    arguments = jnp.ones((2, 3)), jnp.ones((13, 3)), bias, jnp.array([4, 5])
    results = jax.jit(losses.softmax_statistics)(*arguments)
    np.testing.assert_array_equal(results.correct, [True, False])
    np.testing.assert_allclose(results.entropy, [0, 0], atol=1e-5)


@pytest.mark.parametrize("words", [13, 300])
def test_words_without_mass_have_no_part(words, monkeypatch):
    """As a padded vocabulary has, by a bias of -inf."""
    monkeypatch.setattr(softmax, "LOGITS_AT_A_TIME", 7 * 64)
    monkeypatch.setattr(softmax, "LEAST_ROWS_AT_A_TIME", 1)
    random = np.random.default_rng(5)
    hidden, weights = random.normal(size=(7, 5)), random.normal(size=(words, 5))
    bias, targets = np.zeros(words), np.arange(7)
    table = [jnp.float32(x) for x in (hidden, weights, bias)]
    padded = [table[0], table[1], table[2].at[-3:].set(-jnp.inf)]
    unpadded = [table[0], table[1][:-3], table[2][:-3]]

    def token_statistics(hidden, *table):
        results = losses.softmax_statistics(hidden, *table, targets)
        return results.log_prob.sum() + 2 * results.entropy.sum()

    evaluate = jax.jit(jax.value_and_grad(token_statistics))
    for actual, expected in zip(evaluate(*padded), evaluate(*unpadded), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


def test_a_student_near_its_teacher_is_measured_in_float32(random):
    """The divergence is no difference of large sums, whose rounding would be larger than it."""
    hidden, weights = 6 * random.normal(size=(50, 16)), random.normal(size=(4096, 16))
    near = weights + 1e-4 * random.normal(size=weights.shape)
    bias = np.zeros(4096)
    arguments = [np.float32(x) for x in (hidden, weights, bias, hidden, near, bias)]
    p = references.softmax_log_probs(*arguments[:3])
    q = references.softmax_log_probs(*arguments[3:])
    expected = (np.exp(p) * (p - q)).sum(-1)
    actual = np.asarray(jax.jit(losses.softmax_kl_divergence)(*arguments))
    assert np.abs(actual - expected).max() < 2e-6


IDS = [-1, -100, 13, 18]


@pytest.mark.parametrize("wrong", IDS)
@pytest.mark.parametrize("maximum", [None, 7 * 4])
def test_ids_of_no_word_are_nan_in_compiled_code(random, wrong, maximum, monkeypatch):
    """Where they cannot be refused; unless their weight is 0."""
    if maximum:
        monkeypatch.setattr(softmax, "LOGITS_AT_A_TIME", maximum)
        monkeypatch.setattr(softmax, "LEAST_ROWS_AT_A_TIME", 1)
    table = [jnp.float32(array) for array in problem(random, 13).values()]
    targets = jnp.array([0, 12, wrong, 4, 5, 6, 7])
    is_wrong = np.arange(TOKENS) == 2
    token_losses, log_z = jax.jit(losses.softmax_loss)(*table, targets)
    np.testing.assert_array_equal(np.isnan(token_losses), is_wrong)
    assert np.isfinite(log_z).all()
    results = jax.jit(losses.softmax_statistics)(*table, targets)
    np.testing.assert_array_equal(np.isnan(results.log_prob), is_wrong)
    weighted = jax.jit(losses.weighted_softmax_loss)
    assert np.isnan(weighted(*table, targets, jnp.ones(TOKENS)))
    assert np.isfinite(weighted(*table, targets, jnp.float32(~is_wrong)))


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("p_share", [None, 0.2, *slow(0.5)])
def test_divergences_of_softmaxes_with_caps_and_temperatures_of_their_own(random, words, p_share):
    """KL, and Jensen-Shannon; q has no cap, and a temperature for each token."""
    q_arrays = {f"q_{name}": array for name, array in problem(random, words, 3).items()}
    arrays, u = problem(random, words) | q_arrays, random.normal(size=TOKENS)
    arrays |= {"cap": np.array(1.5), "temperatures": random.uniform(0.5, 2, TOKENS)}

    def formula(arrays):
        *table, cap, temperatures = arrays.values()
        p = references.softmax_log_probs(*table[:3], cap, 0.8)
        q = np.array(
            [
                references.softmax_log_probs(row[None], *table[4:], None, temperature)[0]
                for row, temperature in zip(table[3], temperatures, strict=True)
            ]
        )
        if p_share is None:
            return u @ (np.exp(p) * (p - q)).sum(-1)
        m = np.log(p_share * np.exp(p) + (1 - p_share) * np.exp(q))
        from_p, from_q = ((np.exp(x) * (x - m)).sum(-1) for x in (p, q))
        return u @ (p_share * from_p + (1 - p_share) * from_q)

    def function(*arrays):
        *table, cap, temperatures = arrays
        options = {"soft_cap": (cap, None), "temperature": (0.8, temperatures)}
        if p_share is None:
            return u @ losses.softmax_kl_divergence(*table, **options)
        return u @ losses.softmax_js_divergence(*table, p_share=p_share, **options)

    assert_values_and_gradients([function], arrays, formula)


def test_mixtures_of_near_and_of_disjoint_softmaxes_are_measured_in_float32(random):
    """No difference of large sums; disjoint words differ by log 2, with finite gradients."""
    hidden, weights = 6 * random.normal(size=(50, 16)), random.normal(size=(4096, 16))
    near, bias = weights + 1e-4 * random.normal(size=weights.shape), np.zeros(4096)
    arguments = [np.float32(x) for x in (hidden, weights, bias, hidden, near, bias)]
    p = references.softmax_log_probs(*arguments[:3])
    q = references.softmax_log_probs(*arguments[3:])
    m = np.log((np.exp(p) + np.exp(q)) / 2)
    expected = ((np.exp(p) * (p - m)).sum(-1) + (np.exp(q) * (q - m)).sum(-1)) / 2
    actual = np.asarray(jax.jit(losses.softmax_js_divergence)(*arguments))
    assert np.abs(actual - expected).max() < 1e-6
    table = jnp.zeros((1, 2)), jnp.zeros((4, 2))
    bias = jnp.array([0, 0, -jnp.inf, -jnp.inf])
    arguments = *table, bias, *table, bias[::-1]
    value, gradients = jax.value_and_grad(
        lambda *arrays: losses.softmax_js_divergence(*arrays).sum(), range(6)
    )(*arguments)
    np.testing.assert_allclose(value, np.log(2), rtol=1e-6)
    assert all(np.isfinite(gradient).all() for gradient in gradients)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("block", [None, 3])
def test_labels_are_smoothed_over_words_with_mass(random, words, block):
    """Padded words, with a bias of -inf, get no share of the target distribution."""
    arrays, targets = problem(random, words), random.integers(words - 2, size=TOKENS)
    padded, u = arrays | {"bias": arrays["bias"].copy()}, random.normal(size=TOKENS)
    padded["bias"][-2:] = -np.inf

    def formula(arrays):
        hidden, weights, bias = arrays.values()
        log_probs = references.softmax_log_probs(hidden, weights[:-2], bias[:-2])
        return -u @ (0.8 * log_probs[range(TOKENS), targets] + 0.2 * log_probs.mean(-1))

    def token_losses(*table):
        return u @ losses.softmax_loss(*table, targets, label_smoothing=0.2)[0]

    def weighted(*table):
        return losses.weighted_softmax_loss(*table, targets, u, block, label_smoothing=0.2)

    assert_values_and_gradients((token_losses, weighted), padded, formula)


@pytest.mark.parametrize("block", [None, 4])
def test_tables_of_numpy_under_vmap(random, block):
    arrays = [np.float32(array) for array in problem(random, 13).values()]
    targets = random.integers(13, size=TOKENS)

    def token_loss(hidden, target):
        return losses.softmax_loss(hidden, *arrays[1:], target, block)[0]

    actual = jax.vmap(token_loss)(arrays[0], targets)
    expected = references.softmax_loss(*arrays, targets)[0]
    np.testing.assert_allclose(actual, expected, rtol=1e-5)


@pytest.mark.parametrize("name", ["hidden", "weights", "bias"])
def test_float8_is_refused(random, name):
    arrays = {key: jnp.float32(array) for key, array in problem(random, 13).items()}
    arrays[name] = arrays[name].astype(jnp.float8_e4m3fn)
    with pytest.raises(TypeError, match=f"{name} is of the type float8_e4m3fn: give bfloat16"):
        losses.softmax_loss(**arrays, targets=np.zeros(TOKENS, int))


FUNCTIONS = {
    "capped loss": lambda *table: losses.weighted_softmax_loss(
        *table[:4], jnp.ones(1024), soft_cap=30.0, temperature=0.7, label_smoothing=0.1
    ),
    "entropy": lambda *table: losses.softmax_statistics(*table[:4]).entropy.sum(),
    "divergence": lambda *table: losses.softmax_kl_divergence(*table[:3], *table[4:]).sum(),
    "divergence from a mixture": lambda *table: losses.softmax_js_divergence(
        *table[:3], *table[4:]
    ).sum(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_memory_is_a_fraction_of_the_logits(name):
    """Of temporary arrays, forward and backward."""
    tokens, size, words = 1024, 64, 50_000
    table = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((tokens, size), (words, size))]
    table.append(jax.ShapeDtypeStruct((words,), jnp.float32))
    targets = jax.ShapeDtypeStruct((tokens,), jnp.int32)
    compiled = jax.jit(jax.grad(FUNCTIONS[name], range(3))).lower(*table, targets, *table).compile()
    logits = 4 * tokens * words
    assert compiled.memory_analysis().temp_size_in_bytes < logits / 4


def test_wrong_tables_keys_and_targets():
    hidden, weights, bias = jnp.ones((2, 3)), jnp.ones((5, 3)), jnp.ones(5)
    with pytest.raises(ValueError, match=r"weights has the shape \(0, 3\): give a word and"):
        losses.softmax_loss(hidden, weights[:0], bias[:0], jnp.array([0, 1]))
    with pytest.raises(TypeError, match="targets is of the type list: give an array of whole numb"):
        losses.softmax_loss(hidden, weights, bias, [0, 1])
    with pytest.raises(TypeError, match="key is None: give a key, such as"):
        losses.softmax_sample(hidden, weights, bias, None)
    with pytest.raises(TypeError, match=r"key has \(3,\) keys: give one"):
        losses.softmax_sample(hidden, weights, bias, jax.random.split(jax.random.key(0), 3))


@pytest.mark.parametrize("rival", [1, 5, 12])  # before the target, in its block and in another
def test_a_target_that_another_word_equals_is_not_correct(words, rival):
    bias = jnp.zeros(words).at[jnp.array([4, rival])].set(5.0)
    arguments = jnp.zeros((TOKENS, SIZE)), jnp.zeros((words, SIZE)), bias
    results = jax.jit(losses.softmax_statistics)(*arguments, jnp.full(TOKENS, 4))
    assert not results.correct.any()
