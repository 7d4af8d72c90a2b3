"""Pictures are written, whatever is missing or infinite."""

import errno
import json
import os

import numpy as np
import pytest

from zoo.errors import UserError
from zoo.evaluation import significance
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


def test_an_accuracy_has_its_count_and_its_interval(file, monkeypatch):
    drawn = []
    monkeypatch.setattr(plots, "_write", lambda figure, axes, file: drawn.append(axes))
    counts = {"a": {"number": [(3, 10)], "gender": [(2, 2)]}, "b": {"number": [(81, 263)]}}
    plots.accuracy(counts, file)
    (axes,) = drawn
    one, other = (bars for bars in axes.containers if hasattr(bars, "patches"))
    np.testing.assert_allclose([bar.get_height() for bar in one.patches], [30, 100])
    (lines,) = one.errorbar.lines[2]
    spans = [segment[:, 1] for segment in lines.get_segments()]
    # Wilson by hand: (3 + 1.92073) / 13.84146 -+ 1.95996 (2.1 + 0.96036)^(1/2) / 13.84146, and
    # 2 / (2 + 3.84146) to 1.
    np.testing.assert_allclose(spans, [[10.779, 60.322], [34.238, 100]], atol=0.002)
    (lines,) = other.errorbar.lines[2]
    np.testing.assert_allclose(lines.get_segments()[0][:, 1], [25.53, 36.62], atol=0.01)
    texts = [text.get_text().strip() for text in axes.texts]
    assert texts == ["30", "100", "31", "", "of 10", "of 2", "of 263"]


def test_seeds_are_points_on_the_bar_of_their_mean(file, monkeypatch):
    drawn = []
    monkeypatch.setattr(plots, "_write", lambda figure, axes, file: drawn.append(axes))
    counts = {"a": {"number": [(50, 100), (75, 100), (70, 100)], "gender": [(0, 0)]}}
    plots.accuracy(counts, file)
    (axes,) = drawn
    (bars,) = (bars for bars in axes.containers if hasattr(bars, "patches"))
    np.testing.assert_allclose([bar.get_height() for bar in bars.patches], [65, np.nan])
    points = [line.get_ydata() for line in axes.lines if line.get_marker() == "o"]
    np.testing.assert_allclose(points, [[50, 75, 70]])
    (lines,) = bars.errorbar.lines[2]
    ends = [100 * end for end in significance.binomial_interval(65, 100)]
    np.testing.assert_allclose(lines.get_segments()[0][:, 1], ends)


def draw_everything(name, tmp_path):
    """A picture of each kind, of a run of that name, and of words like it."""
    word = name.replace("\udce9", "é")  # which no text file has
    metrics = tmp_path / "metrics.jsonl"
    metrics.write_text(
        '{"step": 150, "validation_log_perplexity": 4.0, "epoch_training_loss": 5.0}\n'
    )
    points = [sweep.Point(value, (2.0,), (name,)) for value in (1.0, 100.0)]
    pictures = {
        "curves": lambda file: plots.training_curves({name: metrics}, file),
        "bands": lambda file: plots.bands({name: [{"band": "1-9", "log_perplexity": 3.0}]}, file),
        "accuracy": lambda file: plots.accuracy({name: {word: [(1, 2)]}}, file),
        "spectra": lambda file: plots.spectra({name: np.array([1.0, 0.1])}, file),
        "attention": lambda file: plots.attention([word, "b"], [word], np.ones((1, 2)), file),
        "lengths": lambda file: plots.by_length(["1-5"], {name: [20.0]}, file),
        "sweep": lambda file: plots.sweep("model.size", {name: points}, {name: 3.0}, file),
    }
    for picture, draw in pictures.items():
        draw(tmp_path / f"{picture}.png")


@pytest.mark.filterwarnings("ignore:Glyph")
@pytest.mark.parametrize("name", ["a$_{b$", "a\x1b[31m\udce9"])
def test_a_name_is_drawn_as_it_is_written(name, tmp_path, monkeypatch):
    texts = []
    monkeypatch.setattr(
        plots.Figure,
        "savefig",
        lambda figure, path, format: (
            figure.canvas.draw(),
            texts.append([text.get_text() for text in figure.findobj(plots.Text)]),
            path.write_bytes(b"drawn"),
        ),
    )
    draw_everything(name, tmp_path)
    plain = name.replace("\x1b", "\\x1b").replace("\udce9", "\\udce9")
    assert len(texts) == 7
    for number, of_picture in enumerate(texts):
        if number != 4:  # attention, which has words and no names
            assert any(plain in text for text in of_picture)
        # Nothing else is mathematics, such as the numbers of logarithmic axes.
        assert not [text for text in of_picture if "$" in text and name not in text]


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
        ("notes/a.png", "notes/a.png cannot be written .*: give a name in a folder that exists"),
        ("notes/folder/a.png", "notes/folder/a.png cannot be written"),
        ("folder.png", "folder.png cannot be written .Is a directory"),
        ("nowhere/a.png", "nowhere/a.png cannot be written .No such file or directory"),
    ):
        with pytest.raises(UserError, match=message):
            report(str(tmp_path / "no run"), str(tmp_path / name))
    assert (tmp_path / "notes").read_text() == "mine"
    assert not (tmp_path / "nowhere").exists()


def test_a_picture_has_the_kind_of_its_suffix(tmp_path):
    plots.accuracy({"a": {"number": [(1, 2)]}}, tmp_path / "picture.PDF")
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
        plots.accuracy({"a": {"number": [(1, 2)]}}, file)
    assert file.read_bytes() == b"old"
    assert list(file.parent.iterdir()) == [file]
