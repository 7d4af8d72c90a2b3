"""Lists as arrays, MERT against grids, MIRA by hand, oracles, intervals."""

import dataclasses
import itertools

import numpy as np
import pytest

from tests.rescoring.lists import lists
from zoo.evaluation import significance
from zoo.rescoring import mert, mira, oracle, tune
from zoo.rescoring.lists import Lists, first_weights
from zoo.rescoring.metrics import Bleu, WordErrorRate


def value(some, metric, weights):
    """The figure of weights, larger is better, list by list."""
    total = 0
    for start, stop in itertools.pairwise(some.starts):
        scores = [float(row @ weights) for row in some.features[start:stop]]
        total = total + some.statistics[start + scores.index(max(scores))]
    return metric.sign * float(metric.figure(total))


def test_best_chosen_some_and_padded():
    some = lists()
    scores = np.round(some.features[:, 0])  # with equal ones
    expected = [
        start + int(np.argmax(scores[start:stop]))
        for start, stop in itertools.pairwise(some.starts)
    ]
    assert some.best(scores).tolist() == expected
    assert some.untuned().tolist() == some.starts[:-1].tolist()
    part = some.some(np.array([1, 4]))
    assert part.ids == ("1", "4")
    for new, old in enumerate((1, 4)):
        mine, theirs = slice(*part.starts[new : new + 2]), slice(*some.starts[old : old + 2])
        np.testing.assert_array_equal(part.features[mine], some.features[theirs])
        np.testing.assert_array_equal(part.first[mine], some.first[theirs])
    padded = some.padded(some.features, -7.0)
    assert padded.shape == (7, 5, 3)
    for one, (start, stop) in enumerate(itertools.pairwise(some.starts)):
        np.testing.assert_array_equal(padded[one, : stop - start], some.features[start:stop])
        assert (padded[one, stop - start :] == -7).all()


def test_the_weights_of_a_decoder_are_found():
    some = lists(count=30)
    weights = np.array([2.0, -1.0, 0.25])
    # A score that is shifted from list to list has the same order within.
    scores = some.features @ weights + some.owners
    found = first_weights(dataclasses.replace(some, first=scores))
    np.testing.assert_allclose(found, weights, rtol=1e-9)
    assert not first_weights(dataclasses.replace(some, first=None)).any()
    constant = dataclasses.replace(some, features=np.full_like(some.features, 0.3))
    np.testing.assert_array_equal(constant.scales(), 1)


def test_upper_envelopes_by_hand():
    # Three lines x, 0 and -x + 1, of which 0 is never highest; and a list of one line.
    slopes = np.array([[1.0, 0, -1], [2, -np.inf, -np.inf]])
    heights = np.array([[0.0, 0, 1], [5, -np.inf, -np.inf]])
    first, corners, rows, chosen, before = mert.envelopes(slopes, heights)
    assert first.tolist() == [2, 0]
    assert (corners.tolist(), rows.tolist()) == ([0.5], [0])
    assert (chosen.tolist(), before.tolist()) == ([0], [2])


@pytest.mark.parametrize("seed", range(4))
def test_envelopes_are_the_highest_lines_everywhere(seed):
    generator = np.random.default_rng(seed)
    slopes = np.round(generator.normal(size=(3, 9)), 1)  # with parallel lines
    heights = generator.normal(size=(3, 9))
    slopes[1, 6:] = heights[1, 6:] = -np.inf
    first, corners, rows, chosen, before = mert.envelopes(slopes, heights)
    for x in np.linspace(-30, 30, 4001):
        for row in range(3):
            there = np.isfinite(slopes[row])
            best = int((heights[row, there] + x * slopes[row, there]).argmax())
            passed = np.flatnonzero((rows == row) & (corners < x))
            here = chosen[passed[np.argmax(corners[passed])]] if len(passed) else first[row]
            assert here == best
            if len(passed):
                assert before[passed[np.argmin(corners[passed])]] == first[row]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ["wer", "bleu"])
def test_a_line_search_finds_the_best_of_all_intervals(seed, name):
    metric = {"wer": WordErrorRate(), "bleu": Bleu()}[name]
    some = lists(seed, metric=name)
    search = mert.Search.of(some, metric)
    weights, direction = np.random.default_rng(seed).normal(size=(2, 3))
    step, best = search.best_step(weights, direction)
    # Choices change at most where two hypotheses of a list have equal scores.
    heights, slopes = some.features @ weights, some.features @ direction
    corners = [
        (heights[one] - heights[other]) / (slopes[other] - slopes[one])
        for start, stop in itertools.pairwise(some.starts)
        for one, other in itertools.combinations(range(start, stop), 2)
    ]
    bounds = np.sort([min(corners) - 2, *corners, max(corners) + 2])
    grid = [value(some, metric, weights + x * direction) for x in (bounds[1:] + bounds[:-1]) / 2]
    assert best == pytest.approx(value(some, metric, weights + step * direction), abs=1e-9)
    assert best == pytest.approx(max(grid), abs=1e-9)


