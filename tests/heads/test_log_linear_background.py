"""Log-linear heads over a background with a context, against the dense formula in numpy."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from tests import examples, references
from zoo.heads import LogLinear
from zoo.losses import softmax
from zoo.losses.weighted_softmax import weighted_softmax_loss
from zoo.priors import ContextualBackground
from zoo.priors.prior import sum_by_signature

SIZE, VOCABULARY = 5, 13
CONTEXTS = np.array([[3, 0, 12], [7, 7, 2]])
TARGETS = np.array([[0, 4, 12], [9, 10, 6]])
WEIGHTS = np.array([[1.0, 0.5, 2.0], [0.3, 0.0, 1.0]])


def bigrams():
    """log b(x | word before), [V, V], rows of very different size; some words have no mass."""
    random = np.random.default_rng(4)
    masses = random.uniform(0.1, 3, (VOCABULARY, VOCABULARY))
    masses[3, 5] = masses[7, [9, 1]] = masses[2, 3:5] = 0  # words 3 and 4 have one signature
    masses[12] *= 1e-30
    return references.log(masses)


@dataclasses.dataclass(frozen=True)
class Bigrams(ContextualBackground):
    """The table above; the context is the word before."""

    def tables(self, lexicon):
        return {"bigrams": jnp.asarray(bigrams())}

    def initial_carry(self, batch):
        return jnp.zeros((batch, 0))

    def apply(self, tables, words, carry, *, reset=None):
        return words, carry

    def log_probs(self, tables, contexts):
        return tables["bigrams"][contexts]


HEAD = LogLinear(background=Bigrams())


@pytest.fixture
def arguments(float64, random):
    lexicon = examples.lexicon()
    hidden = jnp.asarray(random.normal(size=(2, 3, SIZE)))
    params = examples.random_params(HEAD, random, SIZE, lexicon)
    return params, HEAD.tables(lexicon), hidden


def reference(params, hidden):
    """log p of every word, [2, 3, V]."""
    matrix = references.feature_matrix(examples.FEATURES, examples.lexicon().feature_names)
    log_probs = np.zeros((2, 3, VOCABULARY))
    for place in np.ndindex(2, 3):
        adaptor = np.asarray(params["weights"]) @ hidden[place] + np.asarray(params["bias"])
        place_log_probs = references.log_linear_log_probs(
            [adaptor], matrix, bigrams()[CONTEXTS[place]]
        )
        log_probs[place] = place_log_probs[0]
    return log_probs


def target_log_probs(log_probs):
    return np.take_along_axis(np.asarray(log_probs), TARGETS[..., None], -1)[..., 0]


CLOSE = {"rtol": 2e-6, "atol": 1e-6}


def test_probabilities_are_those_of_the_formula(arguments):
    params, tables, hidden = arguments
    expected = reference(params, hidden)
    log_probs = jax.jit(HEAD.log_probs)(params, tables, hidden, context=CONTEXTS)
    np.testing.assert_allclose(log_probs, expected, **CLOSE)
    np.testing.assert_allclose(np.exp(log_probs).sum(-1), np.ones((2, 3)), rtol=1e-9)
    log_prob, log_z = jax.jit(HEAD.log_prob_and_log_z)(
        params, tables, hidden, TARGETS, context=CONTEXTS
    )
    # Word 9 has no mass after word 7: its log-probability is -inf.
    assert np.isneginf(log_prob[1, 0])
    np.testing.assert_allclose(log_prob, target_log_probs(expected), **CLOSE)
    assert np.isfinite(log_z).all()
    top_k = jax.jit(HEAD.top_k, static_argnums=3)
    values, words = top_k(params, tables, hidden, 4, context=CONTEXTS)
    np.testing.assert_allclose(values, -np.sort(-expected, -1)[..., :4], **CLOSE)
    np.testing.assert_array_equal(words, np.argsort(-expected, -1)[..., :4])


def test_gradients_are_those_of_the_formula(arguments):
    """Word 9 is impossible, and has the weight 0 here: it must not spoil the sums."""
    params, tables, hidden = arguments
    weights = np.where(TARGETS == 9, 0, WEIGHTS)

    def objective(arrays):
        log_prob = target_log_probs(reference(arrays, arrays["hidden"]))
        return -np.sum(weights[weights > 0] * log_prob[weights > 0])

    arrays = {**params, "hidden": hidden}
    expected = references.finite_differences(objective, arrays)

    def summed(params, hidden):
        losses = HEAD.loss(params, tables, hidden, TARGETS, context=CONTEXTS)
        return jnp.sum(jnp.where(weights > 0, weights * losses, 0))

    def weighted(params, hidden):
        return HEAD.weighted_loss(params, tables, hidden, TARGETS, weights, context=CONTEXTS)

    slopes = jax.jit(
        jax.grad(lambda u: HEAD.weighted_loss(*arguments, TARGETS, u, context=CONTEXTS))
    )(jnp.asarray(weights))
    losses = -target_log_probs(reference(params, np.asarray(hidden)))
    assert losses[1, 0] == np.inf
    np.testing.assert_allclose(slopes, np.where(TARGETS == 9, 0, losses), **CLOSE)

    for form in (summed, weighted):
        value, gradients = jax.jit(jax.value_and_grad(form, argnums=(0, 1)))(params, hidden)
        np.testing.assert_allclose(value, objective(arrays), **CLOSE)
        for name, gradient in {**gradients[0], "hidden": gradients[1]}.items():
            np.testing.assert_allclose(gradient, expected[name], **CLOSE, err_msg=name)


@pytest.mark.parametrize("block", [1, 4, 7, 11])
@pytest.mark.slow
def test_blocks_of_tokens_that_do_not_divide_them(float64, random, block):
    tokens, classes = 11, 6
    hidden, weights = random.normal(size=(tokens, SIZE)), random.normal(size=(classes, SIZE))
    bias, targets = random.normal(size=classes), random.integers(classes, size=tokens)
    log_measures, token_weights = random.normal(size=(tokens, classes)), random.uniform(size=tokens)
    arrays = tuple(map(jnp.asarray, (hidden, weights, bias)))
    measure = jax.tree_util.Partial(
        lambda table, contexts: table[contexts], jnp.asarray(log_measures)
    )
    contexts = np.arange(tokens)[::-1].copy()

    expected = np.zeros(tokens)
    for token, (h, x) in enumerate(zip(hidden, targets, strict=True)):
        scores = [w @ h + c for w, c in zip(weights, bias, strict=True)]
        log_z = references.log_sum_exp(np.array(scores) + log_measures[contexts[token]])
        expected[token] = log_z - scores[x]

    def summed(hidden, weights, bias):
        losses, _ = softmax.softmax_loss(hidden, weights, bias, targets, block, measure, contexts)
        return jnp.sum(token_weights * losses), losses

    def weighted(hidden, weights, bias):
        return weighted_softmax_loss(
            hidden,
            weights,
            bias,
            targets,
            jnp.asarray(token_weights),
            block,
            log_measure=measure,
            contexts=contexts,
        )

    gradients, losses = jax.grad(summed, argnums=(0, 1, 2), has_aux=True)(*arrays)
    np.testing.assert_allclose(losses, expected, rtol=1e-10)
    value, weighted_gradients = jax.value_and_grad(weighted, argnums=(0, 1, 2))(*arrays)
    np.testing.assert_allclose(value, token_weights @ expected, rtol=1e-10)
    for gradient, weighted_gradient in zip(gradients, weighted_gradients, strict=True):
        np.testing.assert_allclose(gradient, weighted_gradient, rtol=1e-9, atol=1e-12)


def test_the_best_words_in_blocks_of_tokens_and_their_contexts(arguments, monkeypatch):
    params, tables, hidden = arguments
    monkeypatch.setattr(softmax, "LOGITS_AT_A_TIME", 4 * VOCABULARY)  # six tokens: blocks of three
    top_k = jax.jit(HEAD.top_k, static_argnums=3)
    values, words = top_k(params, tables, hidden, 4, context=CONTEXTS)
    expected = reference(params, hidden)
    np.testing.assert_array_equal(words, np.argsort(-expected, axis=-1)[..., :4])
    np.testing.assert_allclose(values, -np.sort(-expected, axis=-1)[..., :4], **CLOSE)


def test_samples_have_the_declared_probabilities(arguments):
    params, tables, hidden = arguments
    draws = 10_000
    states = jnp.broadcast_to(hidden[0, 0], (draws, SIZE))
    contexts = jnp.full(draws, CONTEXTS[0, 0])
    words = jax.jit(HEAD.sample)(params, tables, states, jax.random.key(5), context=contexts)
    observed = np.bincount(words, minlength=VOCABULARY)
    expected = np.exp(reference(params, hidden)[0, 0])
    assert observed[expected == 0].sum() == 0
    has_mass = expected > 0
    result = scipy.stats.chisquare(observed[has_mass], draws * expected[has_mass])
    assert result.pvalue > 1e-3


@pytest.mark.parametrize("depth", [95, 60])
def test_words_far_less_probable_than_others_keep_their_mass(depth):
    """In float32, whose least number is e^-103; also where words have none at all."""
    none = -np.inf
    log_probs = np.array([[0, -depth, -depth - 1, none, none], [-100 - depth, none, -100, none, 0]])
    signature = np.array([0, 1, 1, 2, 2])
    log_masses = jax.jit(sum_by_signature, static_argnums=2)(
        jnp.asarray(log_probs, jnp.float32), signature, 3
    )
    pair_log_mass = -depth + np.log1p(np.exp(-1))
    expected = [[0, pair_log_mass, none], [-100 - depth, -100, 0]]
    np.testing.assert_allclose(log_masses, expected, rtol=1e-6)
