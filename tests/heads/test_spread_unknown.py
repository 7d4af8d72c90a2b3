"""Words that share the probability of the unknown word, by hand."""

import dataclasses
import itertools

import jax.numpy as jnp
import numpy as np
import pytest

from tests import examples
from tests.marks import slow
from zoo.errors import UserError
from zoo.heads import (
    AdaptiveSoftmax,
    CharLSTM,
    CNNSoftmax,
    LogLinear,
    Softmax,
    SpreadUnknown,
    WithCache,
)
from zoo.lexicon import Lexicon

TRAINED, OTHER = examples.trained_and_other()
SIZE = 5


@pytest.mark.parametrize("head", [Softmax(), *slow(AdaptiveSoftmax(cutoffs=(2,), division=2))])
def test_probabilities_are_those_of_the_head_and_even_parts_of_the_unknown_word_s(head, random):
    spread = SpreadUnknown(head, TRAINED)
    params = examples.random_params(head, random, SIZE, TRAINED)
    tables, hidden = spread.tables(OTHER), jnp.asarray(random.normal(size=(3, 2, SIZE)))
    known = np.asarray(head.log_probs(params, head.tables(TRAINED), hidden), np.float64)
    part = known[..., 1] - np.log(4)  # x, y, z and the unknown word itself
    by_word = {
        **dict.fromkeys(("x", "y", "z", "?"), part),
        "<s>": known[..., 0],
        "b": known[..., 2],
        "a": known[..., 3],
        "c": known[..., 4],
    }
    wanted = np.stack([by_word[word] for word in OTHER.words], axis=-1)
    found = spread.log_probs(params, tables, hidden)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(np.exp(found).sum(-1), np.ones((3, 2)), rtol=1e-5)
    targets = jnp.asarray([[0, 2], [7, 3], [5, 1]])
    log_prob, log_z = spread.log_prob_and_log_z(params, tables, hidden, targets)
    chosen = np.take_along_axis(wanted, np.asarray(targets)[..., None], -1)[..., 0]
    np.testing.assert_allclose(log_prob, chosen, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(spread.loss(params, tables, hidden, targets), -log_prob)
    _, theirs = head.log_prob_and_log_z(params, head.tables(TRAINED), hidden, targets * 0)
    np.testing.assert_allclose(log_z, theirs)
    assert spread.warnings(OTHER) == {"words that share the unknown word's probability": 4}


@pytest.mark.parametrize("order", [1, 2])
def test_parts_are_those_of_the_letters(order, random):
    """q by its formula, in a loop: p(c | d) = (n(dc) + s p(c | d')) / (n(d) + s)."""
    trained = Lexicon(("<s>", "?", "ab", "b", "ba"), np.zeros(5, int), boundary="<s>", unknown="?")
    words = ("<s>", "?", "abx", "ba", "b", "ab", "bb")
    other = Lexicon(words, np.zeros(7, int), boundary="<s>", unknown="?")
    counted, letters = ["ab#", "b#", "ba#"], "abx#"
    strength = 0.1 * len(letters)

    def after(context, letter):
        if order == 1 or not context:
            count = sum(word.count(letter) for word in counted)
            return (count + strength / len(letters)) / (sum(map(len, counted)) + strength)
        padded = ["^" + word for word in counted]
        pairs = [pair for word in padded for pair in itertools.pairwise(word)]
        seen = sum(first == context for first, _ in pairs)
        shorter = after("", letter)
        if not seen:
            return shorter
        return (pairs.count((context, letter)) + strength * shorter) / (seen + strength)

    def spelled(word):
        first = {letter: after("^", letter) for letter in "abx"}
        p = first[word[0]] / sum(first.values())
        for before, letter in zip(word, word[1:] + "#", strict=True):
            p *= after(before, letter)
        return p

    q = {word: spelled(word) for word in ("abx", "bb")}
    parts = {word: 2 / 3 * p / sum(q.values()) for word, p in q.items()}
    head = SpreadUnknown(Softmax(), trained, letters=order)
    params = examples.random_params(Softmax(), random, SIZE, trained)
    tables, hidden = head.tables(other), jnp.asarray(random.normal(size=(3, SIZE)))
    known = np.asarray(Softmax().log_probs(params, Softmax().tables(trained), hidden), np.float64)
    found = np.asarray(head.log_probs(params, tables, hidden))
    for word, part in {**parts, "?": 1 / 3}.items():
        np.testing.assert_allclose(
            found[:, words.index(word)], known[:, 1] + np.log(part), rtol=1e-5
        )
    np.testing.assert_allclose(np.exp(found).sum(-1), 1, rtol=1e-5)
    assert parts["bb"] > 3 * parts["abx"]  # x is no letter of the words that are known


def test_where_words_cannot_share_it_is_said():
    without = dataclasses.replace(TRAINED, unknown=None)
    with pytest.raises(UserError, match="no unknown word whose probability"):
        SpreadUnknown(Softmax(), without).tables(OTHER)
    for head in (CharLSTM(), CNNSoftmax(), LogLinear()):
        with pytest.raises(UserError, match=rf"a {type(head).__name__} can score new words by "):
            SpreadUnknown(head, TRAINED)
    with pytest.raises(UserError, match=r"put the cache around, WithCache\(SpreadUnknown\(head"):
        SpreadUnknown(WithCache(Softmax()), TRAINED)
    fewer = Lexicon(("a", "<s>", "x", "?", "c"), np.zeros(5, np.int64), boundary="<s>", unknown="?")
    with pytest.raises(UserError, match="1 are missing, such as 'b'"):
        SpreadUnknown(Softmax(), TRAINED).tables(fewer)
