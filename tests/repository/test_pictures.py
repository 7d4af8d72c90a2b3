"""Kept pictures have words for readers: titles, labels, and alternative texts of pages."""

import pathlib
import re
import struct
from xml.etree import ElementTree

import pytest

from records import pictures

ROOT = pathlib.Path(__file__).parents[2]
VECTOR = sorted(pictures.FOLDER.glob("*.svg"))
IMAGES = sorted(path for path in pictures.FOLDER.iterdir() if path not in VECTOR)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# Keys of results ("pairs:agreement-test"), names of runs and fields, addresses, missing numbers.
RAW = re.compile(r"\w:\w|\w_\w|[/\\{}<>\[\]]|\.(jsonl?|svg|png)\b|\b(nan|inf|None)\b|^$")
ALT = re.compile(r'!\[([^\]]*)\]\(([^)\s]+)\)|<img alt="([^"]*)" src="([^"]+)"')


def texts(picture: pathlib.Path) -> list[str]:
    """All texts of a picture in SVG, its title first where it has one."""
    root = ElementTree.parse(picture).getroot()
    kinds = ("title", "text")
    return [
        "".join(node.itertext()).strip()
        for kind in kinds
        for node in root.iter(f"{{http://www.w3.org/2000/svg}}{kind}")
    ]


def alternatives() -> list[tuple[pathlib.Path, str, str]]:
    """(page, alternative text, picture) of each picture of a page, badges left out."""
    matches = [(page, match) for page in PAGES for match in ALT.findall(page.read_text("utf-8"))]
    return [
        (page, match[0] or match[2], match[1] or match[3])
        for page, match in matches
        if "://" not in match[1]
    ]


@pytest.mark.parametrize("text", ["pairs:agreement-test", "a_ll_w256", "runs/mine", "nan", ""])
def test_a_raw_key_is_not_for_readers(text):
    assert RAW.search(text)


@pytest.mark.parametrize("picture", VECTOR, ids=lambda path: path.stem)
def test_a_picture_has_words_for_readers(picture):
    words = texts(picture)
    assert len(words) > 10
    assert [text for text in words if RAW.search(text)] == []


def test_the_title_of_agreement_says_what_is_judged_and_on_what():
    assert "agreement pairs, test" in texts(pictures.FOLDER / "agreement.svg")
    assert {*pictures.RECIPES} < {
        re.sub(", 8 seeds$", "", text) for text in texts(pictures.FOLDER / "agreement.svg")
    }


def test_both_colours_have_the_same_texts():
    dark = [path for path in VECTOR if path.stem.endswith("_dark")]
    assert dark
    for picture in dark:
        light = picture.with_stem(picture.stem.removesuffix("_dark"))
        assert texts(picture) == texts(light)
        assert picture.read_bytes() != light.read_bytes()


def test_images_of_both_colours_show_the_same_part():
    sizes = {path.stem: struct.unpack(">II", path.read_bytes()[16:24]) for path in IMAGES}
    assert {path.suffix for path in IMAGES} == {".png"}
    for name in {name.removesuffix("_dark") for name in sizes}:
        assert sizes[name] == sizes[f"{name}_dark"]


def test_pages_tell_in_words_what_a_picture_shows():
    texts_by_picture = {}
    for page, text, picture in alternatives():
        assert len(text.split()) > 5 and not RAW.search(text), page
        texts_by_picture.setdefault((page.parent / picture).resolve(), set()).add(text)
    assert all(len(texts) == 1 for texts in texts_by_picture.values())
    light = {path for path in (*VECTOR, *IMAGES) if not path.stem.endswith("_dark")}
    assert texts_by_picture.keys() == light


def test_a_page_in_the_dark_has_the_dark_picture():
    source = (
        r'<source media="\(prefers-color-scheme: dark\)" srcset="([^"]+)">\n<img alt="[^"]+" src='
    )
    for page in PAGES:
        text = page.read_text("utf-8")
        for dark, light in re.findall(source + r'"([^"]+)"', text):
            suffix = pathlib.PurePath(light).suffix
            assert dark == f"{light.removesuffix(suffix)}_dark{suffix}", page
            assert (page.parent / dark).is_file()
        assert text.count("<picture>") == len(re.findall(source, text))


def test_names_beside_points_keep_clear_of_points_and_names():
    """To the right if there is room; the second of three names has a point there, and goes left."""
    right, left = pictures.PLACES[:2]
    places = pictures.places(["Aa", "Bbbb", "Cc"], [0.0, 1.0, 1.1], [0.0, 1.0, 1.0])
    assert places == [right, left, right]
    # Four names at one height, too near for one side of each: above and below.
    places = pictures.places(["Aaaaaa"] * 4, [0.0, 0.5, 0.6, 10.0], [1.0, 1.0, 1.0, 0.0])
    assert len({*places}) > 2
