"""Steps of several steps against numpy."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import examples
from zoo.decoding import BeamSearch, average, fuse, sample
from zoo.decoding.steps import check_same_words
from zoo.errors import UserError

WORDS = 7


def follow_table(table, words, carry):
    """The carry has the last word before this one, too."""
    return table[(words + 2 * carry) % WORDS], words


@pytest.fixture
def tables(random):
    """log p(next | a number), [3, V, V]; the first has zeros."""
    probs = random.dirichlet(np.ones(WORDS), (3, WORDS))
    probs[0, :, 1] = 0
    probs /= probs.sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore"):
        return np.log(probs)


def make_steps(tables):
    return [jax.tree_util.Partial(follow_table, jnp.asarray(t, jnp.float32)) for t in tables]


WORD, BEFORE = np.array([4, 0, 6]), np.array([[1, 2, 3], [0, 0, 5], [6, 1, 2]], np.int32)


def apply(step):
    """log_probs of an ensemble of three, whose members have carries of their own."""
    carry = tuple(jnp.asarray(before) for before in BEFORE)
    log_probs, carry = step(jnp.asarray(WORD, jnp.int32), carry)
    for leaf in carry:
        np.testing.assert_array_equal(leaf, WORD)
    return np.asarray(log_probs)


def members(tables):
    """p of each member, [3, rows, V]."""
    return np.exp([t[(WORD + 2 * b) % WORDS] for t, b in zip(tables, BEFORE, strict=True)])


@pytest.mark.parametrize("weights", [None, (1, 2, 5), (0, 3, 1)], ids=str)
def test_averages_of_probabilities_and_of_logarithms(tables, weights):
    shares = np.array(weights or (1, 1, 1)) / sum(weights or (1, 1, 1))
    pairs = [*zip(shares, members(tables), strict=True)]
    averaged = apply(average(make_steps(tables), weights))
    np.testing.assert_allclose(np.exp(averaged), sum(s * p for s, p in pairs), rtol=1e-5)
    averaged = apply(average(make_steps(tables), weights, quantity="logs"))
    product = np.prod([p**s for s, p in pairs], axis=0)
    expected = product / product.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(np.exp(averaged), expected, rtol=1e-5)


def test_a_language_model_adds_to_the_scores(tables):
    steps = make_steps(tables)
    p, q = members(tables)[1], members(tables)[2]
    carry = tuple(jnp.asarray(before) for before in BEFORE[1:])
    scores = np.log(p) + 0.4 * np.log(q)
    word = jnp.asarray(WORD, jnp.int32)
    fused, carries = fuse(steps[1], steps[2], 0.4)(word, carry)
    np.testing.assert_allclose(fused, scores, rtol=1e-5)
    assert len(carries) == 2
    fused, _ = fuse(steps[1], steps[2], 0.4, renormalised=True)(word, carry)
    expected = np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(np.exp(fused), expected, rtol=1e-5)
    # Without weight even what the language model forbids is the translator's.
    fused, _ = fuse(steps[1], steps[0], 0.0)(word, (carry[0], jnp.asarray(BEFORE[0])))
    np.testing.assert_allclose(np.exp(fused), p, rtol=1e-5)


def test_decoders_take_ensembles(tables):
    """An ensemble of one model with itself decodes as the model, beams reorder all carries."""
    single = make_steps(tables)[1]
    ensemble = average([single, average([single, single], quantity="logs")])
    words, carry = np.array([3, 4]), jnp.zeros(2, jnp.int32)
    carries = carry, (carry, carry)
    settings = BeamSearch(3, 3, longest=4)
    hypotheses, expected = (
        settings.search(step, words, state, boundary=0)
        for step, state in ((ensemble, carries), (single, carry))
    )
    np.testing.assert_array_equal(hypotheses.words, expected.words)
    np.testing.assert_allclose(hypotheses.score, expected.score, rtol=1e-5)
    greedy = [
        sample(step, words, state, jax.random.key(0), 4, temperature=0)[0]
        for step, state in ((ensemble, carries), (single, carry))
    ]
    np.testing.assert_array_equal(*greedy)


@pytest.mark.parametrize("weights", [(1, 2), (1, -1, 2), (0, 0, 0), (1, float("nan"), 1)], ids=str)
def test_weights_are_checked(tables, weights):
    with pytest.raises(UserError, match="weights of an ensemble of 3"):
        average(make_steps(tables), weights)


def test_what_cannot_be_combined_is_refused(tables):
    steps = make_steps(tables)
    with pytest.raises(UserError, match="no steps"):
        average([])
    with pytest.raises(UserError, match="an ensemble cannot average 'words': give 'prob"):
        average(steps, quantity="words")
    with pytest.raises(UserError, match="weight is -1"):
        fuse(*steps[:2], -1)
    with pytest.raises(ValueError, match=r"have \[6, 7\] words"):
        apply(average([*steps[:2], *make_steps(tables[2:, :, 1:])]))


def test_models_of_other_words_are_refused():
    lexicon = examples.plain_lexicon()
    check_same_words([lexicon, examples.plain_lexicon()], ["a", "b"])
    reversed_lexicon = dataclasses.replace(lexicon, words=lexicon.words[::-1])
    with pytest.raises(UserError, match="runs/c and runs/a have different words: combine"):
        check_same_words([lexicon, lexicon, reversed_lexicon], ["runs/a", "runs/b", "runs/c"])
    marked_lexicon = dataclasses.replace(lexicon, boundary=lexicon.words[0])
    with pytest.raises(UserError, match="have different boundary or unknown words"):
        check_same_words([lexicon, marked_lexicon], ["a", "b"])
