"""The table of recommenders: intervals by hand, and a comparison of made-up viewers."""

import numpy as np

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


def test_losses_are_tuned_on_validation_and_judged_on_the_last_film(monkeypatch):
    """Of viewers of 4 films and more; the rate 0.02 is the best, but for the binary loss."""
    viewers = [np.arange(start, start + 23) % 30 for start in range(0, 150, 7)]
    viewers.append(np.array([4, 9, 2, 5]))
    lengths = np.array([len(films) for films in viewers])
    calls = []

    def train(head, training, films, rate, steps, seed):
        assert films == 30 and [*map(len, training)] == [*lengths - 2]
        calls.append((head, rate, steps, seed))
        return calls[-1]

    def places(params, sequences):
        head, rate, _, seed = params
        assert [*map(len, sequences)] == [*lengths - (seed == 0)]
        best = 0.5 if head == example.HEADS["binary loss"] else 0.02
        return np.where(np.arange(len(viewers)) % 2 < (rate == best), 3, 0)

    monkeypatch.setattr(example, "train", train)
    monkeypatch.setattr(example, "places", places)
    monkeypatch.setattr(sasrec, "RATES", (0.5, 0.02, 0.1))
    monkeypatch.setattr(sasrec, "step_seconds", lambda *a: dict.fromkeys(example.HEADS, 0.08))
    runs = sasrec.compare(viewers)
    assert [*runs] == [*example.HEADS, "the ten most popular films"]
    assert len(calls) == 3 * (3 + 3) and {steps for _, _, steps, _ in calls} == {250}
    for name, head in example.HEADS.items():
        rate = 0.5 if name == "binary loss" else 0.02
        assert runs[name]["rate"] == rate and np.shape(runs[name]["places"]) == (3, len(viewers))
        assert [call[1::2] for call in calls if call[0] == head and call[3]] == [
            (rate, seed) for seed in sasrec.SEEDS
        ]
    counts = np.bincount(np.concatenate([films[:-2] for films in viewers]), minlength=30)
    best = [*np.argsort(-counts)[:10]]
    expected = [best.index(films[-1]) + 1 if films[-1] in best else 0 for films in viewers]
    assert runs["the ten most popular films"]["places"] == [expected]
