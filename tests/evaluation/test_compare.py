"""Runs are ranked only on the same quantity."""

import copy
import json

import pytest

from zoo.errors import UserError
from zoo.evaluation.compare import compare

PASSPORT = {
    "kind": "perplexity",
    "split": "test",
    "figures": {"log_perplexity": 5.0, "perplexity": 148.41},
    "tokens": 100,
    "counts": "words",
    "data": {"path": "test.txt", "sha256": "abc"},
    "policies": {"state": "carried", "lanes": 8, "boundary": "counted"},
    "lexicon": {"hash": "h", "words_hash": "w"},
    "normalised_over": "the 10 words of the lexicon",
    "head": "Softmax()",
    "parameters": 1234,
}


def keep(folder, changes=(), name=None):
    """Writes the passport, changed at dotted fields, as a result of the run in `folder`."""
    passport = copy.deepcopy(PASSPORT)
    for field, value in dict(changes).items():
        *path, last = field.split(".")
        place = passport
        for part in path:
            place = place[part]
        place[last] = value
    (folder / "results").mkdir(parents=True, exist_ok=True)
    name = name or f"{passport['split']}.{passport['policies']['state']}"
    (folder / "results" / f"{name}.json").write_text(json.dumps(passport))
    return str(folder)


def test_the_best_run_comes_first(tmp_path):
    folders = [
        keep(tmp_path / "infinite", {"figures.log_perplexity": "inf", "figures.perplexity": "inf"}),
        keep(tmp_path / "worse"),
        keep(tmp_path / "better", {"figures.log_perplexity": 4.0, "figures.perplexity": 54.6}),
    ]
    lines = compare(folders).splitlines()
    assert [line.split()[0].rpartition("/")[2] for line in lines[1:4]] == [
        "better",
        "worse",
        "infinite",
    ]
    assert lines[1].split()[1:] == ["Softmax()", "1,234", "4.0000", "54.60"]
    assert "100 tokens: words" in lines[4]


def test_what_does_not_touch_the_figure_may_differ(tmp_path):
    changes = {"data.path": "copy.txt", "lexicon.hash": "other", "head": "LogLinear()"}
    compare([keep(tmp_path / "a"), keep(tmp_path / "b", {**changes, "parameters": 9})])


@pytest.mark.parametrize(
    ("field", "value", "old"),
    [
        ("data.sha256", "def", "abc"),
        ("tokens", 99, "100"),
        ("counts", "words and boundaries", "words"),
        ("policies.boundary", "uncounted", "counted"),
        ("policies.lanes", 1, "8"),
        ("policies.state", "sentences", "carried"),
        ("lexicon.words_hash", "v", "w"),
        ("normalised_over", "the 11 words of the lexicon", "the 10 words"),
    ],
)
def test_it_refuses_what_is_not_comparable(tmp_path, field, value, old):
    folders = [keep(tmp_path / "a"), keep(tmp_path / "b", {field: value})]
    with pytest.raises(UserError) as refusal:
        compare(folders)
    message = str(refusal.value)
    assert field in message
    assert repr(value) in message
    assert old in message


def test_a_run_judged_twice_is_compared_where_the_policies_meet(tmp_path):
    other = {"policies.state": "sentences", "policies.lanes": None, "figures.log_perplexity": 9.0}
    both = keep(tmp_path / "both")
    keep(tmp_path / "both", other)
    table = compare([both, keep(tmp_path / "one", {**other, "figures.log_perplexity": 8.0})])
    ranked = table.splitlines()[1:3]
    assert "8.0000" in ranked[0] and "9.0000" in ranked[1]


def test_a_run_without_results_is_named(tmp_path):
    with pytest.raises(UserError, match=r"nothing has no results: python evaluate\.py"):
        compare([keep(tmp_path / "a"), str(tmp_path / "nothing")])


def test_a_broken_result_is_named(tmp_path):
    folder = keep(tmp_path / "a")
    (tmp_path / "a" / "results" / "broken.json").write_text("{")
    with pytest.raises(UserError, match=r"broken\.json"):
        compare([folder])
