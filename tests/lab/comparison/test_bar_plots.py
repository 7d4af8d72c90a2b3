"""Pictures: their data, texts and files, whatever is missing or infinite."""

import errno
import math
import os
import re

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.image import imread

from tests.marks import slow
from zoo.errors import UserError
from zoo.lab.comparison import bar_plots, learning_curves, plot_style
from zoo.lab.comparison.comparison import Group
from zoo.lab.comparison.seeds import number_recipes
from zoo.lab.evaluation import significance
from zoo.lab.evaluation.perplexity import Band

SIGNATURE = b"\x89PNG"


@pytest.fixture
def file(tmp_path):
    (tmp_path / "pictures").mkdir()
    return tmp_path / "pictures" / "picture.png"


@pytest.fixture
def figures(monkeypatch):
    """The figures that are drawn, which are not written."""
    figures = []
    monkeypatch.setattr(plot_style, "save", lambda figure, file: figures.append(figure))
    return figures


def by_recipe(values):
    """The values by recipes of these names."""
    numbers = number_recipes([*values])
    return {
        Group(name, number, ()): value
        for number, (name, value) in zip(numbers, values.items(), strict=True)
    }


def band_row(band, tokens, loss, interval=(math.nan, math.nan)):
    """A band with its interval."""
    return Band(band, tokens, loss, math.exp(loss)), interval


def bands_of(rows):
    """The bars of the rows of the seeds of each recipe."""
    return by_recipe({name: bar_plots.band_bars(seeds) for name, seeds in rows.items()})


def accuracies_of(counts):
    """The bars of (right, pairs) of the seeds of each recipe."""
    return by_recipe(
        {
            name: {kind: bar_plots.accuracy_bar(seeds) for kind, seeds in by_kind.items()}
            for name, by_kind in counts.items()
        }
    )


def labels_of(figure):
    """The entries of a figure's legend."""
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def ticks_of(axes):
    return [text.get_text() for text in axes.get_xticklabels()]


def bars_of(axes):
    return [bars for bars in axes.containers if hasattr(bars, "patches")]


def spans_of(axes):
    """The ends of all intervals, in the order in which they are drawn."""
    spans = []
    for container in axes.containers:
        if not hasattr(container, "patches"):
            (lines,) = container.lines[2]
            if to_hex(lines.get_color()[0]) == "#ffffff":  # the ground of the next
                continue
            segments = lines.get_segments()  # empty without an interval
            spans += [segment[:, 1] if len(segment) else (math.nan,) * 2 for segment in segments]
    return spans


def test_seeds_are_a_mean_with_their_range(figures, file):
    two = [[(150, 4.0), (300, 3.0), (450, 2.5)], [(150, 5.0), (300, 3.5)]]
    curves = [
        learning_curves.Curve(Group("softmax, 2 seeds", 0, ()), two),
        learning_curves.Curve(Group("other", 1, ()), [[(100, 6.0)]]),
    ]
    learning_curves.draw_curves(curves, file, limit=2.0)
    (axes,) = figures[0].axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("training step", "validation, nats per token")
    mean = next(line for line in axes.lines if line.get_label() == "softmax, 2 seeds")
    assert mean.get_xydata().tolist() == [[150, 4.5], [300, 3.25]]  # the second seed stopped there
    (shade,) = axes.collections
    ends = shade.get_paths()[0].vertices
    assert {tuple(end) for end in ends} == {(150, 4), (150, 5), (300, 3), (300, 3.5)}
    assert any(line.get_xydata().tolist() == [list(p) for p in two[0]] for line in axes.lines)
    assert labels_of(figures[0]) == ["softmax, 2 seeds", "other", "the language's own limit"]
    (legend,) = figures[0].legends
    assert legend.get_title().get_text() == "shade: least and greatest of the seeds"


def test_bands_have_tokens_and_intervals(figures, file):
    rows = {
        "a": [
            [
                band_row("unknown", 7, 2.5, (2, 4)),
                band_row("unseen", 40, math.inf),
                band_row("1-9", 1500, 3.0),
            ]
        ],
        "b, 2 seeds": [
            [band_row("1-9", 1500, 2.0)],
            [band_row("1-9", 1500, 3.0)],
        ],
    }
    bar_plots.draw_bands(bands_of(rows), file, "Bands", {"1-9": 1.5})
    (axes,) = figures[0].axes
    unknown = "<unk>:\nunknown words\n7 tokens"
    assert ticks_of(axes) == [unknown, "never in\ntraining\n40 tokens", "1-9\n1,500 tokens"]
    a_bars, b_bars = bars_of(axes)
    assert [bar.get_height() for bar in a_bars.patches] == [2.5, 0, 3]
    assert [bar.get_height() for bar in b_bars.patches] == [2.5]
    np.testing.assert_allclose(spans_of(axes), [[2, 4], [np.nan] * 2, [np.nan] * 2, [2, 3]])
    assert [bar.get_hatch() for bar in a_bars.patches] == ["///", None, None]
    assert [text.get_text() for text in axes.texts] == ["2.5", "∞", "3.0", "2.5"]
    assert "hatched: fewer than 30 tokens" in labels_of(figures[0])
    handles = dict(zip(labels_of(figures[0]), figures[0].legends[0].legend_handles, strict=True))
    assert handles["a"].get_hatch() is None  # though its first bar is hatched


