"""Results against one field of the experiments."""

import json

import pytest

from tests.evaluation.test_compare import keep
from zoo.errors import UserError
from zoo.evaluation import sweep


def run_of(folder, count, loss, changes=()):
    """A folder with a result, and an experiment with a prior of `count` words; None: without."""
    changes = {"figures.log_perplexity": loss, **dict(changes)}
    keep(folder, changes)
    features = [] if count is None else [{"component": "TopWords", "count": count}]
    experiment = {"vocabulary": {"features": features, "lower_case": True}}
    (folder / "experiment.json").write_text(json.dumps(experiment))
    return str(folder)


def test_runs_stand_in_the_order_of_the_field_and_those_without_it_last(tmp_path):
    folders = [
        run_of(tmp_path / name, count, loss)
        for name, count, loss in (("a", 500, 5.5), ("rnn", None, 6.0), ("b", 10, 5.75))
    ]
    lines = []
    picture = tmp_path / "sweep.png"
    sweep.report("vocabulary.features.0.count", folders, str(picture), lines.append)
    table = [line.split() for line in lines[1:4]]
    assert [(value, loss) for value, loss, _ in table] == [
        ("10", "5.7500"),
        ("500", "5.5000"),
        ("-", "6.0000"),
    ]
    assert "100 tokens" in lines[0] and lines[-1] == str(picture)
    assert picture.read_bytes()[:4] == b"\x89PNG"


def test_what_cannot_be_drawn_is_refused(tmp_path):
    one, other = run_of(tmp_path / "a", 10, 5.0), run_of(tmp_path / "b", 20, 4.0, {"tokens": 7})
    for field, folders, message in (
        ("training.batch", [one], "none of the runs has the field training.batch"),
        ("vocabulary.lower_case", [one], "is no number, but True"),
        ("vocabulary.features.0.count", [one, str(tmp_path)], "not the folder of a training run"),
        ("vocabulary.features.0.count", [one, other], "for tokens differs: 100 against 7"),
    ):
        with pytest.raises(UserError, match=message):
            sweep.report(field, folders, str(tmp_path / "x.png"))
