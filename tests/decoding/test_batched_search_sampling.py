"""Hypotheses that are drawn: from the right distribution, whatever stands beside them."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.decoding.test_batched_search import BOUNDARY, Start
from tests.decoding.test_sampling import truncated
from tests.marks import slow
from zoo.decoding import BeamSearch, Sampling, force
from zoo.decoding.batched_search import translate, unbatch
from zoo.errors import UserError

PROBS = np.array(
    [
        [0.1, 0.5, 0.25, 0.15],
        [0.4, 0.1, 0.2, 0.3],
        [0.7, 0.1, 0.1, 0.1],
        [0.2, 0.3, 0.4, 0.1],
    ]
)


def follow(table, words, carry):
    return table[words], carry + 1


STEP = jax.tree_util.Partial(follow, jnp.log(PROBS))


def search(sampling, rows=3, **options):
    return sampling.search(STEP, np.zeros(rows, int), jnp.zeros(rows), boundary=0, **options)


@pytest.mark.parametrize(
    ("temperature", "top_k", "nucleus"),
    [(1.0, None, None), (2.0, 3, 0.7), *slow((0.5, None, None), (1.0, 2, None))],
)
def test_words_are_drawn_with_their_probabilities(temperature, top_k, nucleus):
    draws = 3000
    sampling = Sampling(draws, temperature, top_k, nucleus, seed=4, longest=2)
    words = np.asarray(search(sampling).words).reshape(-1, 2)
    first_probs = truncated(PROBS[0], temperature, top_k, nucleus)
    for first_word in range(4):
        second_probs = (
            truncated(PROBS[first_word], temperature, top_k, nucleus)
            if first_word
            else [1, 0, 0, 0]
        )
        for second_word in range(4):
            expected = first_probs[first_word] * second_probs[second_word]
            share = (words == [first_word, second_word]).all(axis=1).mean()
            # Five standard deviations of 9,000 independent draws.
            assert abs(share - expected) <= 5 * math.sqrt(expected * (1 - expected) / (3 * draws))


@pytest.mark.parametrize("settings", [Sampling(2, longest=4), *slow(BeamSearch(2, 2, longest=4))])
def test_a_sentence_of_greatest_length_0_has_no_hypotheses(settings):
    hypotheses = jax.device_get(search(settings, longest=np.array([4, 0, 4])))
    without_empty = search(settings, rows=2, longest=np.array([4, 4]))
    assert hypotheses.lengths[1].tolist() == [0, 0] and not hypotheses.complete[1].any()
    assert (hypotheses.log_prob[1] == -np.inf).all() and (hypotheses.words[1] == 0).all()
    assert (hypotheses.lengths[[0, 2]] > 0).all()
    np.testing.assert_array_equal(hypotheses.words[0], without_empty.words[0])


def test_scores_are_of_the_model_and_ends_are_told():
    hypotheses = search(
        Sampling(20, temperature=1.7, seed=1, longest=5), longest=np.array([2, 5, 9])
    )
    assert hypotheses.words.shape == (3, 20, 5)
    scores = np.asarray(force(STEP, np.zeros(3, int), jnp.zeros(3), hypotheses.words))
    hypotheses = jax.device_get(hypotheses)
    for sentence, limit in enumerate([2, 5, 5]):
        for draw in range(20):
            words = hypotheses.words[sentence, draw].tolist()
            ends = 0 in words[:limit]
            length = words.index(0) + 1 if ends else limit
            assert hypotheses.lengths[sentence, draw] == length
            assert hypotheses.complete[sentence, draw] == ends
            np.testing.assert_allclose(
                hypotheses.log_prob[sentence, draw],
                scores[sentence, draw][:length].sum(),
                rtol=1e-5,
            )
            assert not hypotheses.log_probs[sentence, draw][length:].any()
    assert hypotheses.complete.any() and not hypotheses.complete.all()
    np.testing.assert_array_equal(hypotheses.score, hypotheses.log_prob)


def test_a_hypothesis_has_as_many_words_as_are_asked_for():
    hypotheses = search(Sampling(50, shortest=4, longest=6))
    assert hypotheses.lengths.min() == 4
    assert (np.asarray(hypotheses.words)[..., :3] != 0).all()


def test_draws_do_not_depend_on_what_stands_beside_them(random):
    lengths = random.permutation(np.repeat(np.arange(1, 8), 2))
    sources = [random.integers(1, 8, length).tolist() for length in lengths]
    sampling = Sampling(nbest=2, seed=3)

    def draw_words(sources, batch, numbers=None):
        return [
            [hypothesis.words for hypothesis in nbest]
            for nbest in translate(
                Start(), sources, sampling, boundary=BOUNDARY, batch=batch, numbers=numbers
            )
        ]

    all_words = draw_words(sources, 16)
    assert draw_words(sources, 4) == all_words
    assert draw_words(sources[5:], 4, range(5, 14)) == all_words[5:]
    assert draw_words(sources[5:], 4) != all_words[5:]
    sampling = dataclasses.replace(sampling, seed=4)
    assert draw_words(sources, 16) != all_words


def test_a_temperature_of_0_is_greedy(random):
    sources = [random.integers(1, 8, length).tolist() for length in (3, 1, 7)]
    greedy = translate(Start(), sources, Sampling(temperature=0), boundary=BOUNDARY)
    for sampled, searched in zip(
        greedy, translate(Start(), sources, BeamSearch(1), boundary=BOUNDARY), strict=True
    ):
        assert sampled[0].words == searched[0].words
        np.testing.assert_allclose(sampled[0].log_prob, searched[0].log_prob, rtol=1e-6)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"nbest": 0}, "0 hypotheses cannot be drawn"),
        ({"nbest": 3, "temperature": 0}, "all 3 hypotheses would be the same"),
        ({"temperature": -1}, "the temperature is -1"),
        ({"top_k": 0}, "top-k is 0"),
        ({"nucleus": 1.5}, "the nucleus is 1.5"),
        ({"shortest": 5, "longest": 4}, "shortest 5 and longest 4"),
    ],
)
def test_what_cannot_be_drawn_is_refused(fields, message):
    with pytest.raises(UserError, match=message):
        Sampling(**fields)


def test_a_draw_that_may_not_end_yet_and_cannot_go_on_is_none():
    """As a beam search, which has no such hypothesis."""
    table = jnp.log(jnp.array([[0.0, 0.5, 0.5], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]))
    step = jax.tree_util.Partial(follow, table)
    sampling = Sampling(200, seed=1, shortest=3, longest=4)
    draws = sampling.search(step, np.zeros(1, int), jnp.zeros(1), boundary=0)
    is_empty = np.asarray(draws.lengths[0]) == 0
    assert 60 < is_empty.sum() < 140
    assert np.isneginf(np.asarray(draws.log_prob[0])[is_empty]).all()
    assert not np.asarray(draws.complete[0])[is_empty].any()
    assert (np.asarray(draws.words[0])[~is_empty] == 2).all()
    hypotheses = unbatch(draws, 0)[0]
    assert len(hypotheses) == 200 - is_empty.sum()


@pytest.mark.parametrize("seed", [-1, 2**31, 2**63])
def test_a_seed_that_is_none_is_refused(seed):
    with pytest.raises(UserError, match="seed of the draws"):
        Sampling(seed=seed)
