"""Makes the pictures of README and docs: python -m records.pictures

`zoo compare --plot` draws the picture of agreement from records/french.jsonl; the picture of eleven
treebanks comes from records/treebanks.json. In the dark they have the dark colours of a page
(zoo/lab/comparison/page.css) in place of the light ones.
"""

import pathlib
import re
from collections.abc import Sequence

import numpy as np

from records import cells, treebank_tables
from records.rows import seeds
from zoo.lab.commands import command_table, program
from zoo.lab.comparison import page_report, plot_style

FOLDER = pathlib.Path(__file__).parent.parent / "docs" / "pictures"
RECIPES = {"softmax": "a_bg_tiedw256", "log-linear with tags": "a_ll_w256"}
# Grounds, lines and grid of GitHub's own pages.
_DARK = {"#ffffff": "#0d1117", "#000000": "#e6edf3", "#e6e6e6": "#30363d"}


def dark(picture: str) -> str:
    """Returns a picture in SVG with the colours of the dark.

    Args:
      picture: in the light, as `zoo compare --plot` writes it.
    """
    style = page_report.read_resource("page.css")
    light, night = (
        re.findall(r"--c\d: (#\w{6})", theme)
        for theme in re.findall(r":root \{(.*?)\}", style, re.DOTALL)[:2]
    )
    colours = {**dict(zip(light, night, strict=True)), **_DARK}
    dark_picture = re.sub(r"#[0-9a-f]{6}", lambda match: colours.get(match[0], match[0]), picture)
    return dark_picture.replace("</style>", f"text{{fill: {_DARK['#000000']}}}</style>", 1)


def draw(folder: pathlib.Path = FOLDER):
    """Draws the pictures anew.

    Args:
      folder: where they are written.
    """
    file = folder / "agreement.svg"
    runs = [
        f"{cells.FOLDER / 'french.jsonl'}:{run}"
        for name in RECIPES.values()
        for run in seeds(name, 8)
    ]
    labels = [word for label in RECIPES for word in ("--label", label)]
    command_table.main(["compare", *runs, "--plot", str(file), "--by", "distance", *labels])
    draw_treebanks(folder / "treebanks.svg")
    for light in (file, folder / "treebanks.svg"):
        picture = dark(light.read_text(encoding="utf-8"))
        light.with_stem(f"{light.stem}_dark").write_text(picture, encoding="utf-8")


def draw_treebanks(file: pathlib.Path):
    """Draws the gain of the guesser over the tied softmax by what may explain it.

    Args:
      file: of the picture in the light.
    """
    treebanks = treebank_tables.read_treebanks()
    gains = [
        treebank_tables.gain(name, "tags", "softmax", treebank_tables.TRAINED) for name in treebanks
    ]
    label, style = "nats a token below the tied softmax", plot_style.style(0)
    with plot_style.picture(file, ["", "log-linear, guesser", ""], "", label, width=13) as panels:
        for axes, (title, value) in zip(panels, treebank_tables.PROPERTIES.items(), strict=True):
            axes.set_xlabel(title)
            axes.axhline(0, color="0.5", linewidth=1)
            axes.margins(x=0.25)
            xs = [value(figures) for figures in treebanks.values()]
            ys = [gain.nats for gain in gains]
            ends = np.transpose([gain.interval for gain in gains])
            axes.errorbar(xs, ys, np.abs(ends - ys), linestyle="none", capsize=3, **style)
            names = [*map(treebank_tables.language, treebanks)]
            for name, x, y, place in zip(names, xs, ys, places(names, xs, ys), strict=True):
                offset, side = place
                options = {"textcoords": "offset points", "ha": side, "fontsize": 10}
                axes.annotate(name, (x, y), offset, **options)


# Beside a point: offset in points, and the side of the name that is next to the point.
PLACES = (((6, 3), "left"), ((-6, 3), "right"), ((6, -12), "left"), ((-6, -12), "right"))
# Of a letter and a line, in parts of a panel.
LETTER, LINE = 0.026, 0.035


def places(
    names: Sequence[str], xs: Sequence[float], ys: Sequence[float]
) -> list[tuple[tuple[float, float], str]]:
    """Finds a place of `PLACES` for the name of each point, where it covers least.

    Args:
      names: of the points.
      xs: of the points, over two thirds of the panel's width.
      ys: of the points, over most of its height.
    """
    points = np.array([np.array(xs) / np.ptp(xs) / 1.5, np.array(ys) / np.ptp(ys) / 1.1]).T
    boxes = [(x - 0.01, y - 0.04, x + 0.01, y + 0.04) for x, y in points]
    chosen = []
    for name, (x, y) in zip(names, points, strict=True):
        candidates = []
        for (across, up), _side in PLACES:
            left = x + (0.02 if across > 0 else -0.02 - LETTER * len(name))
            bottom = y + (0.005 if up > 0 else -0.005 - LINE)
            box = (left, bottom, left + LETTER * len(name), bottom + LINE)
            overlaps = sum(
                box[0] < right and low < box[2] and box[1] < top and foot < box[3]
                for low, foot, right, top in boxes
            )
            candidates.append((overlaps, len(candidates), box))
        _, place, box = min(candidates)
        boxes.append(box)
        chosen.append(PLACES[place])
    return chosen


if __name__ == "__main__":
    program.program(draw)
