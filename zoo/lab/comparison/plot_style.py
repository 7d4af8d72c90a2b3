"""The style of all pictures: colours, marks, sizes, and one file in the format of its suffix.

Pictures are made for slides: text of 14 points on 10 inches, and runs differ by their marks or
order as well as by colour. The same figures give the same bytes.
"""

import contextlib
import math
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from zoo.base import lazy
from zoo.errors import UserError, printable
from zoo.lab.runs import output_files

with lazy.extra():
    import matplotlib
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.container import BarContainer, Container
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch
    from matplotlib.text import Text

# The light colours of page.css, c0 to c5: a contrast of 3 with white, and far apart
# with any colour vision. Marks are in the order of charts.py.
COLOURS = ("#0391ed", "#674208", "#17372e", "#c9598f", "#6c06eb", "#8e9912")
MARKERS = "os^DXP"
WIDTH, HEIGHT = 10.0, 5.6
NATS = "nats per token"
STYLE = pathlib.Path(__file__).with_name("pictures.mplstyle")
# Dates and versions that each format would have otherwise.
_UNDATED = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
SUFFIXES = tuple(f".{kind}" for kind in ("png", "pdf", "svg"))
# Letters of a legend on an inch.
_LETTERS = 10


def check_file(file: str | pathlib.Path):
    """Raises UserError unless a picture can be written to a file whose suffix is in `SUFFIXES`."""
    path = pathlib.Path(file)
    if path.suffix.lower() not in SUFFIXES:
        raise UserError(
            f"the picture {path} has a suffix that is not known: give one of {', '.join(SUFFIXES)}."
        )
    output_files.check(path, "the picture")


def colour(colour_number: int) -> str:
    """Returns the colour of a colour number; the colours repeat in turn."""
    return COLOURS[colour_number % len(COLOURS)]


def style(colour_number: int) -> dict[str, Any]:
    """Returns matplotlib's arguments, colour and marker, for the lines of a colour number."""
    return {"color": colour(colour_number), "marker": MARKERS[mark_index(colour_number)]}


def mark_index(colour_number: int) -> int:
    """Returns the index of a colour number's mark, which differs between recipes of one colour."""
    return (colour_number + colour_number // len(COLOURS)) % len(MARKERS)


@contextlib.contextmanager
def picture(
    file: str | pathlib.Path,
    titles: Mapping[str, int] | Sequence[str],
    x_label: str,
    y_label: str,
    note: str = "",
    width: float = WIDTH,
) -> Iterator[list[Axes]]:
    """Yields the axes of a picture, side by side, then adds the legend and writes the file;
    `titles` may map each title to its width."""
    with matplotlib.rc_context(matplotlib.rc_params_from_file(STYLE, use_default_template=False)):
        figure = Figure(figsize=(width, HEIGHT), dpi=150, layout="constrained")
        FigureCanvasAgg(figure)
        ratios = [*titles.values()] if isinstance(titles, Mapping) else None
        all_axes = figure.subplots(
            1, len(titles), sharey=True, squeeze=False, gridspec_kw={"width_ratios": ratios}
        )[0]
        for axes, title in zip(all_axes, titles, strict=True):
            axes.set(title=title, xlabel=x_label)
        all_axes[0].set_ylabel(y_label)
        yield [*all_axes]
        _add_legend(figure, all_axes, note, width)
        save(figure, file)


def _add_legend(figure, all_axes, note, width):
    """Adds a legend below the axes, which names each label once: recipes before lines of chance."""
    entries = [
        entry for axes in all_axes for entry in zip(*axes.get_legend_handles_labels(), strict=True)
    ]
    entries.sort(key=lambda entry: not isinstance(entry[0], Container))
    handles: dict[str, Any] = {}
    for handle, label in entries:
        if isinstance(handle, BarContainer):  # its first bar may be hatched
            handle = Patch(facecolor=handle.patches[0].get_facecolor()[:3])
        handles.setdefault(label, handle)
    if not handles:
        return
    room = max(1, int(_LETTERS * width / (max(map(len, handles)) + 8)))
    figure.legend(
        [*handles.values()],
        [*handles],
        loc="outside lower center",
        ncols=math.ceil(len(handles) / math.ceil(len(handles) / room)),
        title=note or None,
        title_fontsize=11,
    )


def save(figure: Figure, file: str | pathlib.Path):
    """Writes a picture in the format of its suffix, whole or not at all; first makes its texts
    plain, as `$` is not mathematics."""
    check_file(file)
    for text in figure.findobj(Text):  # names of runs and words, where "$" is not mathematics
        assert isinstance(text, Text)
        text.set_parse_math(False)
        text.set_text(printable(text.get_text()))
    kind = pathlib.Path(file).suffix.removeprefix(".").lower()
    output_files.write(
        file, lambda path: figure.savefig(path, format=kind, metadata=_UNDATED[kind]), "the picture"
    )


def group_names(values: Mapping[Any, Mapping[str, Any]]) -> list[str]:
    """Returns the names of all bars of {recipe: {name: bar}}, in order of first appearance."""
    return list(dict.fromkeys(group for by_group in values.values() for group in by_group))
