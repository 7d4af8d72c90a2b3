"""Intervals and tests against enumeration of all draws, hand and other libraries."""

import itertools
import math

import numpy as np
import pytest

from zoo.lab.evaluation import significance


def mean(sums):
    return sums[..., 0] / sums[..., 1]


def statistics(count, seed):
    generator = np.random.default_rng(seed)
    tokens = generator.integers(1, 9, count)
    return np.stack([tokens * generator.gamma(3.0, 2.0, count), tokens], 1).astype(np.float64)


def test_a_bootstrap_draws_sentences_as_all_draws_do():
    sums = statistics(5, seed=1)
    figures = [mean(sums[[*rows]].sum(0)) for rows in itertools.product(range(5), repeat=5)]
    low, high = significance.bootstrap_interval(sums, mean, samples=40_000)
    for end, share in ((low, 0.025), (high, 0.975)):
        # Of few sentences few figures are possible: by the share of draws below, not by value.
        below = np.mean(np.array(figures) < end - 1e-9), np.mean(np.array(figures) <= end + 1e-9)
        assert below[0] - 0.004 <= share <= below[1] + 0.004
    assert significance.bootstrap_interval(sums, mean) == significance.bootstrap_interval(
        sums, mean
    )
    assert significance.bootstrap_interval(sums, mean) != significance.bootstrap_interval(
        sums, mean, seed=1
    )


def test_a_bootstrap_of_many_sentences_has_the_width_of_the_standard_error():
    sums = statistics(4_000, seed=2)
    residuals = sums[:, 0] - mean(sums.sum(0)) * sums[:, 1]
    width = 2 * 1.96 * math.sqrt((residuals**2).sum()) / sums[:, 1].sum()
    low, high = significance.bootstrap_interval(sums, mean)
    assert high - low == pytest.approx(width, rel=0.08)
    assert low < mean(sums.sum(0)) < high


def test_there_is_no_interval_of_one_sentence_or_of_the_impossible():
    single = statistics(1, seed=1)
    assert np.isnan(significance.bootstrap_interval(single, mean)).all()
    sums = statistics(5, seed=1)
    sums[2, 0] = np.inf
    assert np.isnan(significance.bootstrap_interval(sums, mean)).all()
    assert math.isnan(significance.paired_test(sums, sums, mean))


def test_a_paired_test_is_that_of_all_exchanges():
    baseline = statistics(9, seed=4)
    shifts = [4.0, -1.0, 3.5, 2.0, -2.5, 5.0, 1.0, -0.5, 0.25]
    candidate = baseline + np.stack([shifts, np.zeros(9)], 1)
    difference = abs(mean(baseline.sum(0)) - mean(candidate.sum(0)))
    larger = 0
    for exchange in itertools.product((False, True), repeat=9):
        chosen = np.array(exchange)[:, None]
        first, second = np.where(chosen, candidate, baseline), np.where(chosen, baseline, candidate)
        larger += abs(mean(first.sum(0)) - mean(second.sum(0))) >= difference - 1e-9
    expected = larger / 2**9
    assert 0.02 < expected < 0.5
    p = significance.paired_test(baseline, candidate, mean, samples=20_000)
    assert p == pytest.approx(expected, abs=0.012)
    assert significance.paired_test(candidate, baseline, mean, samples=20_000) == p
    assert significance.paired_test(baseline, baseline, mean) == 1


def test_the_same_statistics_are_alike_whatever_their_figure():
    errors = np.array([[1.0, 0.0], [2.0, 0.0]])  # word errors without a word of reference

    def rate(sums):
        return np.where(sums[..., 1] > 0, sums[..., 0] / np.maximum(sums[..., 1], 1), np.inf)

    assert significance.paired_test(errors, errors, rate) == 1
    assert math.isnan(significance.paired_test(errors, errors + 1 - np.eye(2), rate))


def test_a_binomial_interval_solves_its_equation():
    # The ends are the shares p at which |c/n - p| = z sqrt(p (1 - p) / n).
    for right, count in ((0, 7), (3, 10), (81, 263), (10, 10)):
        for end in significance.binomial_interval(right, count):
            distance = abs(right / count - end)
            assert distance == pytest.approx(
                1.959964 * math.sqrt(end * (1 - end) / count), abs=1e-6
            )
    # Newcombe (1998), table I: 81 of 263.
    assert significance.binomial_interval(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert np.isnan(significance.binomial_interval(0, 0)).all()


def test_mcnemar_by_enumeration():
    for only_first, only_second in ((0, 0), (1, 0), (2, 5), (4, 4), (9, 2)):
        count = only_first + only_second
        uneven = sum(
            min(sum(sides), count - sum(sides)) <= min(only_first, only_second)
            for sides in itertools.product((0, 1), repeat=count)
        )
        assert significance.mcnemar_test(only_first, only_second) == pytest.approx(
            min(1, uneven / 2**count)
        )
        assert significance.mcnemar_test(only_second, only_first) == significance.mcnemar_test(
            only_first, only_second
        )
    stats = pytest.importorskip("scipy.stats")
    expected = stats.binomtest(1_900, 4_000).pvalue
    assert significance.mcnemar_test(1_900, 2_100) == pytest.approx(expected, rel=1e-9)


def test_seeds_are_compared_by_welch():
    stats = pytest.importorskip("scipy.stats")
    baseline, candidate = [5.38, 5.39, 5.37], [5.40, 5.42, 5.38, 5.43]
    expected = stats.ttest_ind(baseline, candidate, equal_var=False).pvalue
    assert significance.seeds_test(baseline, candidate) == pytest.approx(expected, rel=1e-4)
    assert math.isnan(significance.seeds_test([5.0], candidate))
    assert significance.seeds_test([5.0, 5.0], [5.0, 5.0]) == 1
    assert significance.seeds_test([5.0, 5.0], [6.0, 6.0]) == 0
