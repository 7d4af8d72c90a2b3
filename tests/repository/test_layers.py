"""The house: which room may use which, from the ground up, read from the source of zoo/."""

import ast
import collections
import pathlib

import pytest

ROOT = pathlib.Path(__file__).parents[2]
# A room may use those on the floors below it, and no other.
FLOORS = (
    ("errors", "lazy", "regular_files", "version"),
    ("strict_json", "temporary_files", "component_registry"),
    ("arrays", "trust", "alignment", "distributed"),
    ("losses", "lexicon", "configuration", "sources", "optimizers"),
    ("layers", "priors"),
    ("heads", "networks", "cores", "embeddings", "attention", "data"),
    ("models", "decoding"),
    ("experiment",),
    ("runs", "own_text"),
    ("evaluation", "adaptation", "interop"),
    ("training", "rescoring", "export"),
    ("papers", "comparison"),
    ("commands",),
    ("__main__",),
)
LEVEL = {room: level for level, rooms in enumerate(FLOORS) for room in rooms}
# The front door, which shows what is in the rooms, is on no floor.
DOORS = {"zoo"}
# Heads, cores and embeddings bind mathematics that stands below: plain functions of arrays.
WITHOUT_DATACLASSES = ("arrays", "losses")


def imported(tree: ast.Module) -> set[str]:
    """Dotted names of the modules that a module imports, wherever in it, those of types too."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "imports are absolute here"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def room_of(name: str) -> str:
    """The part of the house that a dotted name lies in: "heads" of zoo.heads.softmax, or "zoo"."""
    _, _, inside = name.partition(".")
    room = inside.partition(".")[0]
    there = (ROOT / "zoo" / room).is_dir() or (ROOT / "zoo" / f"{room}.py").is_file()
    return room if room and there else "zoo"


@pytest.fixture(scope="module")
def arrows():
    """{room: {room that it imports: the files that do}}."""
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    for path in sorted((ROOT / "zoo").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        room = room_of(".".join(part for part in parts if part != "__init__"))
        found[room]  # a room without arrows is a room
        for name in imported(ast.parse(path.read_text(encoding="utf-8"))):
            if name.partition(".")[0] == "zoo" and room_of(name) != room:
                found[room][room_of(name)].append("/".join(parts))
    return found


def test_imports_are_seen():
    source = (
        "import typing, zoo.heads\nfrom zoo import arrays\nfrom zoo.data.batches import Batches\n"
        "if typing.TYPE_CHECKING:\n    import zoo.training\nelse:\n    import zoo.cores\n"
        "def later():\n    from configs import micro_softmax\n"
    )
    assert imported(ast.parse(source)) == {
        *("typing", "zoo.heads", "zoo.arrays", "zoo.data.batches.Batches", "zoo.cores"),
        *("configs.micro_softmax", "zoo.training"),
    }
    rooms = ("zoo.arrays", "zoo.data.batches.Batches", "zoo.Experiment", "zoo")
    assert [*map(room_of, rooms)] == ["arrays", "data", "zoo", "zoo"]


def test_every_room_is_on_a_floor(arrows):
    assert arrows.keys() == {*LEVEL, *DOORS}


def test_arrows_go_down(arrows):
    up = {
        f"{room} uses {other}": files
        for room, below in arrows.items()
        for other, files in below.items()
        if room not in DOORS and LEVEL.get(other, len(FLOORS)) >= LEVEL[room]
    }
    assert not up


@pytest.mark.parametrize("room", WITHOUT_DATACLASSES)
def test_mathematics_is_plain_functions(room):
    for path in (ROOT / "zoo" / room).rglob("*.py"):
        names = imported(ast.parse(path.read_text(encoding="utf-8")))
        assert "dataclasses" not in names, path


def test_the_library_does_not_know_its_scripts_and_configs():
    scripts = {"configs", "train", "evaluate", "benchmarks", "examples", "tests"}
    for path in (ROOT / "zoo").rglob("*.py"):
        names = imported(ast.parse(path.read_text(encoding="utf-8")))
        assert not scripts & {name.partition(".")[0] for name in names}, path
