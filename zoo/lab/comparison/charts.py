"""Charts as SVG: curves, and points with their intervals. Colours and text sizes are in page.css.

Recipes differ by their marks as well as by colour. Text stays text, and each chart has a
description.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from zoo.lab.comparison import plot_style
from zoo.lab.comparison.bar_plots import Bar
from zoo.lab.comparison.comparison import Group
from zoo.lab.comparison.html_parts import number
from zoo.lab.table import escape

WIDTH, HEIGHT = 480, 300
PAD_LEFT, PAD_RIGHT, PAD_TOP, PAD_BOTTOM = 66, 30, 14, 58
# Kinds of marks; colours are in page.css; see `plot_style.mark_index`.
MARKS = ("circle", "square", "triangle", "diamond", "cross", "plus")
# Heights in a chart of intervals: the label of a row, and a line of a run below it.
_LABEL, _LINE = 26, 18


class Line(NamedTuple):
    """A line of a chart: its points, and the span of the seeds around it."""

    colour_number: int
    points: Sequence[tuple[float, float]]
    dashed: bool = False
    shade: Sequence[tuple[float, float, float]] = ()  # (x, least, greatest) of the seeds


def round_ticks(low: float, high: float, max_ticks: int = 5) -> list[float]:
    """Returns round numbers that span a range: multiples of 1, 2 or 5 times a power of ten."""
    if not high > low:
        low, high = low - 0.5, low + 0.5
    power = 10.0 ** math.floor(math.log10((high - low) / max_ticks))
    steps = [power * factor for factor in (1, 2, 5, 10)]
    step = next(step for step in steps if step * max_ticks >= high - low)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [index * step for index in range(first, last + 1)]


def _mark(colour_number: int, x: float, y: float, s: float = 4) -> str:
    """Returns the SVG of a recipe's mark at a point; `s`: half its size."""
    mark = MARKS[plot_style.mark_index(colour_number)]
    paths = {
        "circle": f"M{-s} 0a{s} {s} 0 1 0 {2 * s} 0a{s} {s} 0 1 0 {-2 * s} 0z",
        "square": f"M{-s} {-s}h{2 * s}v{2 * s}h{-2 * s}z",
        "triangle": f"M0 {-s - 1}l{s + 1} {2 * s}h{-2 * s - 2}z",
        "diamond": f"M0 {-s - 1}l{s + 1} {s + 1}l{-s - 1} {s + 1}l{-s - 1} {-s - 1}z",
        "cross": f"M{-s} {-s}l{2 * s} {2 * s}M{-s} {s}l{2 * s} {-2 * s}",
        "plus": f"M0 {-s}v{2 * s}M{-s} 0h{2 * s}",
    }
    transform = f"translate({_coord(x)} {_coord(y)})"
    return f'<path class="mark {mark}" transform="{transform}" d="{paths[mark]}"/>'


def curve_chart(lines: Sequence[Line], x_name: str, y_name: str, description: str) -> str:
    """Returns an SVG chart of lines over common axes, without their infinite points; "" if no point
    is finite. The x axis begins at 0."""
    finite = [
        line._replace(points=_finite(line.points), shade=_finite(line.shade)) for line in lines
    ]
    points = [point for line in finite for point in line.points]
    points += [(x, y) for line in finite for x, *ends in line.shade for y in ends]
    if not points:
        return ""
    xs, ys = zip(*points, strict=True)
    x_ticks = round_ticks(0, max(xs))
    y_ticks = round_ticks(min(ys), max(ys))
    right, bottom = WIDTH - PAD_RIGHT, HEIGHT - PAD_BOTTOM
    across = _scale(x_ticks, PAD_LEFT, right)
    up = _scale(y_ticks, bottom, PAD_TOP)
    parts = [
        f'<path class="grid" d="M{PAD_LEFT} {_coord(up(y))}H{right}"/>'
        f'<text class="y" x="{PAD_LEFT - 8}" y="{_coord(up(y))}">{format_tick(y, y_ticks)}</text>'
        for y in y_ticks
    ]
    parts += _x_labels(x_ticks, across, bottom)
    parts.append(_axis_names(x_name, y_name, HEIGHT))
    for line in finite:
        pixels = [(across(x), up(y)) for x, y in line.points]
        path = "L".join(f"{_coord(x)} {_coord(y)}" for x, y in pixels)
        css_class = "line dashed" if line.dashed else "line"
        content = _shade(line.shade, across, up)
        content += f'<path class="{css_class}" d="M{path}"/>' if pixels else ""
        if not line.dashed or len(pixels) == 1:
            content += "".join(_mark(line.colour_number, x, y) for x, y in pixels)
        parts.append(_run_group(line.colour_number, content))
    return _svg_chart(HEIGHT, description, parts)


def _finite(points):
    """Returns the points whose coordinates are all finite."""
    return [point for point in points if all(map(math.isfinite, point))]


def _shade(ends, across, up):
    """Returns the SVG of the area between least and greatest y of (x, least, greatest), "" without
    any; `across` and `up` map x and y to pixels."""
    if not ends:
        return ""
    lower = [(x, low) for x, low, _ in ends]
    upper = [(x, high) for x, _, high in reversed(ends)]
    outline = "L".join(f"{_coord(across(x))} {_coord(up(y))}" for x, y in lower + upper)
    return f'<path class="shade" d="M{outline}Z"/>'


