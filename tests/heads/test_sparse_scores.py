"""The log-linear head with letter n-grams: a sparse product, against the dense formula."""

import logging

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import examples, references
from zoo import priors, signatures
from zoo.embeddings import Features
from zoo.heads import LogLinear, sparse_scores
from zoo.lexicon import with_features

SIZE, WORDS = 5, 1001


def spelled_words(random, count=WORDS):
    letters = np.array(list("aeio"))
    lengths = random.integers(4, 25, size=count)
    return tuple("".join(letters[random.integers(4, size=n)]) for n in lengths)


def spelled_lexicon(random, count=WORDS):
    """Words that share letter bigrams and trigrams; two of them have all in common."""
    words = spelled_words(random, count)
    features = priors.LetterNgrams(sizes=(2, 3)).features(words, {}, {})
    features[5] = dict(features[9])
    background = np.log(random.dirichlet(np.ones(count)))
    return with_features(examples.plain_lexicon(count), features, background), features, background


@pytest.fixture
def case(random, float64):
    lexicon, features, background = spelled_lexicon(random)
    phi = references.feature_matrix(features, lexicon.feature_names)
    params = {
        "weights": jnp.asarray(0.3 * random.normal(size=(phi.shape[1], SIZE))),
        "bias": jnp.asarray(0.3 * random.normal(size=phi.shape[1])),
    }
    hidden = 0.3 * random.normal(size=(3, 23, SIZE))
    targets = random.integers(WORDS, size=(3, 23))
    adaptors = (
        hidden.reshape(-1, SIZE) @ np.asarray(params["weights"]).T
        + np.asarray(params["bias"])[None]
    )
    log_probs = references.log_linear_log_probs(np.asarray(adaptors), phi, background)
    return lexicon, phi, params, jnp.asarray(hidden), jnp.asarray(targets), log_probs


def test_rich_features_are_a_sparse_product_and_it_is_logged(random, caplog, monkeypatch):
    # A test that ran train.py before this one has sent the zoo's log to standard output alone.
    monkeypatch.setattr(logging.getLogger("zoo"), "propagate", True)
    lexicon, _, _ = spelled_lexicon(random)
    with caplog.at_level(logging.INFO, logger="zoo"):
        assert "of_signature" in signatures.tables(lexicon)
    signature_count = len(lexicon.signatures[1])
    assert 990 < signature_count < WORDS
    assert f"1001 words, {signature_count} signatures" in caplog.text
    assert "scores as a sparse product" in caplog.text


def test_few_features_are_not(caplog, monkeypatch):
    monkeypatch.setattr(logging.getLogger("zoo"), "propagate", True)
    with caplog.at_level(logging.INFO, logger="zoo"):
        # A lexicon of its own: the choice is made, and logged, once a lexicon.
        assert "shared_values" in signatures.tables(examples.lexicon())
    assert "a softmax over signatures" in caplog.text


def test_values_are_those_of_the_dense_formula(case):
    lexicon, _, params, hidden, targets, log_probs = case
    head = LogLinear()
    tables = head.tables(lexicon)
    assert "of_signature" in tables
    found = jax.jit(head.log_probs)(params, tables, hidden)
    np.testing.assert_allclose(found.reshape(-1, WORDS), log_probs, rtol=1e-6, atol=1e-6)
    expected = log_probs[np.arange(69), targets.ravel()].reshape(3, 23)
    log_prob, log_z = jax.jit(head.log_prob_and_log_z)(params, tables, hidden, targets)
    np.testing.assert_allclose(log_prob, expected, rtol=1e-6, atol=1e-6)
    loss = jax.jit(head.loss)(params, tables, hidden, targets)
    np.testing.assert_allclose(loss, -expected, rtol=1e-6, atol=1e-6)
    assert log_z.shape == (3, 23)


@pytest.mark.parametrize("form", ["loss", "weighted_loss"])
def test_gradients_are_expected_minus_observed_features(case, form):
    lexicon, phi, params, hidden, targets, log_probs = case
    head = LogLinear()
    weights = np.random.default_rng(1).uniform(size=69)
    weights[4] = 0
    token_weights = jnp.asarray(weights).reshape(3, 23)

    def summed(params, tables, hidden):
        if form == "loss":
            return jnp.sum(token_weights * head.loss(params, tables, hidden, targets))
        return head.weighted_loss(params, tables, hidden, targets, token_weights)

    function = jax.jit(jax.value_and_grad(summed, argnums=(0, 2)))
    value, (of_params, of_hidden) = function(params, head.tables(lexicon), hidden)
    without_gradient = jax.jit(summed)(params, head.tables(lexicon), hidden)
    assert value == pytest.approx(float(without_gradient), rel=1e-10)
    target_words = np.ravel(targets)
    assert value == pytest.approx(-weights @ log_probs[np.arange(69), target_words], rel=1e-6)
    of_adaptor = weights[:, None] * (np.exp(log_probs) @ phi - phi[target_words])
    close = {"rtol": 1e-5, "atol": 1e-6}
    np.testing.assert_allclose(of_params["bias"], of_adaptor.sum(0), **close)
    states = np.asarray(hidden).reshape(-1, SIZE)
    np.testing.assert_allclose(of_params["weights"], of_adaptor.T @ states, **close)
    expected = of_adaptor @ np.asarray(params["weights"])
    np.testing.assert_allclose(of_hidden.reshape(-1, SIZE), expected, **close)


def test_the_embedding_sums_the_features_of_the_words_asked_for(case):
    lexicon, phi, *_ = case
    embedding = Features(4)
    tables = embedding.tables(lexicon)
    assert "of_signature" in tables
    params = embedding.init(jax.random.key(1), lexicon)
    words = jnp.asarray([[0, 9, 1000], [5, 9, 2]])
    found = jax.jit(embedding.apply)(params, tables, words)
    np.testing.assert_allclose(found, phi[words] @ np.asarray(params["table"]), atol=1e-6)


def test_sums_of_all_signatures(case, random):
    lexicon, phi, *_ = case
    vectors = random.normal(size=(phi.shape[1], 3))
    tables = signatures.tables(lexicon)
    found = signatures.sum_features(tables, jnp.asarray(vectors))[tables["signature"]]
    np.testing.assert_allclose(found, phi @ vectors, rtol=1e-9, atol=1e-9)


def test_blocks_are_even_and_small_enough():
    assert sparse_scores.token_block(256, 3000) == 64
    assert sparse_scores.token_block(65, 3000) == 33
    assert sparse_scores.token_block(256, 10**6) == 16
    assert sparse_scores.token_block(1, 3000) == 1
