"""Contributions, background and log Z add up to the log-probability of the word."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import examples
from tests.heads import test_log_linear_background as contextual
from tests.marks import slow
from zoo.heads import LogLinear
from zoo.lab.evaluation import best_words

HIDDEN = np.array([[0.5, -1.0], [2.0, 0.25]], np.float32)


def by_loop(lexicon, params, hidden):
    """log b(v) + sum_f a_f phi_f(v) of each word, and log Z, in float64 by the definition."""
    scores = np.zeros(len(lexicon))
    for word in range(len(lexicon)):
        scores[word] = lexicon.log_background[word]
        for name, value in lexicon.features_of(word).items():
            row = lexicon.feature_names.index(name)
            adaptor = params["bias"][row] + sum(
                float(params["weights"][row, d]) * float(hidden[d]) for d in range(len(hidden))
            )
            scores[word] += adaptor * value
    return scores, np.log(np.exp(scores).sum())


@pytest.mark.parametrize("form", ["dense_sums", *slow("sparse_sums", "product")])
def test_parts_are_those_of_a_loop(form, random):
    lexicon, head = examples.lexicon(), LogLinear(form=form)
    params = examples.random_params(head, random, 2, lexicon)
    tables, words = head.tables(lexicon), [2, 9]
    contributions = best_words.word_contributions(head, params, tables, lexicon, HIDDEN, words)
    expected = np.asarray(jax.jit(head.log_prob)(params, tables, HIDDEN, jnp.array(words)))
    for hidden, word, parts, log_prob in zip(HIDDEN, words, contributions, expected, strict=True):
        scores, log_z = by_loop(lexicon, params, hidden)
        assert parts.log_background == pytest.approx(lexicon.log_background[word], rel=1e-5)
        assert parts.log_z == pytest.approx(log_z, rel=1e-5)
        sizes = [abs(nats) for _, nats in parts.features]
        assert sizes == sorted(sizes, reverse=True)
        assert {name for name, _ in parts.features} == lexicon.features_of(word).keys()
        score = parts.log_background + sum(nats for _, nats in parts.features)
        assert score == pytest.approx(scores[word], rel=1e-5)
        assert parts.log_prob == pytest.approx(log_prob, rel=1e-5)


def test_a_feature_by_hand():
    lexicon, head = examples.lexicon(), LogLinear()
    rows = len(lexicon.feature_names)
    params = {"weights": np.zeros((rows, 2), np.float32), "bias": np.zeros(rows, np.float32)}
    row = lexicon.feature_names.index("length")
    params["weights"][row], params["bias"][row] = (2.0, 1.0), 0.5
    tables = head.tables(lexicon)
    # Word 8 has the length -0.4 alone: -0.4 (2 * 0.5 - 1 * 1 + 0.5).
    (parts,) = best_words.word_contributions(head, params, tables, lexicon, HIDDEN[:1], [8])
    assert parts.features == (("length", pytest.approx(-0.2)),)


def test_features_of_other_kinds_are_left_out(random):
    lexicon, head = examples.lexicon(), LogLinear(kinds=("tag a", "length"))
    params = examples.random_params(head, random, 2, lexicon)
    tables = head.tables(lexicon)
    (parts,) = best_words.word_contributions(head, params, tables, lexicon, HIDDEN[:1], [2])
    assert {name for name, _ in parts.features} == {"tag a", "length"}
    log_prob = jax.jit(head.log_prob)(params, tables, HIDDEN[:1], jnp.array([2]))
    assert parts.log_prob == pytest.approx(float(log_prob[0]), rel=1e-5)


def test_a_background_of_the_words_before_is_a_part(random):
    lexicon, head = examples.lexicon(), contextual.HEAD
    params = examples.random_params(head, random, 2, lexicon)
    tables, before, words = head.tables(lexicon), jnp.array([7, 3]), [2, 9]
    contributions = best_words.word_contributions(
        head, params, tables, lexicon, HIDDEN, words, before
    )
    table = contextual.bigrams()
    backgrounds = [table[7, 2], table[3, 9]]
    np.testing.assert_allclose(
        [parts.log_background for parts in contributions], backgrounds, rtol=1e-5
    )
    log_prob = jax.jit(head.log_prob)(params, tables, HIDDEN, jnp.array(words), context=before)
    np.testing.assert_allclose([parts.log_prob for parts in contributions], log_prob, rtol=1e-5)
