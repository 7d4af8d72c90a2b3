"""Claims of docs/results.md and their corrected p."""

import pytest

from records import claims


def test_holm_multiplies_the_smallest_by_all_tests_and_keeps_the_order():
    # Sorted 0.005, 0.01, 0.03, 0.04: times 4, 3, 2, 1 is 0.02, 0.03, 0.06, 0.04, of which the
    # last is raised to the one before it.
    adjusted = claims.adjust_by_holm([0.01, 0.04, 0.03, 0.005])
    assert adjusted == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert claims.adjust_by_holm([0.9, 0.6]) == [1.0, 1.0]
    assert claims.adjust_by_holm([]) == []


def test_a_star_marks_p_that_the_number_of_claims_lifts_to_the_level(monkeypatch):
    p_values = iter([0.0001, 0.02, 0.04, 0.6])
    columns = dict.fromkeys(claims.Claim._fields, "")
    rows = [
        {**columns, "model": str(number), "split": "test", "tables": "claims other"}
        for number in range(4)
    ]
    monkeypatch.setattr(claims, "read_table", lambda name: rows)
    monkeypatch.setattr(claims, "expand_runs", lambda runs: ())
    monkeypatch.setattr(claims, "figures_by_seed", lambda claim: ([], []))
    monkeypatch.setattr(claims.significance, "seeds_test", lambda *figures: next(p_values))
    cells = claims.seed_cells.__wrapped__("claims")
    assert [*cells.values()] == ["< 0.001", "0.020*", "0.040*", "0.600"]
