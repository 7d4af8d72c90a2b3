"""Names say what they hold: no pronouns, no bare participles, none that begins with "of_"."""

import ast
import pathlib
from collections.abc import Iterator

import pytest

ROOT = pathlib.Path(__file__).parents[2]
_WORDS = (
    "alike all_ alone any_ asked both changed drawn every few found given gone held here how "
    "kept known least left left_out made many mine most moved named new of old one ones other "
    "others ours own rest said same seen several shown some such taken taking that theirs them "
    "there these this those told wanted what where which whole why written"
)
VAGUE = {*_WORDS.split()}
# Folders, and the share of vague names that each of them may have.
LIMITS = {"zoo": 0.005, "tests": 0.02, "records": 0.02, "benchmarks": 0.02}
ROOMS = sorted(
    str(path.relative_to(ROOT))
    for folder in ("zoo", "tests")
    for path in {path.parent for path in (ROOT / folder).rglob("*.py")}
)


def names(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """(name, line) of the variables, arguments, functions and classes that a module binds."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name, node.lineno


def is_vague(name: str) -> bool:
    bare = name.strip("_").lower()
    return bare in VAGUE or bare.startswith("of_")


def count(paths) -> tuple[int, list[str]]:
    """The number of names in some modules, and file, line and name of each vague one."""
    total, vague_names = 0, []
    for path in paths:
        for name, line in names(ast.parse(path.read_text(encoding="utf-8"))):
            total += 1
            if is_vague(name):
                vague_names.append(f"{path}:{line}: {name}")
    return total, vague_names


def check(paths, limit: float):
    total, vague_names = count(paths)
    lines = "\n".join(vague_names)
    assert len(vague_names) <= limit * total, f"{len(vague_names)} of {total} names:\n{lines}"


def test_pronouns_participles_and_of_are_counted_wherever_a_name_is_bound(tmp_path):
    path = tmp_path / "module.py"
    path.write_text(
        "class Shown:\n"
        "    def of_runs(self, runs, *, given=None):\n"
        "        _found, curves = [one for one in runs], given\n"
        "        return found(curves, kept=_found, offset=of(runs))\n"
    )
    total, vague_names = count([path])
    assert total == 8  # self, runs and curves beside the five
    assert vague_names == [
        f"{path}:{line}: {name}"
        for line, name in [(1, "Shown"), (2, "of_runs"), (2, "given"), (3, "_found"), (3, "one")]
    ]


@pytest.mark.parametrize("folder", LIMITS)
def test_vague_names_are_rare(folder):
    check(sorted((ROOT / folder).rglob("*.py")), LIMITS[folder])


@pytest.mark.parametrize("room", ROOMS)
def test_vague_names_are_rare_in_every_room(room):
    check(sorted((ROOT / room).glob("*.py")), 0.02)
