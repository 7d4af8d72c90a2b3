"""Results against one field of the experiments."""

import json

import pytest

from tests.lab.comparison.test_comparison import keep, overlap_of
from tests.lab.training import small
from zoo import configuration
from zoo.data import Text, Vocabulary
from zoo.errors import UserError
from zoo.lab.comparison import sweep
from zoo.lab.comparison.comparison import Comparison
from zoo.priors import TopWords


def run_of(folder, count, loss, changes=(), **training):
    """A folder with a result, and an experiment with a prior of `count` words; None: without."""
    changes = {"figures.log_perplexity": loss, **dict(changes)}
    keep(folder, changes)
    features = () if count is None else (TopWords(count),)
    vocabulary = Vocabulary(features=features, lower_case=True)
    experiment = configuration.to_json(small.experiment(vocabulary=vocabulary, **training))
    (folder / "experiment.json").write_text(json.dumps(experiment))
    return str(folder)


def test_runs_stand_in_the_order_of_the_field_and_those_without_it_last(tmp_path, output):
    folders = [
        run_of(tmp_path / name, count, loss)
        for name, count, loss in (("a", 500, 5.5), ("rnn", None, 6.0), ("b", 10, 5.75))
    ]
    picture = tmp_path / "sweep.png"
    sweep.plot_sweep("vocabulary.features.0.count", folders, str(picture))
    table = [line.split() for line in output[1:4]]
    assert [(value, loss) for value, loss, _ in table] == [
        ("10", "5.7500"),
        ("500", "5.5000"),
        ("-", "6.0000"),
    ]
    assert "100 tokens" in output[0] and output[-1] == str(picture)
    assert picture.read_bytes()[:4] == b"\x89PNG"


def test_parts_of_a_text_stand_by_their_lengths(tmp_path):
    def run(name, path, trained_on=()):
        folder = run_of(tmp_path / name, 10, 5.0, {"trained_on": [*trained_on]})
        experiment = json.loads((tmp_path / name / "experiment.json").read_text())
        experiment["data"] = configuration.to_json(Text(train=path, validation="b.txt"))
        (tmp_path / name / "experiment.json").write_text(json.dumps(experiment))
        return folder

    part, half, second_text = (
        run(*arguments)
        for arguments in (("a", "a.txt[2:9]"), ("b", "a.txt[:50]"), ("c", "c.txt[:5]"))
    )
    curves = sweep.group_curves(Comparison.from_paths([half, part, second_text]), "data.train")
    assert [[*curve] for curve in curves] == [[7, 50], [5]]
    for path in ("a.txt", "a.txt[2:]", "a.txt[:-1]", "a.txt[3:2]"):
        with pytest.raises(UserError, match=r"data\.train of .* is not a number"):
            sweep.field_value(run("d", path), "data.train")
    # Or by what passports say that they were trained on.
    texts = [
        {"text": "a.txt", "by": name, "digest": "0", "sentences": count, "tokens": 9}
        for name, count in (("init_from", 3), ("this run", 60))
    ]
    full, last = run("e", "a.txt", texts), run("f", "a.txt[-60:]", texts)
    curves = sweep.group_curves(Comparison.from_paths([full, half, last]), "data.train")
    assert curves == [{50: ("b",), 60: ("e", "f")}]


def test_seeds_stand_at_one_place_and_other_settings_are_other_curves(tmp_path, output):
    folders = [
        run_of(tmp_path / "a", 10, 5.5, seed=0, batch=8),
        run_of(tmp_path / "b", 10, 5.0, seed=1, batch=8),
        run_of(tmp_path / "c", 10, 5.9, seed=2, batch=8),
        run_of(tmp_path / "d", 500, 5.25, seed=0, batch=8),
        run_of(tmp_path / "e", 10, 4.0, seed=0, batch=16),
    ]
    field = "vocabulary.features.0.count"
    (narrow, wide) = sweep.group_curves(Comparison.from_paths(folders), field)
    assert narrow == {10: ("a", "b", "c"), 500: ("d",)} and wide == {10: ("e",)}
    picture = tmp_path / "sweep.svg"
    sweep.plot_sweep(field, folders, str(picture))
    assert output[1:7] == [
        "  a, 1 to 3 seeds:",
        "            10  5.4667 (5.0000 to 5.9000 of 3)  a, b, c",
        "           500  5.2500  d",
        "  e:",
        "            10  4.0000  e",
        str(picture),
    ]
    svg = picture.read_text()
    assert ">a, 1 to 3 seeds</text>" in svg and ">e</text>" in svg
    assert ">test, carried (100 tokens)</text>" in svg
    sweep.plot_sweep(field, folders, str(picture), ["narrow", "wide"])
    assert output[8] == "  narrow, 1 to 3 seeds:"
    with pytest.raises(UserError, match="for 2 recipes"):
        sweep.plot_sweep(field, folders, str(picture), ["narrow"])


def test_the_point_of_one_run_has_its_interval(tmp_path, output):
    folder = run_of(tmp_path / "a", 10, 5.0, {"figures.interval": [4.5, 5.5]})
    picture = str(tmp_path / "sweep.png")
    sweep.plot_sweep("vocabulary.features.0.count", [folder], picture)
    assert output[1] == "            10  5.0000 [4.5000, 5.5000]  a"


def test_a_run_that_saw_the_text_is_named_and_not_drawn(tmp_path, output):
    overlap = overlap_of(trained_on=900)
    folders = [
        run_of(tmp_path / "a", 10, 5.0, overlap_of()),
        run_of(tmp_path / "b", 20, 1.0, overlap),
        run_of(tmp_path / "c", 30, 4.0, overlap_of()),
    ]
    field, picture = "vocabulary.features.0.count", str(tmp_path / "sweep.png")
    sweep.plot_sweep(field, folders, picture)
    assert output[1].startswith("  not drawn: b: it was trained on this text (90.00% of")
    assert [line.split()[:2] for line in output[2:4]] == [["10", "5.0000"], ["30", "4.0000"]]
    with pytest.raises(UserError, match="nothing to draw"):
        sweep.plot_sweep(field, folders[1:2], picture)


def test_what_cannot_be_drawn_is_refused(tmp_path):
    first, second = run_of(tmp_path / "a", 10, 5.0), run_of(tmp_path / "b", 20, 4.0, {"tokens": 7})
    for field, folders, message in (
        ("training.bat", [first], "none of the runs has the field training.bat"),
        ("vocabulary.lower_case", [first], "is not a number, but True"),
        ("vocabulary.features.0.count", [first, str(tmp_path)], "does not hold a run"),
        ("vocabulary.features.0.count", [first, second], "because tokens differs: 100 against 7"),
    ):
        with pytest.raises(UserError, match=message):
            sweep.plot_sweep(field, folders, str(tmp_path / "x.png"))
