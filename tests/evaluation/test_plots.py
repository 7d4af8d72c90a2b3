"""Pictures are written, whatever is missing or infinite."""

import errno
import json
import os

import numpy as np
import pytest

from zoo.errors import UserError
from zoo.evaluation.judgements import agreement
from zoo.evaluation.reports import plots, rank, sweep

SIGNATURE = b"\x89PNG"


@pytest.fixture
def file(tmp_path):
    (tmp_path / "pictures").mkdir()
    return tmp_path / "pictures" / "picture.png"


def test_training_curves(tmp_path, file):
    lines = [
        {"step": 100, "training_loss": 3.0},
        {"step": 150, "validation_log_perplexity": 4.0, "epoch_training_loss": 5.0},
        {"step": 300, "validation_log_perplexity": 3.0, "epoch_training_loss": 3.5},
    ]
    path = tmp_path / "metrics.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"step": 4')
    plots.training_curves({"a": path, "b": path}, file, limit=2.0)
    assert file.read_bytes().startswith(SIGNATURE)


def test_bands(file):
    rows = {
        "a": [
            {"band": "unknown", "log_perplexity": 2.5},
            {"band": "unseen", "log_perplexity": "inf"},
            {"band": "1-9", "log_perplexity": 3.0},
        ],
        "b": [{"band": "1-9", "log_perplexity": 2.0}, {"band": "10000+", "log_perplexity": 1.0}],
    }
    plots.bands(rows, file, limit={"1-9": 1.5})
    assert file.read_bytes().startswith(SIGNATURE)


def test_accuracy(file):
    plots.accuracy({"a": {"number": 0.5, "gender": 1.0}, "b": {"number": 0.25}}, file)
    assert file.read_bytes().startswith(SIGNATURE)


def test_accuracies_of_seeds_are_their_mean_with_a_line_from_least_to_greatest(file, monkeypatch):
    drawn = []
    monkeypatch.setattr(plots, "_write", lambda figure, axes, file: drawn.append(axes))
    values = {"a": {"number": [0.5, 0.75, 0.7], "gender": [1.0]}, "b": {"number": 0.25}}
    plots.accuracy(values, file)
    (axes,) = drawn
    seeds, one = (bars for bars in axes.containers if hasattr(bars, "patches"))
    np.testing.assert_allclose([bar.get_height() for bar in seeds.patches], [65, 100])
    (lines,) = seeds.errorbar.lines[2]
    spans = [segment[:, 1].tolist() for segment in lines.get_segments()]
    np.testing.assert_allclose(spans, [[50, 75], [100, 100]])
    assert one.errorbar is None and one.patches[0].get_height() == 25
    assert [text.get_text() for text in axes.texts] == ["65", "100", "25", ""]


@pytest.mark.parametrize(("source", "target"), [(["a", "$", "b_c"], ["X", "$y$"]), (["a"], [])])
def test_attention(file, source, target):
    plots.attention(source, target, np.full((len(target), len(source)), 0.3), file)
    assert file.read_bytes().startswith(SIGNATURE)


@pytest.mark.parametrize(
    "report",
    [
        lambda workdir, file: rank.report([workdir], 7, "validation", file),
        lambda workdir, file: sweep.report("training.batch", [workdir], file),
        lambda workdir, file: agreement.report([workdir], [], file),
    ],
    ids=["rank", "sweep", "agreement"],
)
def test_what_cannot_be_written_is_refused_before_runs_are_read(tmp_path, report):
    (tmp_path / "notes").write_text("mine")
    (tmp_path / "folder.png").mkdir()
    for name, message in (
        ("picture", r"picture has a suffix that is not known: give one of \.png, "),
        ("picture.pgn", "picture.pgn has a suffix that is not known"),
        ("notes/a.png", "notes/a.png cannot be written .*: give a name in a folder that is"),
        ("notes/folder/a.png", "notes/folder/a.png cannot be written"),
        ("folder.png", "folder.png cannot be written .Is a directory"),
        ("nowhere/a.png", "nowhere/a.png cannot be written .No such file or directory"),
    ):
        with pytest.raises(UserError, match=message):
            report(str(tmp_path / "no run"), str(tmp_path / name))
    assert (tmp_path / "notes").read_text() == "mine"
    assert not (tmp_path / "nowhere").exists()


def test_a_picture_has_the_kind_of_its_suffix(tmp_path):
    plots.accuracy({"a": {"number": 0.5}}, tmp_path / "picture.PDF")
    assert (tmp_path / "picture.PDF").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize(
    ("code", "kind"), [(errno.EROFS, UserError), (errno.ENOSPC, OSError), (errno.EDQUOT, OSError)]
)
def test_a_picture_is_replaced_only_by_a_whole_one(file, monkeypatch, code, kind):
    def fail(self, path, **_):
        path.write_bytes(b"half")
        raise OSError(code, os.strerror(code))

    file.write_bytes(b"old")
    monkeypatch.setattr(plots.Figure, "savefig", fail)
    with pytest.raises(kind, match=os.strerror(code)):
        plots.accuracy({"a": {"number": 0.5}}, file)
    assert file.read_bytes() == b"old"
    assert list(file.parent.iterdir()) == [file]
