"""The size of the repository: in lines that do something, which may fall, and the bound with them,
and in bytes of records and models, which every clone fetches."""

import ast
import pathlib

import pytest

ROOT = pathlib.Path(__file__).parents[2]
MOST_LINES = 42_230
MOST_BYTES = 60_000_000


def executable_lines(path: pathlib.Path) -> int:
    """The number of lines of a module without docstrings, comments and blank lines."""
    text = path.read_text(encoding="utf-8")
    lines = [line.strip() for line in text.split("\n")]
    numbers = {at for at, line in enumerate(lines, 1) if line and not line.startswith("#")}
    for node in ast.walk(ast.parse(text)):
        kinds = ast.Module | ast.ClassDef | ast.FunctionDef
        if isinstance(node, kinds) and ast.get_docstring(node, clean=False) is not None:
            numbers -= {*range(node.body[0].lineno, node.body[0].end_lineno + 1)}
    return len(numbers)


def repository() -> list[pathlib.Path]:
    """All modules but the tests, what is built here, and the copies in exported models."""
    skipped = {"tests", "models", "runs", "build", "site", "dist"}
    return [
        path
        for folder in ROOT.iterdir()
        if folder.name not in skipped and not folder.name.startswith(".")
        for path in (sorted(folder.rglob("*.py")) if folder.is_dir() else [folder])
        if path.suffix == ".py"
    ]


def test_docstrings_comments_and_blank_lines_are_not_counted(tmp_path):
    path = tmp_path / "module.py"
    text = (
        '"""A module."""\n\n# Why.\nX = """a\nb"""\n\n\ndef f():\n    """Does."""\n    return (\n'
    )
    path.write_text(f"{text}        1\n    )\n")
    assert executable_lines(path) == 6


@pytest.mark.parametrize(
    "folder", ["zoo/lab", "zoo/heads", "records", "benchmarks", "configs", "docs"]
)
def test_every_folder_is_counted(folder):
    assert any((ROOT / folder) in path.parents for path in repository())


def test_the_repository_does_not_grow():
    lines = sum(map(executable_lines, repository()))
    assert lines <= MOST_LINES, f"{lines - MOST_LINES} lines more: find what can go"


def test_records_and_models_stay_small():
    files = [path for name in ("records", "models") for path in (ROOT / name).rglob("*")]
    size = sum(path.stat().st_size for path in files if path.is_file() and path.suffix != ".pyc")
    assert 20_000_000 < size <= MOST_BYTES, f"{size:,} bytes: keep large files elsewhere"
