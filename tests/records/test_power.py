"""How many runs or sentences would tell two recipes apart."""

import math

import numpy as np
import pytest

from records import cells, power, questions, rows


@pytest.mark.parametrize(("difference", "runs"), [(0.5, 64), (0.8, 26), (1.0, 17), (2.0, 6)])
def test_the_runs_that_are_needed_are_those_of_cohens_table(difference, runs):
    """Cohen (1988), table 2.4.1: two sides, a level of 0.05, a power of 0.8, deviations of 1."""
    assert power.runs_needed(difference, (1, 1)) == runs
    assert power.power(difference, (1, 1), runs - 1) < 0.8 <= power.power(difference, (1, 1), runs)


def test_power_is_the_share_of_drawn_groups_that_are_told_apart():
    from scipy import stats

    generator = np.random.default_rng(0)
    narrow = generator.normal(9.6, 1.3, (20_000, 5))
    wide = generator.normal(0, 7.7, (20_000, 5))
    significant = stats.ttest_ind(narrow, wide, axis=1, equal_var=False).pvalue < 0.05
    assert power.power(9.6, (1.3, 7.7), 5) == pytest.approx(significant.mean(), abs=0.02)
    assert power.power(-9.6, (7.7, 1.3), 5) == power.power(9.6, (1.3, 7.7), 5)


@pytest.mark.slow
def test_differences_that_are_not_there_are_found_by_chance_alone():
    assert power.power(0, (1, 3), 7) == pytest.approx(0.05)
    assert power.runs_needed(1e-6, (1, 1)) is None


def test_deviations_of_few_runs_have_wide_bounds():
    """The chi-squared distribution of 2 degrees of freedom has the quantile -2 log(1 - q)."""
    factor = math.sqrt(2 / (-2 * math.log(0.8)))
    assert power.cautious((1, 4), 3) == pytest.approx((factor, 4 * factor))


def test_sentences_that_are_needed():
    """A standard error of 0.25 of the difference: z is 4, and 1.96 + 0.84 = 2.8 is enough."""
    assert power.sentences_needed(1, (1 - 1.96 * 0.25, 1 + 1.96 * 0.25), 1000) == pytest.approx(
        1000 * (2.8016 / 4) ** 2, abs=1
    )


@pytest.mark.parametrize("config", rows.FORMS_FURTHER)
def test_kept_answers_are_those_of_the_passports(config):
    run = rows.FORMS[config][0]
    right = questions.right([run], "answers:test", constrained=True)
    (figures,) = (
        passport.figures
        for passport in cells.results(run)
        if passport.split == "answers:test" and passport.all_changes
    )
    assert right.shape == (1, figures.answers) and right.sum() == figures.right


def test_intervals_of_a_difference(monkeypatch):
    """Of questions alike there is no doubt; of two runs each, Welch's interval by hand."""
    answers = {"one": np.array([[1, 1], [1, 1]]), "other": np.array([[1, 0], [0, 1]])}
    monkeypatch.setattr(power, "_right", answers.__getitem__)
    assert power._interval_of_questions("other", "one") == (50, 50)
    # Means 3 and 0, variances 2 and 2 of two runs each: error sqrt(2), 2 degrees of freedom.
    low, high = power._interval_of_seeds([2, 4], [-1, 1])
    assert [low, high] == pytest.approx([3 - 4.302653 * 2**0.5, 3 + 4.302653 * 2**0.5], abs=1e-5)
