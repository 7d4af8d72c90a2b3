"""The log-linear head with rich features, in each of its forms, against the dense formula."""

import functools
import logging

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import examples, references
from zoo import priors
from zoo.embeddings import Features
from zoo.errors import UserError
from zoo.heads import LogLinear, WithExpert
from zoo.lexicon import feature_signatures, with_features
from zoo.lexicon.feature_signatures import Form
from zoo.losses import log_linear
from zoo.priors.experts import Expert

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


def test_the_form_follows_from_the_counts():
    def cheapest(**counts):
        estimates = feature_signatures.costs(**counts)
        return min(estimates, key=estimates.get)

    tags = {"shared": 60, "entries": 58_000, "shared_entries": 48_000}
    assert cheapest(signatures=10_000, features=10_060, **tags) is Form.DENSE_SUMS
    topics = {"shared": 600, "entries": 40_000, "shared_entries": 30_000}
    assert cheapest(signatures=10_000, features=10_600, **topics) is Form.SPARSE_SUMS
    affixes = {"shared": 1_677, "entries": 59_000, "shared_entries": 49_000}
    assert cheapest(signatures=10_000, features=11_677, **affixes) is Form.SPARSE_SUMS
    letters = {"shared": 1_677, "entries": 49_000, "shared_entries": 49_000}
    assert cheapest(signatures=9_900, features=1_677, **letters) is Form.PRODUCT


def test_only_so_many_features_of_a_signature_are_its_own(monkeypatch):
    monkeypatch.setattr(feature_signatures, "MOST_PRIVATE", 2)
    rows, ids = np.array([0, 0, 1, 1, 1, 1]), np.array([0, 1, 1, 2, 3, 4])
    is_private = feature_signatures.is_private(rows, ids, 6)
    assert is_private.tolist() == [True, False, False, True, True, False]


@pytest.mark.usefixtures("float64")
def test_sums_alone_can_be_asked_for():
    lexicon = examples.lexicon()
    lexicon.__dict__["signature_form"] = Form.PRODUCT
    assert "of_signature" in LogLinear().tables(lexicon)
    chosen = feature_signatures.choose_form(lexicon, feature_signatures.SUMS)
    assert "private_features" in lexicon.tables(chosen)


@pytest.mark.parametrize("form", ["dense_sums", "sparse_sums", "product"])
def test_a_form_can_be_asked_for(form, caplog, monkeypatch):
    monkeypatch.setattr(logging.getLogger("zoo"), "propagate", True)
    head = LogLinear(form=form)
    with caplog.at_level(logging.INFO, logger="zoo"):
        tables = head.tables(examples.lexicon())
    assert head.form_name(tables) == form
    assert Form[form.upper()].value in caplog.text
    assert WithExpert(Expert(), head).form_name({"head": tables}) == form


def test_the_form_of_the_estimate_is_taken_unless_one_is_asked_for():
    lexicon = examples.lexicon()
    assert LogLinear().form_name(LogLinear().tables(lexicon)) == "dense_sums"


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"form": "PRODUCT"}, "give one of auto, dense_sums, sparse_sums, product"),
        ({"form": "product", "background": priors.KneserNey(2)}, "only the lexicon's background"),
    ],
)
def test_a_form_that_cannot_be_is_refused(fields, error):
    with pytest.raises(UserError, match=error):
        LogLinear(**fields)


@pytest.fixture(params=[Form.PRODUCT, Form.SPARSE_SUMS, Form.DENSE_SUMS], ids=lambda f: f.name)
def case(request, float64):
    return problem(request.param)


@functools.cache
def problem(form):
    """Sums are tested with identities of most words beside the letters."""
    random = np.random.default_rng(7)
    lexicon, features, background = spelled_lexicon(random)
    if form is not Form.PRODUCT:
        for word, word_features in enumerate(features[:-9]):
            word_features.update({f"Word:{word}": 0.5 + word % 3} if word not in (5, 9) else {})
        features[7], features[-1] = {}, {f"own {n}": 0.3 * n for n in range(1, 9)}
        lexicon = with_features(examples.plain_lexicon(WORDS), features, background)
    # A cached property: what the estimate would have chosen is not asked.
    lexicon.__dict__["signature_form"] = form
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


def test_the_form_is_logged_with_the_counts(random, caplog, monkeypatch):
    # A test that ran train.py before this one has sent the zoo's log to standard output alone.
    monkeypatch.setattr(logging.getLogger("zoo"), "propagate", True)
    lexicon, _, _ = spelled_lexicon(random)
    with caplog.at_level(logging.INFO, logger="zoo"):
        form = feature_signatures.choose_form(lexicon)
        assert ("of_signature" in feature_signatures.tables(lexicon, form)) == (
            form is Form.PRODUCT
        )
    signature_count = len(lexicon.signatures[1])
    assert 990 < signature_count < WORDS
    assert f"1001 words, {signature_count} signatures" in caplog.text
    assert form.value in caplog.text
    assert "of a softmax over the words" in caplog.text