def interval_chart(
    rows: Sequence[tuple[str, Mapping[Group, Bar]]],
    x_name: str,
    description: str,
    span: tuple[float, float] | None = None,
    chance: float | None = None,
) -> str:
    """Returns an SVG chart with an interval for each name and recipe; "" if no figure is finite.

    The x axis covers `span`, or else all figures; `chance` is the x of a line.
    """
    all_bars = [bar for _, bars in rows for bar in bars.values()]
    ends = [*filter(math.isfinite, (x for bar in all_bars for x in (bar.height, *bar.interval)))]
    if not ends:
        return ""
    x_ticks = round_ticks(*(span or (min(ends), max(ends))))
    start = 16
    across = _scale(x_ticks, start, WIDTH - PAD_RIGHT)
    y, body = PAD_TOP, []
    for name, bars in rows:
        body.append(f'<text class="row" x="{start}" y="{y + 16}">{escape(name)}</text>')
        y += _LABEL
        for recipe, bar in bars.items():
            body.append(_draw_estimate(recipe.colour_number, bar, across, y + _LINE / 2))
            y += _LINE
        y += 6
    lines = [f'<path class="grid" d="M{_coord(across(x))} {PAD_TOP}V{y}"/>' for x in x_ticks]
    if chance is not None:
        lines.append(f'<path class="chance" d="M{_coord(across(chance))} {PAD_TOP}V{y}"/>')
    height = y + PAD_BOTTOM
    labels = [*_x_labels(x_ticks, across, y), _axis_names(x_name, "", height)]
    return _svg_chart(height, description, [*lines, *body, *labels])


def _draw_estimate(colour_number, bar, across, y):
    """Returns the SVG of a bar's mark and interval at height y; `across` scales its values."""
    content = ""
    if all(map(math.isfinite, bar.interval)):
        low, high = map(across, bar.interval)
        content += f'<path class="line" d="M{_coord(low)} {_coord(y)}H{_coord(high)}"/>'
        for x in (low, high):
            content += f'<path class="line" d="M{_coord(x)} {_coord(y - 4)}V{_coord(y + 4)}"/>'
    if math.isfinite(bar.height):
        content += _mark(colour_number, across(bar.height), y)
    return _run_group(colour_number, content)


def _run_group(colour_number, content):
    """Wraps the SVG of a recipe in a <g> element with its colour, which the legend can hide."""
    return f'<g class="run {_colour_class(colour_number)}" data-run="{colour_number}">{content}</g>'


def _colour_class(colour_number):
    """Returns the CSS class of a colour number."""
    return f"c{colour_number % len(plot_style.COLOURS)}"


def legend(groups: Iterable[Group]) -> str:
    """Returns a legend as HTML: recipes beside their marks, each with a box that hides it."""
    entries = (
        f'<label><input type="checkbox" checked data-shows="{number}">'
        f'<svg class="sign {_colour_class(number)}" viewBox="-14 -7 28 14" aria-hidden="true">'
        f'<path class="line" d="M-12 0H12"/>{_mark(number, 0, 0)}</svg>{escape(name)}</label>'
        for name, number, _ in groups
    )
    return f'<p class="legend">{"".join(entries)}</p>'


def figure(content: str, caption: str) -> str:
    """Returns an HTML figure of HTML content with its caption, a text."""
    return f"<figure>{content}<figcaption>{escape(caption)}</figcaption></figure>"


def format_tick(value: float, ticks: Sequence[float]) -> str:
    """Formats a number of an axis with the decimals that the step between its ticks needs."""
    step = ticks[1] - ticks[0] if len(ticks) > 1 else 1
    return number(value, max(0, -math.floor(math.log10(step) + 1e-9)))


def _x_labels(ticks, across, bottom):
    """Returns the SVG of the ticks' numbers below an x axis."""
    return [
        f'<text class="x" x="{_coord(across(x))}" y="{_coord(bottom + 20)}">'
        f"{format_tick(x, ticks)}</text>"
        for x in ticks
    ]


def _axis_names(x_name, y_name, height):
    """Returns the SVG of the names of both axes."""
    middle = (PAD_LEFT + WIDTH - PAD_RIGHT) / 2 if y_name else WIDTH / 2
    names = f'<text class="x name" x="{_coord(middle)}" y="{height - 10}">{escape(x_name)}</text>'
    if y_name:
        centre = (PAD_TOP + height - PAD_BOTTOM) / 2
        names += (
            f'<text class="x name" transform="translate(16 {_coord(centre)}) rotate(-90)">'
            f"{escape(y_name)}</text>"
        )
    return names


def _scale(ticks, start, end):
    """Returns the linear function that maps the first tick to `start` and the last to `end`."""
    low, high = ticks[0], ticks[-1]
    return lambda value: start + (value - low) / (high - low) * (end - start)


def _coord(value):
    """Formats a coordinate with at most one decimal."""
    return f"{value:.1f}".removesuffix(".0")


def _svg_chart(height, description, parts):
    """Wraps parts of a chart in an SVG element that screen readers can describe."""
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {_coord(height)}" role="img" '
        f'aria-label="{escape(description)}">{"".join(parts)}</svg>'
    )