def test_an_accuracy_has_its_count_and_its_interval(figures, file):
    counts = {
        "a": {"number, 1": [(3, 10)], "gender, 1": [(2, 2)]},
        "b": {"number, 1": [(81, 263)]},
    }
    bar_plots.draw_accuracy(accuracies_of(counts), file)
    number, gender = figures[0].axes
    assert (number.get_title(), gender.get_title()) == ("number", "gender")
    assert {axes.get_xlabel() for axes in figures[0].axes} == {"distance in words"}
    heights = [bar.get_height() for bars in bars_of(number) for bar in bars.patches]
    np.testing.assert_allclose(heights, [30, 100 * 81 / 263])
    # Wilson by hand: (3 + 1.92073) / 13.84146 -+ 1.95996 (2.1 + 0.96036)^(1/2) / 13.84146, and
    # 2 / (2 + 3.84146) to 1.
    np.testing.assert_allclose(spans_of(number)[0], [10.779, 60.322], atol=0.002)
    np.testing.assert_allclose(spans_of(number)[1], [25.53, 36.62], atol=0.01)
    np.testing.assert_allclose(spans_of(gender), [[34.238, 100]], atol=0.002)
    # Two runs of different pairs have their counts in the bars, and others below them.
    assert ticks_of(number) == ["1"] and ticks_of(gender) == ["1\n2 pairs"]
    assert [text.get_text() for text in number.texts] == ["30\nof 10", "31\nof 263"]
    assert [text.get_text() for text in gender.texts] == ["100"]
    assert gender.containers[0].patches[0].get_hatch() == "///"
    assert labels_of(figures[0]) == ["a", "b", "chance", "hatched: fewer than 30 pairs"]


def test_no_text_is_on_the_line_of_chance(figures, file):
    shares = {"a": {"number, 1": [(50, 100)], "number, 2-4": [(0, 100)]}}
    bar_plots.draw_accuracy(accuracies_of({**shares, "b": {"number, 1": [(45, 100)]}}), file)
    (axes,) = figures[0].axes
    figures[0].canvas.draw()
    (chance,) = (line for line in axes.lines if line.get_linestyle() == ":")
    height = axes.transData.transform((0, chance.get_ydata()[0]))[1]
    assert chance.get_ydata()[0] == 50
    for text in axes.texts:
        box = text.get_window_extent()
        assert not box.y0 <= height <= box.y1


def test_seeds_are_points_on_the_bar_of_their_mean(figures, file):
    counts = {"a": {"number": [(50, 100), (75, 100), (70, 100)], "gender": [(1, 2)]}}
    bar_plots.draw_accuracy(accuracies_of(counts), file)
    axes = figures[0].axes[0]
    (bars,) = bars_of(axes)
    assert [bar.get_height() for bar in bars.patches] == [65]
    points = [line.get_ydata() for line in axes.lines if line.get_marker() == "o"]
    np.testing.assert_allclose(points, [[50, 75, 70]])
    ends = [100 * end for end in significance.binomial_interval(65, 100)]
    np.testing.assert_allclose(spans_of(axes), [ends])
    assert ticks_of(axes) == ["all\n100 pairs"]


def test_white_covers_no_part_of_an_interval(file):
    narrow = band_row("1-9", 90, 3.0, (2.9, 3.1))
    bar_plots.draw_bands(bands_of({"a": [[narrow]]}), file, "Bands")
    dark = imread(file)[:, :, :3].max(axis=-1) < 0.4
    bar = dark[40:300, 600:1000]  # below the title, beside the axis
    line = np.flatnonzero(bar[:, bar.sum(axis=0).argmax()])
    # From cap to cap it is black, without a gap.
    assert len(line) > 20 and len(line) == line[-1] - line[0] + 1


def colour_of(handle):
    """The colour of bars, of a line with intervals, or of a line."""
    if hasattr(handle, "patches"):
        return to_hex(handle.patches[0].get_facecolor())
    return (handle.lines[0] if hasattr(handle, "lines") else handle).get_color()


