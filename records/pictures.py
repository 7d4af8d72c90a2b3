"""Makes the picture of README and docs: python -m records.pictures

`zoo compare --plot` draws the picture of agreement from records/french.jsonl. In the dark it has
the dark colours of a page (zoo/lab/comparison/page.css) in place of the light ones.
"""

import pathlib
import re

from records import cells
from records.rows import seeds
from zoo.lab.commands import command_table, program
from zoo.lab.comparison import page_report

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
    picture = dark(file.read_text(encoding="utf-8"))
    file.with_stem("agreement_dark").write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    program.program(draw)
