"""The table of recommenders: intervals by hand, and a comparison of made-up viewers."""

import numpy as np
import pytest

from examples import sasrec as example
from records import sasrec

PLACES = {"full softmax": [[1, 0, 3], [1, 1, 0]], "binary loss": [[0, 0, 0], [3, 0, 0]]}


def test_figures_are_means_over_seeds_and_viewers(monkeypatch):
    """Gains of a place: 1, 1/2 at the third. The softmax: (2 + 1 + 1/2) / 6; the other 1/12."""
    settings = {"rate": 0.01, "milliseconds": 19.6, "steps": 1500}
    runs = {name: {"places": places, **settings} for name, places in PLACES.items()}
    runs["popular"] = {"places": [[0, 0, 0]]}
    monkeypatch.setattr(sasrec, "read_json", lambda name: {"runs": runs})
    monkeypatch.setattr(sasrec, "provenance_line", lambda *arguments: "From here.")
    rows = [line.split(" | ") for line in sasrec.table().splitlines()]
    assert rows[2][:4] == ["| full softmax", "0.01", "20", "1,500"]
    assert rows[2][4].startswith("0.667 [") and rows[2][5].startswith("0.583 [0.250, 1.000]")
    assert rows[3][4].startswith("0.167 [") and rows[3][6].startswith("-0.500 [")
    assert rows[4][:2] == ["| popular", "-"] and rows[-1] == ["From here."]


@pytest.mark.slow
def test_losses_are_tuned_on_validation_and_judged_on_the_last_film(monkeypatch):
    monkeypatch.setattr(sasrec, "SECONDS", 1.0)
    monkeypatch.setattr(sasrec, "RATES", (0.0, 0.02))
    monkeypatch.setattr(sasrec, "SEEDS", (1, 2))
    monkeypatch.setattr(sasrec, "step_seconds", lambda *a: dict.fromkeys(example.HEADS, 0.02))
    viewers = [np.arange(start, start + 23) % 30 for start in range(0, 150, 7)]
    viewers.append(np.array([4, 9, 2, 5]))
    runs = sasrec.compare(viewers)
    assert [*runs] == [*example.HEADS, "the ten most popular films"]
    for name in example.HEADS:
        assert runs[name]["rate"] == 0.02 and runs[name]["steps"] == 50
        assert np.shape(runs[name]["places"]) == (2, len(viewers))
    counts = np.bincount(np.concatenate([films[:-2] for films in viewers]), minlength=30)
    best = [*np.argsort(-counts)[:10]]
    expected = [best.index(films[-1]) + 1 if films[-1] in best else 0 for films in viewers]
    assert runs["the ten most popular films"]["places"] == [expected]
