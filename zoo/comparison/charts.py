"""Charts as SVG: curves, and points with their intervals. Colours and text sizes are in page.css.

Runs differ by their marks as well as by colour. Text stays text, and each chart has a description.
"""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from zoo.comparison import plot_style
from zoo.comparison.comparison import Group
from zoo.comparison.html_parts import number, text

WIDTH, HEIGHT = 480, 300
LEFT, RIGHT, TOP, BOTTOM = 66, 30, 14, 58
# Kinds of marks; colours are in page.css; see `plot_style.mark_number`.
MARKS = ("circle", "square", "triangle", "diamond", "cross", "plus")
# Heights in a chart of intervals: the label of a row, and a line of a run below it.
_LABEL, _LINE = 26, 18


class Curve(NamedTuple):
    """A curve of a run."""

    run: int
    points: Sequence[tuple[float, float]]
    dashed: bool = False
    shade: Sequence[tuple[float, float, float]] = ()


class Estimate(NamedTuple):
    """A point with its interval."""

    run: int
    value: float
    interval: tuple[float, float]  # (low, high); NaN where they are not known


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Returns round numbers that span a range: multiples of 1, 2 or 5 times a power of ten."""
    if not high > low:
        low, high = low - 0.5, low + 0.5
    power = 10.0 ** math.floor(math.log10((high - low) / most))
    step = next(
        power * round_one for round_one in (1, 2, 5, 10) if power * round_one * most >= high - low
    )
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [one * step for one in range(first, last + 1)]


def mark(kind: str, x: float, y: float, size: float = 4) -> str:
    """Returns the mark of a run around a point."""
    s = size
    paths = {
        "circle": f"M{-s} 0a{s} {s} 0 1 0 {2 * s} 0a{s} {s} 0 1 0 {-2 * s} 0z",
        "square": f"M{-s} {-s}h{2 * s}v{2 * s}h{-2 * s}z",
        "triangle": f"M0 {-s - 1}l{s + 1} {2 * s}h{-2 * s - 2}z",
        "diamond": f"M0 {-s - 1}l{s + 1} {s + 1}l{-s - 1} {s + 1}l{-s - 1} {-s - 1}z",
        "cross": f"M{-s} {-s}l{2 * s} {2 * s}M{-s} {s}l{2 * s} {-2 * s}",
        "plus": f"M0 {-s}v{2 * s}M{-s} 0h{2 * s}",
    }
    return f'<path class="mark {kind}" transform="translate({_at(x)} {_at(y)})" d="{paths[kind]}"/>'


def curves(
    drawn: Sequence[Curve], x_name: str, y_name: str, about: str, least: float | None = None
) -> str:
    """Draws curves over a common pair of axes."""
    finite = [
        curve._replace(points=_finite(curve.points), shade=_finite(curve.shade)) for curve in drawn
    ]
    points = [point for curve in finite for point in curve.points]
    points += [(x, y) for curve in finite for x, *ends in curve.shade for y in ends]
    if not points:
        return ""
    xs, ys = zip(*points, strict=True)
    x_ticks = ticks(min(xs) if least is None else least, max(xs))
    y_ticks = ticks(min(ys), max(ys))
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    across = _scale(x_ticks, LEFT, right)
    up = _scale(y_ticks, bottom, TOP)
    parts = [
        f'<path class="grid" d="M{LEFT} {_at(up(y))}H{right}"/>'
        f'<text class="y" x="{LEFT - 8}" y="{_at(up(y))}">{number_of_tick(y, y_ticks)}</text>'
        for y in y_ticks
    ]
    parts += _x_numbers(x_ticks, across, bottom)
    parts.append(_axis_names(x_name, y_name, HEIGHT))
    for curve in finite:
        places = [(across(x), up(y)) for x, y in curve.points]
        line = "L".join(f"{_at(x)} {_at(y)}" for x, y in places)
        kind = "line dashed" if curve.dashed else "line"
        inside = _shade(curve.shade, across, up)
        inside += f'<path class="{kind}" d="M{line}"/>' if places else ""
        if not curve.dashed or len(places) == 1:
            inside += "".join(_mark(curve.run, x, y) for x, y in places)
        parts.append(_group(curve.run, inside))
    return _svg(HEIGHT, about, parts)


def _finite(points):
    return [point for point in points if all(map(math.isfinite, point))]


def _shade(ends, across, up):
    """Returns the area between the least and the greatest of seeds."""
    if not ends:
        return ""
    lower = [(x, low) for x, low, _ in ends]
    upper = [(x, high) for x, _, high in reversed(ends)]
    outline = "L".join(f"{_at(across(x))} {_at(up(y))}" for x, y in lower + upper)
    return f'<path class="shade" d="M{outline}Z"/>'


def intervals(
    rows: Sequence[tuple[str, Sequence[Estimate]]],
    x_name: str,
    about: str,
    span: tuple[float, float] | None = None,
    chance: float | None = None,
) -> str:
    """Draws points with their intervals, a row for each name and in it a line for each run."""
    ends = [
        value
        for _, estimates in rows
        for one in estimates
        for value in (one.value, *one.interval)
        if math.isfinite(value)
    ]
    if not ends:
        return ""
    x_ticks = ticks(*(span or (min(ends), max(ends))))
    left, right = 16, WIDTH - RIGHT
    across = _scale(x_ticks, left, right)
    y, body = TOP, []
    for name, estimates in rows:
        body.append(f'<text class="row" x="{left}" y="{y + 16}">{text(name)}</text>')
        y += _LABEL
        for one in estimates:
            body.append(_estimate(one, across, y + _LINE / 2))
            y += _LINE
        y += 6
    lines = [f'<path class="grid" d="M{_at(across(x))} {TOP}V{y}"/>' for x in x_ticks]
    if chance is not None:
        lines.append(f'<path class="chance" d="M{_at(across(chance))} {TOP}V{y}"/>')
    names = _x_numbers(x_ticks, across, y)
    return _svg(y + BOTTOM, about, [*lines, *body, *names, _axis_names(x_name, "", y + BOTTOM)])


def _estimate(one, across, y):
    """Returns a point with its interval on a line."""
    inside = ""
    if all(map(math.isfinite, one.interval)):
        low, high = map(across, one.interval)
        inside += f'<path class="line" d="M{_at(low)} {_at(y)}H{_at(high)}"/>'
        inside += "".join(
            f'<path class="line" d="M{_at(end)} {_at(y - 4)}V{_at(y + 4)}"/>' for end in (low, high)
        )
    if math.isfinite(one.value):
        inside += _mark(one.run, across(one.value), y)
    return _group(one.run, inside)


def _mark(run, x, y):
    return mark(MARKS[plot_style.mark_number(run)], x, y)


def _group(run, inside):
    return f'<g class="run {_colour(run)}" data-run="{run}">{inside}</g>'


def _colour(run):
    """Returns the class of page.css for the colour of a run."""
    return f"c{run % len(plot_style.COLOURS)}"


def legend(groups: Iterable[Group], switches: bool = True) -> str:
    """Returns the names of recipes beside their marks."""
    entries = []
    for name, run, _ in groups:
        sign = (
            f'<svg class="sign {_colour(run)}" viewBox="-14 -7 28 14" aria-hidden="true">'
            f'<path class="line" d="M-12 0H12"/>{_mark(run, 0, 0)}</svg>'
        )
        if switches:
            entries.append(
                f'<label><input type="checkbox" checked data-shows="{run}">{sign}{text(name)}'
                "</label>"
            )
        else:
            entries.append(f"<span>{sign}{text(name)}</span>")
    return f'<p class="legend">{"".join(entries)}</p>'


def figure(content: str, caption: str) -> str:
    """Returns a figure with its caption."""
    return f"<figure>{content}<figcaption>{text(caption)}</figcaption></figure>"


def number_of_tick(value: float, every: Sequence[float]) -> str:
    """Formats a number of an axis with the digits that its neighbours need."""
    step = every[1] - every[0] if len(every) > 1 else 1
    return number(value, max(0, -math.floor(math.log10(step) + 1e-9)))


def _x_numbers(values, across, bottom):
    """Returns the numbers below a horizontal axis."""
    return [
        f'<text class="x" x="{_at(across(x))}" y="{_at(bottom + 20)}">{number_of_tick(x, values)}'
        "</text>"
        for x in values
    ]


def _axis_names(x_name, y_name, height):
    middle = (LEFT + WIDTH - RIGHT) / 2 if y_name else WIDTH / 2
    names = f'<text class="x name" x="{_at(middle)}" y="{height - 10}">{text(x_name)}</text>'
    if y_name:
        centre = (TOP + height - BOTTOM) / 2
        names += (
            f'<text class="x name" transform="translate(16 {_at(centre)}) rotate(-90)">'
            f"{text(y_name)}</text>"
        )
    return names


def _scale(values, start, end):
    """Returns the function that maps the first and the last value to `start` and `end`."""
    low, high = values[0], values[-1]
    return lambda value: start + (value - low) / (high - low) * (end - start)


def _at(value):
    return f"{value:.1f}".removesuffix(".0")


def _svg(height, about, parts):
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {_at(height)}" role="img" '
        f'aria-label="{text(about)}">{"".join(parts)}</svg>'
    )
