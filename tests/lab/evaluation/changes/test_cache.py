"""The settings of a cache are searched on validation."""

import math
import types

import pytest

from zoo.lab.evaluation.changes import cache
from zoo.lab.evaluation.changes.cache import Cache


@pytest.fixture(autouse=True)
def apply(monkeypatch):
    monkeypatch.setattr(
        Cache, "apply", lambda self, run: run.with_cache(self.size, self.flatness, self.weight)
    )


def settings(tuned):
    assert (tuned.size, tuned.tuned_on) == (7, "validation")
    return tuned.flatness, tuned.weight


class Judged:
    """Stands for a run whose validation has a known log-perplexity for each cache."""

    def __init__(self, flatness, weight):
        self.lowest, self.asked = (flatness, weight), []

    def read(self, split):
        assert split == "validation"
        return "the text"

    def with_cache(self, size, flatness, weight):
        assert size == 7
        self.asked.append((flatness, weight))
        distances = (
            math.log2(value / lowest)
            for value, lowest in zip((flatness, weight), self.lowest, strict=True)
        )
        scores = types.SimpleNamespace(log_perplexity=sum(x * x for x in distances))
        return types.SimpleNamespace(score_corpus=lambda corpus: (corpus, scores))


@pytest.mark.parametrize(
    "lowest",
    [(0.2, 0.1), (1.6, 0.1), (0.0125, 0.0125), (0.4, 0.8)],
    ids=["the start", "sharp", "flat and light", "heavy"],
)
def test_the_search_ends_at_the_lowest_loss(lowest):
    run = Judged(*lowest)
    assert settings(cache.tune(run, 7)) == pytest.approx(lowest)
    assert len(run.asked) == len(set(run.asked))  # each cache is judged once


@pytest.mark.parametrize("loss", [math.inf, math.nan])
def test_the_search_ends_where_no_loss_is_a_number(loss):
    run = Judged(0.2, 0.1)
    scores = types.SimpleNamespace(log_perplexity=loss)
    run.with_cache = lambda *_: types.SimpleNamespace(score_corpus=lambda corpus: (corpus, scores))
    assert settings(cache.tune(run, 7)) == (0.2, 0.1)


def test_a_weight_stays_below_1():
    run = Judged(0.2, 3.0)
    assert settings(cache.tune(run, 7)) == pytest.approx((0.2, 0.8))
    assert all(weight < 1 for _, weight in run.asked)