def test_few_features_are_not(caplog, monkeypatch):
    monkeypatch.setattr(logging.getLogger("zoo"), "propagate", True)
    with caplog.at_level(logging.INFO, logger="zoo"):
        # A lexicon of its own: the choice is made, and logged, once a lexicon.
        assert "shared_values" in feature_signatures.tables(examples.lexicon())
    assert "a softmax over signatures" in caplog.text


def test_values_are_those_of_the_dense_formula(case):
    lexicon, _, params, hidden, targets, log_probs = case
    head = LogLinear()
    tables = head.tables(lexicon)

    @jax.jit
    def evaluate(params, tables, hidden):
        arguments = params, tables, hidden
        exact = head.log_prob_and_log_z(*arguments, targets)
        return head.log_probs(*arguments), *exact, head.loss(*arguments, targets)

    actual, log_prob, log_z, loss = evaluate(params, tables, hidden)
    np.testing.assert_allclose(actual.reshape(-1, WORDS), log_probs, rtol=1e-6, atol=1e-6)
    expected = log_probs[np.arange(69), targets.ravel()].reshape(3, 23)
    np.testing.assert_allclose(log_prob, expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(loss, -expected, rtol=1e-6, atol=1e-6)
    assert log_z.shape == (3, 23)


@pytest.mark.parametrize("form", [pytest.param("loss", marks=pytest.mark.slow), "weighted_loss"])
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

    @jax.jit
    def evaluate(*arrays):
        return jax.value_and_grad(summed, argnums=(0, 2))(*arrays), summed(*arrays)

    results, without_gradient = evaluate(params, head.tables(lexicon), hidden)
    value, (params_gradient, hidden_gradient) = results
    assert value == pytest.approx(float(without_gradient), rel=1e-10)
    target_words = np.ravel(targets)
    assert value == pytest.approx(-weights @ log_probs[np.arange(69), target_words], rel=1e-6)
    adaptor_gradient = weights[:, None] * (np.exp(log_probs) @ phi - phi[target_words])
    close = {"rtol": 1e-5, "atol": 1e-6}
    np.testing.assert_allclose(params_gradient["bias"], adaptor_gradient.sum(0), **close)
    states = np.asarray(hidden).reshape(-1, SIZE)
    np.testing.assert_allclose(params_gradient["weights"], adaptor_gradient.T @ states, **close)
    expected = adaptor_gradient @ np.asarray(params["weights"])
    np.testing.assert_allclose(hidden_gradient.reshape(-1, SIZE), expected, **close)


def test_the_embedding_sums_the_features_of_the_words_asked_for(case):
    lexicon, phi, *_ = case
    embedding = Features(4)
    tables = embedding.tables(lexicon)
    params = embedding.init(jax.random.key(1), lexicon)
    words = jnp.asarray([[0, 9, 1000], [5, 9, 2]])
    vectors = jax.jit(embedding.apply)(params, tables, words)
    np.testing.assert_allclose(vectors, phi[words] @ np.asarray(params["table"]), atol=1e-6)


def test_sums_of_all_signatures(case, random):
    lexicon, phi, *_ = case
    vectors = random.normal(size=(phi.shape[1], 3))
    tables = feature_signatures.tables(lexicon)
    sums = jax.jit(feature_signatures.sum_features)(tables, jnp.asarray(vectors))
    word_sums = sums[tables["signature"]]
    np.testing.assert_allclose(word_sums, phi @ vectors, rtol=1e-9, atol=1e-9)


def test_blocks_are_even_and_small_enough():
    assert log_linear.token_block(256, 3000) == 64
    assert log_linear.token_block(65, 3000) == 33
    assert log_linear.token_block(256, 10**6) == 16
    assert log_linear.token_block(1, 3000) == 1


def largest_array(jaxpr) -> int:
    """Numbers of the largest array that is formed in a jaxpr, or in one within it."""
    sizes = [0]
    for equation in jaxpr.eqns:
        sizes += [variable.aval.size for variable in equation.outvars]
        for value in jax.tree.leaves(
            equation.params, is_leaf=lambda leaf: hasattr(leaf, "eqns") or hasattr(leaf, "jaxpr")
        ):
            inner = getattr(value, "jaxpr", value)
            if hasattr(inner, "eqns"):
                sizes.append(largest_array(inner))
    return max(sizes)


@pytest.mark.parametrize("form", list(Form))
def test_no_array_has_tokens_words_and_features(random, form):
    """Neither forward nor backward; the dense formula has one of [tokens, V, F]."""
    tokens, count = 64, 211
    lexicon, _, _ = spelled_lexicon(random, count)
    lexicon.__dict__["signature_form"] = form
    head, tables = LogLinear(), lexicon.tables(form)
    features = len(lexicon.feature_names)
    params = head.init(jax.random.key(0), SIZE, lexicon)
    hidden = jnp.ones((tokens, SIZE))
    targets, weights = jnp.zeros(tokens, jnp.int32), jnp.ones(tokens)
    function = jax.value_and_grad(head.weighted_loss, argnums=(0, 2))
    jaxpr = jax.make_jaxpr(function)(params, tables, hidden, targets, weights)
    largest, allowed = largest_array(jaxpr.jaxpr), 2 * count * max(tokens, features)
    assert tokens * count / 2 < largest <= allowed < tokens * count * features / 20
