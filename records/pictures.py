"""Makes the pictures of README: python -m records.pictures

`zoo compare --plot` draws the picture of agreement from records/french.jsonl. In the dark it has
the dark colours of a page (zoo/comparison/page.css) in place of the light ones.
"""

import pathlib
import re

from records import cells
from records.rows import seeds
from zoo.commands import command_table
from zoo.comparison import html_parts

FOLDER = pathlib.Path(__file__).parent.parent / "docs" / "pictures"
RECIPES = {"softmax": "a_bg_tiedw256", "log-linear with tags": "a_ll_w256"}
# Grounds, lines and grid of GitHub's own pages.
_DARK = {"#ffffff": "#0d1117", "#000000": "#e6edf3", "#e6e6e6": "#30363d"}


def dark(picture: str) -> str:
    """Returns a picture in SVG with the colours of the dark.

    Args:
      picture: in the light, as `zoo compare --plot` writes it.
    """
    light, night = (
        re.findall(r"--c\d: (#\w{6})", theme)
        for theme in re.findall(r":root \{(.*?)\}", html_parts.part("page.css"), re.DOTALL)[:2]
    )
    colours = {**dict(zip(light, night, strict=True)), **_DARK}
    changed = re.sub(r"#[0-9a-f]{6}", lambda found: colours.get(found[0], found[0]), picture)
    return changed.replace("</style>", f"text{{fill: {_DARK['#000000']}}}</style>", 1)


def main(folder: pathlib.Path = FOLDER):
    """Draws the pictures anew.

    Args:
      folder: where they are written.
    """
    file = folder / "agreement.svg"
    runs = [
        f"{cells.FOLDER / 'french.jsonl'}:{run}" for name in RECIPES.values() for run in seeds(name)
    ]
    labels = [word for label in RECIPES for word in ("--label", label)]
    command_table.main(["compare", *runs, "--plot", str(file), "--by", "distance", *labels])
    of_night = dark(file.read_text(encoding="utf-8"))
    file.with_stem("agreement_dark").write_text(of_night, encoding="utf-8")


if __name__ == "__main__":
    main()
