"""Charts: round ticks, points where they belong, marks beside colours."""

import math
import xml.etree.ElementTree as ElementTree

import pytest

from zoo.lab.comparison import charts
from zoo.lab.comparison.bar_plots import Bar
from zoo.lab.comparison.charts import Line
from zoo.lab.comparison.comparison import Group


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 10, [0, 2, 4, 6, 8, 10]),
        (3.1, 3.4, [3.1, 3.2, 3.3, 3.4]),
        (0, 2020, [0, 500, 1000, 1500, 2000, 2500]),
        (-1, 1, [-1, -0.5, 0, 0.5, 1]),
        (5, 5, [4.4, 4.6, 4.8, 5, 5.2, 5.4, 5.6]),
    ],
)
def test_ticks_are_round_and_span_the_values(low, high, expected):
    ticks = charts.round_ticks(low, high)
    assert ticks[0] <= low and ticks[-1] >= high and len(ticks) <= 7
    if low < high:
        assert ticks == pytest.approx(expected)


def parsed(svg):
    return ElementTree.fromstring(svg)


def test_a_curve_goes_through_its_points():
    points = [(0, 2.0), (50, 4.0), (100, math.inf)]
    chart = charts.curve_chart([Line(1, points)], "step", "nats per token", "a < b")
    root = parsed(chart)
    assert root.get("aria-label") == "a < b" and root.get("role") == "img"
    assert {text.text for text in root.iter("text")} >= {"step", "nats per token", "0", "2.0"}
    (group,) = (element for element in root.iter("g") if "run" in element.get("class", ""))
    assert group.get("class") == "run c1" and group.get("data-run") == "1"
    (line,) = (path for path in group.iter("path") if path.get("class") == "line")
    # The axes go from 0 to 50, and from 2 to 4: the corners of the plot.
    start, end, bottom, top = 66, 450, 242, 14
    assert line.get("d") == f"M{start} {bottom}L{end} {top}"
    marks = [path for path in group.iter("path") if "mark" in path.get("class")]
    assert [mark.get("class") for mark in marks] == ["mark square"] * 2


def test_nothing_finite_is_no_chart():
    assert charts.curve_chart([Line(0, [(1, math.nan)])], "x", "y", "about") == ""
    assert charts.interval_chart([("a", {})], "x", "about") == ""


def test_intervals_stand_where_their_ends_are():
    first, second = Group("one", 0, ()), Group("other", 1, ())
    rows = [
        ("often <", {first: Bar(50, (25, 100), 9)}),
        ("never", {second: Bar(0, (math.nan, math.nan), 9)}),
    ]
    root = parsed(charts.interval_chart(rows, "percent", "about", (0, 100), chance=50))
    texts = [text.text for text in root.iter("text")]
    assert texts[:2] == ["often <", "never"] and texts[-1] == "percent"
    # 0 to 100 are 16 to 450.
    groups = [*root.iter("g")]
    lines = [path.get("d") for path in groups[0].iter("path") if path.get("class") == "line"]
    assert lines[0] == "M124.5 49H450"
    (mark,) = (path for path in groups[0].iter("path") if path.get("class") == "mark circle")
    assert mark.get("transform") == "translate(233 49)"
    assert [path.get("class") for path in groups[1].iter("path")] == ["mark square"]
    (chance,) = (path for path in root.iter("path") if path.get("class") == "chance")
    assert chance.get("d").startswith("M233 ")
