"""Entropy and divergence of heads, against numpy in float64; in blocks of tokens."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import examples, references
from zoo import heads
from zoo.heads.distributions import Distribution, entropy, kl_divergence
from zoo.losses import softmax

SIZE = 5


def make_distribution(head, random, size=SIZE, massless=()):
    """A distribution of three tokens."""
    lexicon = examples.lexicon(massless)
    params = examples.random_params(head, random, size, lexicon)
    hidden = jnp.asarray(random.normal(size=(3, size)))
    return Distribution(head, params, head.tables(lexicon), hidden)


def compiled(function):
    """The function of distributions in one program."""

    def call(*distributions):
        heads = [distribution.head for distribution in distributions]

        @jax.jit
        def call_arrays(arrays):
            pairs = zip(heads, arrays, strict=True)
            return function(*(Distribution(head, *fields) for head, fields in pairs))

        return call_arrays([distribution[1:] for distribution in distributions])

    return call


def probabilities(weights, bias, hidden):
    logits = np.asarray(hidden) @ np.asarray(weights).T + np.asarray(bias)
    return np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)


def test_values_are_the_formula(float64, random):
    p = make_distribution(heads.Softmax(), random)
    q = make_distribution(heads.MixtureOfSoftmaxes(components=2), random, size=7)
    shares = probabilities(p.params["weights"], p.params["bias"], p.hidden)
    entropy_of, divergence = compiled(entropy), compiled(kl_divergence)
    np.testing.assert_allclose(entropy_of(p), -(shares * np.log(shares)).sum(-1), rtol=1e-10)
    log_q = np.asarray(jax.jit(q.head.log_probs)(q.params, q.tables, q.hidden))
    expected = (shares * (np.log(shares) - log_q)).sum(-1)
    np.testing.assert_allclose(divergence(p, q), expected, rtol=1e-10)
    np.testing.assert_allclose(divergence(p, p), np.zeros(3), atol=1e-12)


def test_a_capped_teacher_and_an_uncapped_student(float64, random):
    p = make_distribution(heads.Softmax(soft_cap=1.5), random)
    q = make_distribution(heads.Softmax(), random, size=7)
    log_p, log_q = (
        references.softmax_log_probs(
            d.hidden, d.params["weights"], d.params["bias"], d.head.soft_cap
        )
        for d in (p, q)
    )
    expected = (np.exp(log_p) * (log_p - log_q)).sum(-1)
    np.testing.assert_allclose(compiled(kl_divergence)(p, q), expected, rtol=1e-10)


@pytest.mark.parametrize("at_a_time", [13, 26, None])
def test_gradients_are_the_formula(at_a_time, float64, random, monkeypatch):
    """One token at a time, two, of which the last is padding, and all."""
    if at_a_time is not None:
        monkeypatch.setattr(softmax, "LOGITS_AT_A_TIME", 2 * at_a_time)
    teacher, student = (
        make_distribution(heads.Softmax(), random),
        make_distribution(heads.Softmax(), random),
    )

    def total(params, hidden):
        q = student._replace(params=params, hidden=hidden)
        weights = jnp.array([1.0, 0.5, 2.0])
        return (weights * kl_divergence(teacher, q)).sum() + entropy(q).sum()

    def expected(arrays):
        p = probabilities(teacher.params["weights"], teacher.params["bias"], teacher.hidden)
        q = probabilities(arrays["weights"], arrays["bias"], arrays["hidden"])
        divergence = (p * (np.log(p) - np.log(q))).sum(-1)
        return (np.array([1.0, 0.5, 2.0]) * divergence).sum() - (q * np.log(q)).sum()

    arrays = {**student.params, "hidden": student.hidden}
    params_gradient, hidden_gradient = jax.jit(jax.grad(total, (0, 1)))(
        student.params, student.hidden
    )
    expected_gradients = references.finite_differences(expected, arrays)
    np.testing.assert_allclose(hidden_gradient, expected_gradients["hidden"], rtol=1e-6, atol=1e-7)
    for name, gradient in params_gradient.items():
        np.testing.assert_allclose(gradient, expected_gradients[name], rtol=1e-6, atol=1e-7)


def test_words_without_probability(float64, random):
    """They add nothing where p has none, and everything where q alone has none."""
    p, q = (
        make_distribution(heads.LogLinear(), random, massless=(2, 5)),
        make_distribution(heads.LogLinear(), random),
    )
    log_p = np.asarray(jax.jit(p.head.log_probs)(p.params, p.tables, p.hidden))
    assert np.isneginf(log_p[:, [2, 5]]).all()
    finite_log_p = np.delete(log_p, [2, 5], axis=1)
    np.testing.assert_allclose(
        compiled(entropy)(p), -(np.exp(finite_log_p) * finite_log_p).sum(-1), rtol=1e-10
    )
    divergence = compiled(kl_divergence)
    assert np.isfinite(divergence(p, q)).all()
    assert np.isposinf(divergence(q, p)).all()
    slopes = jax.jit(jax.grad(lambda hidden: entropy(p._replace(hidden=hidden)).sum()))
    gradient = slopes(p.hidden)
    assert np.isfinite(gradient).all()


def test_no_array_has_all_tokens_and_words():
    head, lexicon = heads.Softmax(), examples.plain_lexicon(4096)
    params = jax.eval_shape(functools.partial(head.init, hidden_size=8, lexicon=lexicon), KEY)
    hidden = jax.ShapeDtypeStruct((8192, 8), jnp.float32)

    def loss(params, hidden):
        p = Distribution(head, params, {}, hidden)
        return (entropy(p) + kl_divergence(p, p)).sum()

    compiled = jax.jit(jax.grad(loss, (0, 1))).lower(params, hidden).compile()
    temporary_bytes = compiled.memory_analysis().temp_size_in_bytes
    assert temporary_bytes < 8192 * 4096 * 4  # 128 MiB, which one such array takes


KEY = jax.ShapeDtypeStruct((), jax.random.key(0).dtype)


def test_what_does_not_fit_is_named(random):
    p = make_distribution(heads.Softmax(), random)
    with pytest.raises(ValueError, match=r"p has hidden states of the shape \(3, 5\) and q of \(2"):
        kl_divergence(p, p._replace(hidden=p.hidden[:2]))
    small_params = heads.Softmax().init(jax.random.key(0), SIZE, examples.plain_lexicon(7))
    with pytest.raises(ValueError, match="p is over 13 words, and q over 7"):
        kl_divergence(p, p._replace(params=small_params))


def test_a_head_over_all_spellings_has_no_entropy_over_words(random):
    spelled = make_distribution(heads.CharLSTM(), random)
    with pytest.raises(ValueError, match="entropy: the head of p is normalised over all spellings"):
        entropy(spelled)
    words = make_distribution(heads.Softmax(), random)
    with pytest.raises(ValueError, match="kl_divergence: the head of q"):
        kl_divergence(words, spelled)
