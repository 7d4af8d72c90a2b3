"""Means of language models, word by word, and their weights by expectation maximisation."""

import json
import shutil

import numpy as np
import pytest

from zoo.lab.evaluation import sentence_scores
from zoo.lab.evaluation.run import Run
from zoo.lab.rescoring.run_interpolation import mix, tune_weights


def by_hand(probabilities, rounds=2000):
    """Weights of two or three models, by loops over words and models."""
    weights = [1 / len(probabilities)] * len(probabilities)
    for _ in range(rounds):
        sums = [0.0] * len(weights)
        for word in range(len(probabilities[0])):
            parts = [a * p[word] for a, p in zip(weights, probabilities, strict=True)]
            for model, part in enumerate(parts):
                sums[model] += part / sum(parts) / len(probabilities[0])
        weights = sums
    return weights


@pytest.mark.parametrize("models", [2, 3])
def test_weights_make_a_text_most_probable(random, models):
    probabilities = random.dirichlet(np.ones(7), size=(models, 13))[..., 0]
    log_probs = np.log(probabilities)
    weights = tune_weights(log_probs)
    np.testing.assert_allclose(weights, by_hand(probabilities.tolist()), atol=1e-4)
    np.testing.assert_allclose(weights.sum(), 1)
    best = mix(log_probs, weights).mean()
    for random_weights in random.dirichlet(np.ones(models), size=50):
        assert mix(log_probs, random_weights).mean() <= best + 1e-9


def test_the_mean_of_probabilities():
    log_probs = np.log([[0.5, 0.25], [0.1, 0.75]])
    expected = np.log([0.3 * 0.5 + 0.7 * 0.1, 0.3 * 0.25 + 0.7 * 0.75])
    np.testing.assert_allclose(mix(log_probs, np.array([0.3, 0.7])), expected)
    # A model without weight has no part, whatever it says.
    log_probs[1, 0] = -np.inf
    np.testing.assert_allclose(mix(log_probs, np.array([1.0, 0.0])), log_probs[0])


@pytest.fixture
def runs(call, tmp_path, trained):
    shutil.copytree(trained, "a")
    shutil.copytree(trained, "b")
    (tmp_path / "l").write_text("0 ||| le chat ||| f= 0\n0 |||  ||| f= 1\n1 ||| le ||| f= 2\n")
    (tmp_path / "t").write_text("le chat dort .\n\nles chats\n", encoding="utf-8")


@pytest.mark.usefixtures("runs")
def test_a_mean_of_runs_is_a_feature(call, tmp_path):
    runs = ("--run", "a", "--run", "b")
    code, printed, _ = call("interpolate", "t", *runs, "--weights", "mix.json")
    assert code == 0 and printed.splitlines()[-1].endswith(", 8 words with </s>")
    # Two equal models: neither is better.
    assert json.loads((tmp_path / "mix.json").read_text()) == {
        "interpolation": {"a": 0.5, "b": 0.5}
    }
    (tmp_path / "w.json").write_text(
        '{"weights": {"f": 0, "a": 0, "b": 0, "interpolated": 1, "words": 0}}'
    )
    line = ("apply", "l", "w.json", *runs, "--interpolation", "mix.json", "--word-count")
    code, printed, errors = call(*line, "--output", "new")
    assert (code, printed, errors) == (0, "", "")
    scores = [float(row.split(" ||| ")[-1]) for row in (tmp_path / "new").read_text().splitlines()]
    texts = [row.split(" ||| ")[1].split() for row in (tmp_path / "new").read_text().splitlines()]
    expected = sentence_scores.score(Run.load("a"), texts, "t").log_prob
    np.testing.assert_allclose(scores, expected, rtol=1e-5)


@pytest.mark.usefixtures("runs")
def test_what_is_wrong_is_a_sentence(call, tmp_path):
    (tmp_path / "c.json").write_text('{"interpolation": {"a": 0.5, "c": 0.5}}')
    for line, message in (
        ("interpolate t --run a", "interpolate takes two runs or more"),
        (
            "tune l t --metric bleu --interpolation c.json",
            "--interpolation averages runs: give --run DIR",
        ),
        (
            "tune l t --metric bleu --run a --interpolation c.json",
            "no --run is called 'c', which has a weight",
        ),
    ):
        code, printed, errors = call(*line.split())
        assert (code, printed) == (2, "") and message in errors
