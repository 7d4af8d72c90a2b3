"""The size of the package: it may fall, and the bounds below fall with it."""

import pathlib

import zoo

FILES = sorted(pathlib.Path(zoo.__file__).parent.rglob("*.py"))
MOST_LINES = 49_788
MOST_FILES = 225
MOST_SHORT_FILES = 31
SHORT = 60


def test_the_package_does_not_grow():
    lines = [path.read_text(encoding="utf-8").count("\n") for path in FILES]
    assert sum(lines) <= MOST_LINES
    assert len(FILES) <= MOST_FILES
    assert sum(count < SHORT for count in lines) <= MOST_SHORT_FILES