def test_a_recipe_has_one_colour_in_every_picture_and_order(figures, file):
    """By hand: "cache" and "softmax" are numbers 0 and 1 by the alphabet, in whatever order."""
    names = ["softmax", "cache"]
    learning_curves.draw_curves(
        [learning_curves.Curve(recipe, [[(1, 2.0)]]) for recipe in by_recipe(dict.fromkeys(names))],
        file,
        "step",
    )
    bands = {name: [[band_row("1-9", 90, 3.0)]] for name in names}
    bar_plots.draw_bands(bands_of(bands), file, "Bands")
    colours_by_picture = []
    for figure in figures:
        handles, labels = figure.axes[0].get_legend_handles_labels()
        colours = map(colour_of, handles)
        colours_by_picture.append(dict(zip(labels, colours, strict=True)))
    assert colours_by_picture == [{"softmax": "#674208", "cache": "#0391ed"}] * 2


def test_recipes_of_one_colour_differ_by_their_mark():
    marks = {tuple(plot_style.style(number).values()) for number in range(36)}
    assert len(marks) == 36


def draw_everything(name, tmp_path):
    """A picture of each kind, of a recipe of that name, and of words like it."""
    word = name.replace("\udce9", "é")  # which no text file has
    band = band_row("1-9", 9, 3.0)
    recipe = Group(name, 0, ())
    pictures = {
        "curves": lambda file: learning_curves.draw_curves(
            [learning_curves.Curve(recipe, [[(1, 2.0)]], [[(1, 3.0)]])], file, "step"
        ),
        "bands": lambda file: bar_plots.draw_bands(
            {recipe: bar_plots.band_bars([[band]])}, file, "Bands"
        ),
        "accuracy": lambda file: bar_plots.draw_accuracy(
            {recipe: {word: bar_plots.accuracy_bar([(1, 2)])}}, file
        ),
    }
    for picture, draw in pictures.items():
        draw(tmp_path / f"{picture}.png")


@pytest.mark.filterwarnings("ignore:Glyph")
@pytest.mark.parametrize("name", ["a\x1b[31m\udce9", *slow("a$_{b$")])
def test_a_name_is_drawn_as_it_is_written(name, tmp_path, monkeypatch):
    texts = []
    monkeypatch.setattr(
        plot_style.Figure,
        "savefig",
        lambda figure, path, **_: (
            figure.canvas.draw(),
            texts.append([text.get_text() for text in figure.findobj(plot_style.Text)]),
            path.write_bytes(b"drawn"),
        ),
    )
    draw_everything(name, tmp_path)
    plain = name.replace("\x1b", "\\x1b").replace("\udce9", "\\udce9")
    assert len(texts) == 3
    for picture_texts in texts:
        assert any(plain in text for text in picture_texts)
        # Nothing else is mathematics.
        assert not [text for text in picture_texts if "$" in text and name not in text]


@pytest.mark.parametrize(
    "report",
    [
        lambda workdir, file: learning_curves.plot_curves([workdir], file),
        lambda workdir, file: bar_plots.plot_bands([workdir], file),
        lambda workdir, file: bar_plots.plot_agreement([workdir], file),
    ],
    ids=["curves", "kept bands", "kept agreement"],
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


def test_a_picture_has_the_kind_of_its_suffix_and_the_same_bytes_again(tmp_path):
    for name, start in (("a.PDF", b"%PDF"), ("a.svg", b"<?xml"), ("a.png", SIGNATURE)):
        file, second_file = tmp_path / name, tmp_path / f"again.{name}"
        for path in (file, second_file):
            bar_plots.draw_accuracy(accuracies_of({"softmax, 3 seeds": {"number": [(1, 2)]}}), path)
        assert file.read_bytes().startswith(start)
        assert file.read_bytes() == second_file.read_bytes()
    # Text of an SVG stays text, in a size that is readable on a slide.
    text = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert re.search(r"<text [^>]*>softmax, 3 seeds</text>", text)
    sizes = [float(size) for size in re.findall(r"font-size: ([\d.]+)px", text)]
    assert min(sizes) >= 10 and max(sizes) >= 14


@pytest.mark.parametrize(
    ("code", "kind"), [(errno.EROFS, UserError), (errno.ENOSPC, OSError), (errno.EDQUOT, OSError)]
)
def test_a_picture_is_replaced_only_by_a_whole_one(file, monkeypatch, code, kind):
    def fail(self, path, **_):
        path.write_bytes(b"half")
        raise OSError(code, os.strerror(code))

    file.write_bytes(b"old")
    monkeypatch.setattr(plot_style.Figure, "savefig", fail)
    with pytest.raises(kind, match=os.strerror(code)):
        bar_plots.draw_accuracy(accuracies_of({"a": {"number": [(1, 2)]}}), file)
    assert file.read_bytes() == b"old"
    assert list(file.parent.iterdir()) == [file]
