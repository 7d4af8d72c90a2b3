"""Further seeds: kept answers, and intervals of a difference."""

import numpy as np
import pytest

from records import cells, further_seeds, questions, rows


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
    """The interval of equal gains is a point; that of two seeds a side is Welch's, by hand."""
    answers = {"one": np.array([[1, 1], [1, 1]]), "other": np.array([[1, 0], [0, 1]])}
    monkeypatch.setattr(further_seeds, "_right", answers.__getitem__)
    assert further_seeds._interval_of_questions("other", "one") == (50, 50)
    # Means 3 and 0, variances 2 and 2 of two runs each: error sqrt(2), 2 degrees of freedom.
    low, high = further_seeds._interval_of_seeds([2, 4], [-1, 1])
    assert [low, high] == pytest.approx([3 - 4.302653 * 2**0.5, 3 + 4.302653 * 2**0.5], abs=1e-5)
