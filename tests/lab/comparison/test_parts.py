"""Figures by the words' training counts, and their tests, from passports and kept scores."""

import math

import numpy as np

from tests import passports
from tests.lab.comparison.test_paired import BAND, BASE, LENGTHS, keep_scores, worse
from zoo.lab.comparison import parts
from zoo.lab.comparison.text_report import tables
from zoo.lab.evaluation import significance
from zoo.lab.evaluation.perplexity import BAND_NAMES

BANDS = [
    {"band": "unknown", "tokens": 2, "log_perplexity": 7.0, "perplexity": 1096.6},
    {"band": "unseen", "tokens": 3, "log_perplexity": 9.0, "perplexity": 8103.1},
    {"band": "1-9", "tokens": 1, "log_perplexity": 6.0, "perplexity": 403.4},
    {"band": "10000+", "tokens": 4, "log_perplexity": 1.0, "perplexity": 2.7},
]


def test_words_seen_in_training_are_all_bands_but_two():
    mixture = {"weight": 0.5, "words": 3, "tuned_on": None, "log_perplexity": 4.0}
    figures = {"log_perplexity": 5.1, "bands": BANDS, "mixture": mixture}
    figures_by_part = parts.parts_from_passport(passports.make(tokens=10, figures=figures))
    assert figures_by_part["seen"] == (5, 2.0)  # (6 + 4 * 1) / 5
    assert (figures_by_part["all"], figures_by_part["unseen"], figures_by_part["mixture"]) == (
        (10, 5.1),
        (3, 9.0),
        (10, 4.0),
    )
    assert parts.parts_from_passport(passports.make(tokens=10, figures__log_perplexity=5.1)) == {
        "all": (10, 5.1)
    }
    assert BAND_NAMES == ("unseen", "1-9", "10-99", "100-999", "1000-9999", "10000+")


def figures_of(log_prob, band=BAND, weight=0.25, words=50):
    """The figures of scores, by masks."""
    log_prob = np.float64(np.float32(log_prob))
    bands = [
        {
            "band": name,
            "tokens": int((band == number).sum()),
            "log_perplexity": -log_prob[band == number].mean(),
            "perplexity": 1.0,
        }
        for number, name in enumerate(("unknown", *BAND_NAMES), -1)
        if (band == number).any()
    ]
    p = (1 - weight) * np.exp(log_prob) + weight / words * (band == 0)
    mixture = {"weight": weight, "words": words, "tuned_on": "validation"}
    return {
        "log_perplexity": -log_prob.mean(),
        "perplexity": math.exp(-log_prob.mean()),
        "bands": bands,
        "mixture": {**mixture, "log_perplexity": -np.log(p).mean()},
    }


def difference(chosen, baseline, candidate):
    """The difference of two runs on some tokens and its interval, by a loop over sentences."""
    sentences = np.split(np.arange(len(BASE)), np.cumsum(LENGTHS)[:-1])
    rows = [
        [
            -np.float64(baseline)[part].sum(),
            len(part),
            -np.float64(candidate)[part].sum(),
            len(part),
        ]
        for tokens in sentences
        if len(part := tokens[chosen[tokens]])
    ]
    low, high = significance.bootstrap_interval(
        np.array(rows), lambda sums: sums[..., 2] / sums[..., 3] - sums[..., 0] / sums[..., 1]
    )
    mean = -np.float64(candidate)[chosen].mean() + np.float64(baseline)[chosen].mean()
    return f"{mean:.4f} [{low:.4f}, {high:.4f}] nats"


def test_compare_prints_the_parts_and_their_paired_tests(tmp_path):
    scores = {"best": np.float32(BASE), "far": np.float32(worse(0.5, 0.3, 1))}
    folders = {
        name: keep_scores(tmp_path / name, values, recipe=name, figures=figures_of(values))
        for name, values in scores.items()
    }
    plain = tables([*folders.values()])
    assert "in parts" not in plain
    text = tables([*folders.values()], in_parts=True)
    lines = text.splitlines()
    assert [line for line in lines if line in plain.splitlines()] == plain.splitlines()
    (start,) = [number for number, line in enumerate(lines) if "in parts" in line]
    header, tokens, best, far = (line.split() for line in lines[start : start + 4])
    names = ["all", "unknown", "unseen", "1-9", "10-99", "100-999", "seen", "mixture", "l"]
    assert header[-9:] == names
    seen_count = int((BAND > 0).sum())
    assert tokens[:3] == ["tokens", str(len(BASE)), str((BAND == -1).sum())]
    assert tokens[-2:] == [str(seen_count), str(len(BASE))]
    assert (best[0], far[0]) == ("best", "far")
    assert best[-3] == f"{-BASE[BAND > 0].mean():.4f}" and best[-1] == "0.2500"
    rows = [line.split() for line in lines[start + 4 : start + 7]]
    assert [row[0] for row in rows] == ["difference", "95", "to"]
    for place, chosen in enumerate([BAND > -2, BAND == -1, BAND == 0, BAND == 1]):
        expected = difference(chosen, scores["best"], scores["far"])
        cells = [row[name + place] for row, name in zip(rows, (1, 3, 1), strict=True)]
        assert expected == f"{cells[0]} [{cells[1]}, {cells[2]}] nats"
    mixed = {}
    for name, values in scores.items():
        p = 0.75 * np.exp(np.float64(values)) + 0.25 / 50 * (BAND == 0)
        mixed[name] = np.log(p)
    everything = np.ones(len(BASE), bool)
    for chosen, values in ((BAND > 0, scores), (BAND == 0, scores), (everything, mixed)):
        expected = difference(chosen, values["best"], values["far"])
        assert f"best is below far by {expected}" in text


def test_runs_of_different_training_texts_count_other_words_as_seen(tmp_path):
    second_bands = np.where(BAND == 1, 0, BAND)
    folders = [
        keep_scores(tmp_path / "a", BASE, recipe="a", figures=figures_of(BASE)),
        keep_scores(
            tmp_path / "b",
            BASE,
            recipe="b",
            band=second_bands,
            figures=figures_of(BASE, second_bands),
        ),
    ]
    text = tables(folders, in_parts=True)
    assert text.count("its tokens") == 2
    assert "count other tokens" in text.partition("words seen in training:")[2].splitlines()[1]
