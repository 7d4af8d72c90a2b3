"""Figures of the page: curves, what is comparable, bands and judgements."""

import json
import math

import pytest

from tests import passports
from zoo.errors import UserError
from zoo.lab.comparison import bar_plots, learning_curves, page_figures
from zoo.lab.comparison.comparison import Comparison, Group, group_by_text
from zoo.lab.comparison.learning_curves import Curve
from zoo.lab.evaluation.results import Column

PASSPORT = passports.make()


def test_curves_are_the_validations_of_the_metrics(tmp_path):
    lines = [
        {"step": 100, "training_loss": 3.0},
        {"step": 150, "epoch": 0, "validation_log_perplexity": 4.0, "epoch_training_loss": 5.0},
        {"step": 300, "epoch": 1, "validation_log_perplexity": "inf"},
    ]
    content = "".join(json.dumps(line) + "\n" for line in lines) + '{"step": 4'
    metrics = tmp_path / "m.jsonl"
    metrics.write_text(content)
    fields = learning_curves.FIELDS["step"]
    validations = learning_curves.read_metrics(metrics, fields)
    recipe = Group("a", 3, ())
    validation, training = page_figures.chart_lines(Curve.from_validations(recipe, [validations]))
    assert validation == (3, [(150, 4.0), (300, math.inf)], False, [])
    assert training == (3, [(150, 5.0)], True, [])
    # Of two seeds the mean, and the least and the greatest.
    second_seed = [{"step": 150, "validation_log_perplexity": 3.0}]
    validation, _ = page_figures.chart_lines(
        Curve.from_validations(recipe, [validations, second_seed])
    )
    assert validation == (3, [(150, 3.5)], False, [(150, 3.0, 4.0)])
    metrics.write_text('{"step": "x", "validation_log_perplexity": 1}')
    with pytest.raises(UserError, match=r"m\.jsonl, line 1, is not a line of metrics"):
        learning_curves.read_metrics(metrics, fields)


def test_what_is_not_comparable_is_told_with_its_reason():
    shorter = passports.make(tokens=99)
    groups = {"test (a)": {"a": PASSPORT}, "test (b)": {"b": shorter}}
    description = page_figures.describe_comparability("test (a)", groups)
    assert (
        "a and b cannot be compared on test, because tokens differs: 100 against 99" in description
    )
    comparable = page_figures.describe_comparability(
        "test", {"test": {"a": PASSPORT, "b": PASSPORT}}
    )
    assert comparable.startswith("These runs are comparable with each other.")


def groups_of(**passports_by_run):
    comparison = Comparison({name: name for name in passports_by_run})
    columns = {
        name: {Column.from_passport(passport): passport for passport in run_passports}
        for name, run_passports in passports_by_run.items()
    }
    vars(comparison).update(
        available_results=(columns, {}), recipes={name: {} for name in passports_by_run}
    )
    return group_by_text(comparison)


def test_figures_of_one_quantity_are_a_group():
    other_text = passports.make(data__path="other.txt", data__sha256="def")
    carried = passports.make(policies__state="sentences")
    groups = groups_of(a=[PASSPORT], b=[PASSPORT])
    assert {name: [*runs] for name, runs in groups.items()} == {"test, carried": ["a", "b"]}
    groups = groups_of(a=[PASSPORT], b=[other_text])
    assert {name: [*runs] for name, runs in groups.items()} == {
        "test, carried (a)": ["a"],
        "test, carried (b)": ["b"],
    }
    groups = groups_of(a=[PASSPORT, carried])
    assert [*groups] == ["test, carried", "test, sentences"]


def test_bands_in_words():
    names = ["unknown", "unseen", "1-9", "1000-9999", "10000+"]
    assert [bar_plots.band_label(name) for name in names] == [
        "<unk>: unknown words",
        "never in training",
        "1 to 9 times",
        "1,000 to 9,999 times",
        "10,000 times or more",
    ]


def test_kinds_of_pairs_end_with_all():
    cases = {"number, 1": passports.accuracy(4, 5), "all": passports.accuracy(6, 10)}
    groups = {"field": {"syntax": passports.accuracy(2, 5)}}
    figures = {**passports.accuracy(6, 10), "cases": cases, "groups": groups}
    counts = bar_plots.passport_counts(passports.make(passports.PAIRS, tokens=10, figures=figures))
    assert [*counts.items()] == [
        ("number, 1", (4, 5)),
        ("field: syntax", (2, 5)),
        ("all", (6, 10)),
    ]
