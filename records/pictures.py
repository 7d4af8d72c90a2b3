"""Makes the pictures of README and docs: python -m records.pictures [--report CHROMIUM]

`zoo compare --plot` draws the picture of agreement from records/french.jsonl. In the dark it has
the dark colours of a page (zoo/lab/comparison/page.css) in place of the light ones.
--report photographs a page of models/french, with a word pointed at, by a Chromium.
"""

import argparse
import pathlib
import re
import subprocess
import tempfile

from records import cells
from records.rows import seeds
from zoo.lab.commands import command_table
from zoo.lab.comparison import page_report

FOLDER = pathlib.Path(__file__).parent.parent / "docs" / "pictures"
RECIPES = {"softmax": "a_bg_tiedw256", "log-linear with tags": "a_ll_w256"}
SENTENCES = (
    "Les enfants du village jouent dans la rue .",
    "La maison de mes parents est très belle .",
    "Le président de la république est élu pour cinq ans .",
    "En 1998 , la ville a été reconstruite par les habitants .",
    "Les relations entre les deux pays sont très difficiles .",
    "Elle est née à Paris et son père était médecin .",
)
# Leaves the text alone on the page, and points at one of its words.
_POINT = """<script>
for (const part of document.querySelectorAll("body *")) {
  if (!part.closest(".words") && !part.querySelector(".words")) part.style.display = "none";
}
for (const word of document.querySelectorAll(".text .w")) {
  if (word.textContent === "née") word.dispatchEvent(new Event("pointerover", {bubbles: true}));
}
</script>"""
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


def report(chromium: str):
    """Photographs the text of a page that `zoo compare --page` writes, in light and dark.

    Args:
      chromium: the browser's program.
    """
    with tempfile.TemporaryDirectory() as name:
        page, text = pathlib.Path(name, "page.html"), pathlib.Path(name, "text.txt")
        text.write_text("\n".join(SENTENCES) + "\n", encoding="utf-8")
        model = str(FOLDER.parents[1] / "models" / "french")
        command_table.main(["compare", model, "--page", str(page), "--text", str(text)])
        content = page.read_text(encoding="utf-8") + _POINT
        # A page's policy allows its own script alone.
        page.write_text(re.sub("<meta http-equiv[^>]*>", "", content), encoding="utf-8")
        for suffix, scheme in (("", 1), ("_dark", 0)):
            subprocess.run(
                [
                    *(chromium, "--headless", "--no-sandbox", "--hide-scrollbars"),
                    f"--blink-settings=preferredColorScheme={scheme}",
                    "--window-size=1000,510",
                    f"--screenshot={FOLDER / f'report{suffix}.png'}",
                    page.as_uri(),
                ],
                check=True,
            )


def draw(folder: pathlib.Path = FOLDER):
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
    picture = dark(file.read_text(encoding="utf-8"))
    file.with_stem("agreement_dark").write_text(picture, encoding="utf-8")


def main():
    """Runs the program."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--report", metavar="CHROMIUM", help="photographs a page, too")
    chromium = parser.parse_args().report
    draw()
    if chromium:
        report(chromium)


if __name__ == "__main__":
    main()
