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
    first = truncated(PROBS[0], temperature, top_k, nucleus)
    for one in range(4):
        after = truncated(PROBS[one], temperature, top_k, nucleus) if one else [1, 0, 0, 0]
        for two in range(4):
            expected = first[one] * after[two]
            share = (words == [one, two]).all(axis=1).mean()
            # Five standard deviations of 9,000 independent draws.
            assert abs(share - expected) <= 5 * math.sqrt(expected * (1 - expected) / (3 * draws))


@pytest.mark.parametrize("settings", [Sampling(2, longest=4), BeamSearch(2, 2, longest=4)])
def test_a_sentence_of_greatest_length_0_has_no_hypotheses(settings):
    found = jax.device_get(search(settings, longest=np.array([4, 0, 4])))
    both = search(settings, rows=2, longest=np.array([4, 4]))
    assert found.lengths[1].tolist() == [0, 0] and not found.complete[1].any()
    assert (found.log_prob[1] == -np.inf).all() and (found.words[1] == 0).all()
    assert (found.lengths[[0, 2]] > 0).all()
    np.testing.assert_array_equal(found.words[0], both.words[0])


def test_scores_are_of_the_model_and_ends_are_told():
    found = search(Sampling(20, temperature=1.7, seed=1, longest=5), longest=np.array([2, 5, 9]))
    assert found.words.shape == (3, 20, 5)
    scores = np.asarray(force(STEP, np.zeros(3, int), jnp.zeros(3), found.words))
    found = jax.device_get(found)
    for sentence, limit in enumerate([2, 5, 5]):
        for draw in range(20):
            words = found.words[sentence, draw].tolist()
            ends = 0 in words[:limit]
            length = words.index(0) + 1 if ends else limit
            assert found.lengths[sentence, draw] == length
            assert found.complete[sentence, draw] == ends
            np.testing.assert_allclose(
                found.log_prob[sentence, draw], scores[sentence, draw][:length].sum(), rtol=1e-5
            )
            assert not found.log_probs[sentence, draw][length:].any()
    assert found.complete.any() and not found.complete.all()
    np.testing.assert_array_equal(found.score, found.log_prob)


def test_a_hypothesis_has_as_many_words_as_are_asked_for():
    found = search(Sampling(50, shortest=4, longest=6))
    assert found.lengths.min() == 4
    assert (np.asarray(found.words)[..., :3] != 0).all()


def test_draws_do_not_depend_on_what_stands_beside_them(random):
    lengths = random.permutation(np.repeat(np.arange(1, 8), 2))
    sources = [random.integers(1, 8, length).tolist() for length in lengths]
    sampling = Sampling(nbest=2, seed=3)

    def drawn(sources, batch, numbers=None):
        return [
            [one.words for one in found]
            for found in translate(
                Start(), sources, sampling, boundary=BOUNDARY, batch=batch, numbers=numbers
            )
        ]

    whole = drawn(sources, 16)
    assert drawn(sources, 4) == whole
    assert drawn(sources[5:], 4, range(5, 14)) == whole[5:]
    assert drawn(sources[5:], 4) != whole[5:]
    sampling = dataclasses.replace(sampling, seed=4)
    assert drawn(sources, 16) != whole


def test_a_temperature_of_0_is_greedy(random):
    sources = [random.integers(1, 8, length).tolist() for length in (3, 1, 7)]
    greedy = translate(Start(), sources, Sampling(temperature=0), boundary=BOUNDARY)
    for ours, theirs in zip(
        greedy, translate(Start(), sources, BeamSearch(1), boundary=BOUNDARY), strict=True
    ):
        assert ours[0].words == theirs[0].words
        np.testing.assert_allclose(ours[0].log_prob, theirs[0].log_prob, rtol=1e-6)


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
    found = sampling.search(step, np.zeros(1, int), jnp.zeros(1), boundary=0)
    none = np.asarray(found.lengths[0]) == 0
    assert 60 < none.sum() < 140
    assert np.isneginf(np.asarray(found.log_prob[0])[none]).all()
    assert not np.asarray(found.complete[0])[none].any()
    assert (np.asarray(found.words[0])[~none] == 2).all()
    hypotheses = unbatch(found, 0)[0]
    assert len(hypotheses) == 200 - none.sum()


@pytest.mark.parametrize("seed", [-1, 2**31, 2**63])
def test_a_seed_that_is_none_is_refused(seed):
    with pytest.raises(UserError, match="seed of the draws"):
        Sampling(seed=seed)
