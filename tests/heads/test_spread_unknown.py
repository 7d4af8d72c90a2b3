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

TRAINING_LEXICON, NEW_LEXICON = examples.trained_and_other()
SIZE = 5


@pytest.mark.parametrize("head", [Softmax(), *slow(AdaptiveSoftmax(cutoffs=(2,), division=2))])
def test_probabilities_are_those_of_the_head_and_even_parts_of_the_unknown_word_s(head, random):
    spread = SpreadUnknown(head, TRAINING_LEXICON)
    params = examples.random_params(head, random, SIZE, TRAINING_LEXICON)
    tables, hidden = spread.tables(NEW_LEXICON), jnp.asarray(random.normal(size=(3, 2, SIZE)))
    head_log_probs = np.asarray(
        head.log_probs(params, head.tables(TRAINING_LEXICON), hidden), np.float64
    )
    part = head_log_probs[..., 1] - np.log(4)  # x, y, z and the unknown word itself
    log_p_by_word = {
        **dict.fromkeys(("x", "y", "z", "?"), part),
        "<s>": head_log_probs[..., 0],
        "b": head_log_probs[..., 2],
        "a": head_log_probs[..., 3],
        "c": head_log_probs[..., 4],
    }
    expected = np.stack([log_p_by_word[word] for word in NEW_LEXICON.words], axis=-1)
    log_probs = spread.log_probs(params, tables, hidden)
    np.testing.assert_allclose(log_probs, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(np.exp(log_probs).sum(-1), np.ones((3, 2)), rtol=1e-5)
    targets = jnp.asarray([[0, 2], [7, 3], [5, 1]])
    log_prob, log_z = spread.log_prob_and_log_z(params, tables, hidden, targets)
    target_log_probs = np.take_along_axis(expected, np.asarray(targets)[..., None], -1)[..., 0]
    np.testing.assert_allclose(log_prob, target_log_probs, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(spread.loss(params, tables, hidden, targets), -log_prob)
    _, head_log_z = head.log_prob_and_log_z(
        params, head.tables(TRAINING_LEXICON), hidden, targets * 0
    )
    np.testing.assert_allclose(log_z, head_log_z)
    assert spread.warnings(NEW_LEXICON) == {"words that share the unknown word's probability": 4}


@pytest.mark.parametrize("order", [1, 2])
def test_parts_are_those_of_the_letters(order, random):
    """q by its formula, in a loop: p(c | d) = (n(dc) + s p(c | d')) / (n(d) + s)."""
    training_lexicon = Lexicon(
        ("<s>", "?", "ab", "b", "ba"), np.zeros(5, int), boundary="<s>", unknown="?"
    )
    words = ("<s>", "?", "abx", "ba", "b", "ab", "bb")
    new_lexicon = Lexicon(words, np.zeros(7, int), boundary="<s>", unknown="?")
    training_spellings, letters = ["ab#", "b#", "ba#"], "abx#"
    strength = 0.1 * len(letters)

    def letter_probability(context, letter):
        if order == 1 or not context:
            count = sum(word.count(letter) for word in training_spellings)
            return (count + strength / len(letters)) / (
                sum(map(len, training_spellings)) + strength
            )
        padded = ["^" + word for word in training_spellings]
        pairs = [pair for word in padded for pair in itertools.pairwise(word)]
        context_count = sum(first == context for first, _ in pairs)
        shorter = letter_probability("", letter)
        if not context_count:
            return shorter
        return (pairs.count((context, letter)) + strength * shorter) / (context_count + strength)

    def spelling_probability(word):
        first = {letter: letter_probability("^", letter) for letter in "abx"}
        p = first[word[0]] / sum(first.values())
        for before, letter in zip(word, word[1:] + "#", strict=True):
            p *= letter_probability(before, letter)
        return p

    q = {word: spelling_probability(word) for word in ("abx", "bb")}
    parts = {word: 2 / 3 * p / sum(q.values()) for word, p in q.items()}
    head = SpreadUnknown(Softmax(), training_lexicon, letters=order)
    params = examples.random_params(Softmax(), random, SIZE, training_lexicon)
    tables, hidden = head.tables(new_lexicon), jnp.asarray(random.normal(size=(3, SIZE)))
    head_log_probs = np.asarray(
        Softmax().log_probs(params, Softmax().tables(training_lexicon), hidden), np.float64
    )
    log_probs = np.asarray(head.log_probs(params, tables, hidden))
    for word, part in {**parts, "?": 1 / 3}.items():
        np.testing.assert_allclose(
            log_probs[:, words.index(word)], head_log_probs[:, 1] + np.log(part), rtol=1e-5
        )
    np.testing.assert_allclose(np.exp(log_probs).sum(-1), 1, rtol=1e-5)
    assert parts["bb"] > 3 * parts["abx"]  # x is no letter of the words that are known


def test_where_words_cannot_share_it_is_said():
    closed_lexicon = dataclasses.replace(TRAINING_LEXICON, unknown=None)
    with pytest.raises(UserError, match="no unknown word whose probability"):
        SpreadUnknown(Softmax(), closed_lexicon).tables(NEW_LEXICON)
    for head in (CharLSTM(), CNNSoftmax(), LogLinear()):
        with pytest.raises(UserError, match=rf"a {type(head).__name__} can score new words by "):
            SpreadUnknown(head, TRAINING_LEXICON)
    with pytest.raises(UserError, match=r"put the cache around, WithCache\(SpreadUnknown\(head"):
        SpreadUnknown(WithCache(Softmax()), TRAINING_LEXICON)
    incomplete_lexicon = Lexicon(
        ("a", "<s>", "x", "?", "c"), np.zeros(5, np.int64), boundary="<s>", unknown="?"
    )
    with pytest.raises(UserError, match="1 are missing, such as 'b'"):
        SpreadUnknown(Softmax(), TRAINING_LEXICON).tables(incomplete_lexicon)
