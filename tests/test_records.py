"""Documented figures are those of the passports of record."""

import copy
import json
import math
import pathlib
import re

import numpy as np
import pytest

from records import keep, tables
from zoo.errors import UserError
from zoo.evaluation import kept_scores, significance
from zoo.evaluation.reports.compare import compare

RUNS = sorted(path for path in keep.FOLDER.iterdir())


def test_the_page_has_the_tables_that_records_make():
    page = tables.PAGE.read_text(encoding="utf-8")
    assert tables.with_tables(page) == page, "run make tables"
    assert len(tables.TABLES) == len(re.findall("From the passports in records/runs: ", page))


def test_a_changed_figure_is_another_table(monkeypatch):
    page = tables.PAGE.read_text(encoding="utf-8")
    real = tables.passports

    def changed(run):
        found = copy.deepcopy(real(run))
        if run == "micro_softmax_1":
            found["test"]["figures"]["log_perplexity"] += 0.01
        return found

    monkeypatch.setattr(tables, "passports", changed)
    assert tables.with_tables(page) != page
    with pytest.raises(UserError, match="put the comments back"):
        tables.with_tables("no table")


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_a_record_says_where_it_comes_from(run):
    assert json.loads((run / "experiment.json").read_text())
    results = sorted((run / "results").glob("*.json"))
    assert results
    for path in results:
        passport = json.loads(path.read_text(encoding="utf-8"))
        keep.check(passport, path)
        assert {"processor", "cores", "device"} <= passport["machine"].keys()
        assert isinstance(passport["training"]["seed"], int)
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:]+\+00:00", passport["date"])


def test_records_are_compared_as_runs_are():
    lines = compare(
        [str(run) for run in RUNS if re.fullmatch(r"micro_(softmax|log_linear)_[012]", run.name)]
    )
    assert "micro_log_linear_0 (3 seeds)" in lines.splitlines()[1]
    assert "micro_softmax_0 (3 seeds)" in lines.splitlines()[2]


PASSPORT = {
    "kind": "perplexity",
    "split": "test",
    "figures": {"log_perplexity": 1.5},
    "training": {"seed": 3, "made_with": {"revision": "a" * 40}},
    "revision": "b" * 40,
    "data": {"path": "ptb/test.txt"},
    "command": ["/usr/bin/evaluate.py", "runs/a"],
}


def a_run(folder, **changes):
    (folder / "results").mkdir(parents=True)
    (folder / "experiment.json").write_text("{}")
    path = folder / "results" / "test.json"
    arrays = {"log_prob": [-1.0, -2.0, -1.5], "lengths": [2, 1]}
    arrays = {name: np.asarray(values) for name, values in arrays.items()}
    kept_scores.write(path, arrays)
    passport = {**PASSPORT, "scores": kept_scores.digest(arrays), **changes}
    path.write_text(json.dumps(passport))
    return folder, arrays


def test_a_run_is_kept_with_its_interval_and_without_its_scores(tmp_path):
    run, arrays = a_run(tmp_path / "mine")
    folder = keep.keep(run, tmp_path / "records")
    assert folder == tmp_path / "records" / "mine"
    assert [path.name for path in (folder / "results").iterdir()] == ["test.json"]
    passport = json.loads((folder / "results" / "test.json").read_text())
    interval = significance.bootstrap_interval(
        kept_scores.statistics(arrays), kept_scores.log_perplexity
    )
    assert passport["figures"]["interval"] == [*interval] and not math.isnan(interval[0])
    assert passport["command"] == ["evaluate.py", "runs/a"]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"revision": "b" * 40 + "-dirty"}, "code that no revision has"),
        ({"training": {"seed": 3, "made_with": None}}, "code that no revision has"),
        ({"data": {"path": "/home/me/test.txt"}}, "names /home/me/test.txt: judge the run by"),
        ({"command": ["evaluate.py", "/home/me/run"]}, "names /home/me/run"),
    ],
)
def test_a_run_that_nobody_can_repeat_is_not_kept(changes, why, tmp_path):
    run, _ = a_run(tmp_path / "mine", **changes)
    with pytest.raises(UserError, match=why):
        keep.keep(run, tmp_path / "records")


def test_a_run_without_results_is_not_kept(tmp_path):
    with pytest.raises(UserError, match="has no results: evaluate it first"):
        keep.keep(pathlib.Path(tmp_path), tmp_path / "records")
