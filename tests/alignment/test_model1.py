"""IBM model 1 against a loop over words, and two alignments put together."""

import math

import numpy as np
import pytest

from zoo.alignment import METHODS, Model1, model1, symmetrise

# Brown et al.'s example in small: the pair of one word tells which word "house" is.
SOURCES = [["the", "house"], ["house"]]
TARGETS = [["la", "maison"], ["maison"]]


def random_pairs(seed, pairs=9, words=7):
    generator = np.random.default_rng(seed)

    def side(prefix):
        lengths = generator.integers(0, 6, pairs)
        return [[f"{prefix}{w}" for w in generator.integers(0, words, n)] for n in lengths]

    return side("e"), side("f")


def by_loop(sources, targets, iterations):
    """({(source, target): t}, log-likelihoods), by sums over words; None is the null word."""
    size = len({word for target in targets for word in target})
    t = {
        (e, f): 1 / size
        for source, target in zip(sources, targets, strict=True)
        for f in target
        for e in (*source, None)
    }
    log_likelihoods = []
    for step in range(iterations + 1):
        counts, log_likelihood = dict.fromkeys(t, 0.0), 0.0
        for source, target in zip(sources, targets, strict=True):
            for f in target:
                total = sum(t[e, f] for e in (*source, None))
                log_likelihood += math.log(total / (len(source) + 1))
                for e in (*source, None):
                    counts[e, f] += t[e, f] / total
        log_likelihoods.append(log_likelihood)
        if step < iterations:
            totals = {}
            for (e, _), count in counts.items():
                totals[e] = totals.get(e, 0) + count
            t = {(e, f): count / totals[e] for (e, f), count in counts.items()}
    return t, log_likelihoods


@pytest.mark.parametrize("block", [model1.BLOCK, 8])
def test_equals_a_loop_over_words(monkeypatch, block):
    monkeypatch.setattr(model1, "BLOCK", block)
    sources, targets = random_pairs(0)
    model = Model1.train(sources, targets, iterations=4)
    expected, log_likelihoods = by_loop(sources, targets, iterations=4)
    assert len(model.keys) == len(expected)
    for (source, target), value in expected.items():
        assert model.probability(target, source) == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(model.log_likelihoods, log_likelihoods, rtol=1e-12)
    sums = {}
    for (source, target), _ in expected.items():
        sums[source] = sums.get(source, 0) + model.probability(target, source)
    np.testing.assert_allclose([*sums.values()], 1, rtol=1e-12)
    assert model.probability("f0", "nothing") == model.probability("nothing", "e0") == 0


@pytest.mark.parametrize("seed", range(5))
def test_the_log_likelihood_never_falls(seed):
    reports = []
    sources, targets = random_pairs(seed, pairs=20)
    model = Model1.train(sources, targets, 30, lambda *step: reports.append(step))
    assert (np.diff(model.log_likelihoods) >= -1e-9).all()
    assert reports == [*enumerate(model.log_likelihoods)]


def test_aligns_by_the_most_probable_word_then_the_nearest():
    model = Model1.train(SOURCES, TARGETS, iterations=5)
    assert model.align(SOURCES, TARGETS) == [[(0, 0), (1, 1)], [(0, 0)]]
    # Twice the same word: each takes the one beside the diagonal. Words never seen have no link.
    twice = ["house", "the", "house"], ["maison", "zut", "maison"]
    assert model.align([twice[0]], [twice[1]]) == [[(0, 0), (2, 2)]]
    assert model.align([["zut"], [], ["house"]], [["la"], ["la"], []]) == [[], [], []]
    # The diagonal of 2 and 5 words: 0 is nearer to 1/5 than 1/2 is.
    assert model.align([["house"] * 2], [["zut", "maison", *["zut"] * 3]]) == [[(0, 1)]]


def test_the_null_word_takes_what_no_word_explains():
    sources = [["a"], ["b"], ["c"], ["d"]]
    targets = [["A", "x"], ["B", "x"], ["C", "x"], ["D", "x"]]
    model = Model1.train(sources, targets, iterations=10)
    assert model.align(sources, targets) == [[(0, 0)]] * 4


def test_sides_of_other_lengths_and_of_no_words():
    with pytest.raises(ValueError, match="2 source and 1 target"):
        Model1.train(SOURCES, TARGETS[:1])
    empty = Model1.train([[], []], [[], []])
    assert empty.align([["a"]], [["b"]]) == [[]]
    assert Model1.train([], []).align([], []) == []


# Links of a 4 x 4 pair: the intersection is the corner; the union has a neighbour of it that covers
# a new word (1, 1), one that covers none by then (0, 1), and two far away.
FORWARD = [(0, 0), (1, 1), (0, 1), (3, 3)]
BACKWARD = [(0, 0), (2, 1), (3, 3), (1, 3)]
EXPECTED = {
    "intersection": [(0, 0), (3, 3)],
    "union": [(0, 0), (0, 1), (1, 1), (1, 3), (2, 1), (3, 3)],
    # From (0, 0): (0, 1) covers target 1, then (1, 1) source 1. From (0, 1) and (1, 1): (2, 1)
    # covers source 2. (1, 3) has no link beside it while a word is left to cover.
    **{grown: [(0, 0), (0, 1), (1, 1), (2, 1), (3, 3)] for grown in METHODS[1:4]},
}


@pytest.mark.parametrize("method", METHODS)
def test_by_hand(method):
    assert symmetrise(FORWARD, BACKWARD, method) == EXPECTED[method]


def test_final_takes_far_links_and_final_and_those_of_two_free_words():
    forward, backward = [(0, 0), (0, 5)], [(0, 0), (4, 4), (6, 4)]
    assert symmetrise(forward, backward, "grow-diag") == [(0, 0)]
    assert symmetrise(forward, backward, "grow-diag-final") == [(0, 0), (0, 5), (4, 4), (6, 4)]
    assert symmetrise(forward, backward, "grow-diag-final-and") == [(0, 0), (4, 4)]


@pytest.mark.parametrize("seed", range(3))
def test_each_method_has_the_links_of_those_before_it(seed):
    generator = np.random.default_rng(seed)
    forward, backward = (
        [*map(tuple, generator.integers(0, 9, (12, 2)).tolist())] for _ in range(2)
    )
    inner, grown, final, strict, union = (
        {*symmetrise(forward, backward, method)} for method in METHODS
    )
    assert inner <= grown <= strict <= union and grown <= final <= union
    # With final, every word that has a link in the union has one.
    for side in (0, 1):
        assert {link[side] for link in final} == {link[side] for link in union}


def test_another_method():
    with pytest.raises(ValueError, match="give one of intersection, grow-diag"):
        symmetrise([], [], "grow")