@pytest.mark.parametrize("method", ["mert", "mira"])
@pytest.mark.parametrize("name", ["wer", "bleu"])
@pytest.mark.parametrize("seed", range(2))
def test_tuning_never_ends_worse_and_repeats_itself(method, name, seed):
    metric = {"wer": WordErrorRate(), "bleu": Bleu()}[name]
    some = lists(seed, count=20, metric=name)
    start = np.array([1.0, 0.5, -0.5])
    settings = {"mert": mert.Mert(starts=2, rounds=3), "mira": mira.Mira(epochs=4)}[method]
    found, again = (settings.tune(some, metric, start, seed=3) for _ in range(2))
    assert found.tobytes() == again.tobytes()
    assert value(some, metric, found) >= value(some, metric, start) - 1e-9
    if method == "mira":
        objective, scales = mira.Objective.of(some, metric), some.scales()
        assert objective.value(found * scales) <= objective.value(start * scales) + 1e-9


@pytest.mark.parametrize("method", ["mert", "mira"])
@pytest.mark.parametrize("scale", [1.0, 1000.0])
def test_tuning_finds_the_feature_that_counts_errors(method, scale):
    some = lists(count=30, metric="wer")
    features = some.features.copy()
    features[:, 1] = -scale * some.statistics[:, :3].sum(1)
    some = dataclasses.replace(some, features=features)
    metric = WordErrorRate()
    found = tune.tune(some, metric, method, seed=0, start=np.zeros(3))
    best = metric.figure(some.statistics[oracle.choose(some, metric)].sum(0))
    assert -value(some, metric, found) <= best * 1.02


def test_one_step_of_mira_by_hand():
    # A list of two: the first has no error, the second one, and the feature prefers the second.
    some = Lists(
        ("a",),
        ("f",),
        np.array([0, 2]),
        np.array([[0.0], [2.0]]),
        np.array([[0.0, 0, 0, 4], [1, 0, 0, 4]]),
    )
    (mean,) = mira.Mira(epochs=1)._epochs(
        some, WordErrorRate(), np.array([0.25]), 10.0, np.random.default_rng(0)
    )
    # Hope: 0 - 0 against 0.5 - 1. Fear: 0 against 0.5 + 1. Loss 1 + 0.25 * 2, length 4.
    np.testing.assert_allclose(mean, 0.25 - 2 * 1.5 / 4)
    (mean,) = mira.Mira(epochs=1)._epochs(
        some, WordErrorRate(), np.array([0.25]), 0.1, np.random.default_rng(0)
    )
    np.testing.assert_allclose(mean, 0.25 - 2 * 0.1)


def test_miras_objective_by_hand():
    some = Lists(
        ("a",),
        ("f",),
        np.array([0, 2]),
        np.array([[0.0], [2.0]]),
        np.array([[0.0, 0, 0, 4], [1, 0, 0, 4]]),
    )
    objective = mira.Objective.of(some, WordErrorRate())
    # In standard deviations the features are 0 and 2. Weights of the wrong sign are best at almost
    # 0, where the loss is the error of the second; those of the right one lose nothing.
    assert objective.value(np.array([1.0])) == pytest.approx(1, abs=1e-3)
    assert objective.value(np.array([-1.0])) == pytest.approx(0)


def test_oracles_are_found_by_trying_all():
    for name, metric in (("wer", WordErrorRate()), ("bleu", Bleu())):
        for seed in range(3):
            some = lists(seed, count=4, most=3, metric=name)
            choices = itertools.product(
                *(range(start, stop) for start, stop in itertools.pairwise(some.starts))
            )
            figures = [
                metric.sign * metric.figure(some.statistics[[*rows]].sum(0)) for rows in choices
            ]
            found = metric.sign * metric.figure(some.statistics[oracle.choose(some, metric)].sum(0))
            assert found == pytest.approx(max(figures), rel=1e-9)


def test_intervals_and_tests_of_equal_and_different_systems():
    metric = WordErrorRate()
    some = lists(count=60, metric="wer")
    rows = some.untuned()
    one = some.statistics[rows]
    low, high = significance.bootstrap_interval(one, metric.figure)
    assert low < metric.figure(one.sum(0)) < high
    # The standard error of a mean of ratios, roughly.
    errors = one[:, :3].sum(1) / one[:, 3].mean()
    assert high - low == pytest.approx(100 * 4 * errors.std() / 60**0.5, rel=0.3)
    assert significance.paired_test(one, one, metric.figure) == 1
    better = one * [0.0, 0, 0, 1]
    assert significance.paired_test(one, better, metric.figure) == pytest.approx(1 / 1001)
    assert significance.bootstrap_interval(one, metric.figure) == (low, high)
