"""Arrows go down: what a module of zoo/ imports, read from its source."""

import ast
import collections
import graphlib
import pathlib

import pytest

ROOT = pathlib.Path(__file__).parent.parent
COMPONENTS = ("heads", "cores", "embeddings", "priors", "lexicon")
ABOVE_COMPONENTS = ("models", "optimizers", "experiment", "workdir", "evaluation", "training")


def imported(tree: ast.Module) -> set[str]:
    """Dotted names of the modules that a module imports when it runs, wherever in it."""
    names = set()
    todo = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "imports are absolute here"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            todo += node.orelse  # for the reader's eyes only
        else:
            todo += ast.iter_child_nodes(node)
    return names


def room_of(name: str) -> str:
    """The part of the house that a dotted name lies in: "heads" of zoo.losses.softmax, or "zoo"."""
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
        for name in imported(ast.parse(path.read_text(encoding="utf-8"))):
            if name.partition(".")[0] == "zoo":
                found[room][room_of(name)].append(path.name)
    return {
        room: {other: files for other, files in below.items() if other != room}
        for room, below in found.items()
    }


def test_imports_are_seen():
    source = (
        "import typing, zoo.heads\nfrom zoo import keys\nfrom zoo.sources.text import Text\n"
        "if typing.TYPE_CHECKING:\n    import zoo.training\nelse:\n    import zoo.cores\n"
        "def later():\n    from configs import micro_softmax\n"
    )
    assert imported(ast.parse(source)) == {
        *("typing", "zoo.heads", "zoo.arrays.keys", "zoo.sources.text.Text", "zoo.cores"),
        "configs.micro_softmax",
    }
    rooms = ("zoo.arrays.keys", "zoo.sources.text.Text", "zoo.Experiment", "zoo")
    assert [*map(room_of, rooms)] == ["keys", "data", "zoo", "zoo"]


def test_the_house_is_what_this_test_takes_it_for(arrows):
    assert {*COMPONENTS, *ABOVE_COMPONENTS, "data"} <= arrows.keys()
    assert {"heads", "cores", "embeddings"} <= arrows["models"].keys()
    assert "evaluation" in arrows["training"]


@pytest.mark.parametrize("room", COMPONENTS)
def test_components_know_nothing_above_them(arrows, room):
    assert not {name: arrows[room].get(name) for name in ABOVE_COMPONENTS if name in arrows[room]}


@pytest.mark.parametrize("room", ["models", "data", "decoding", "experiment", "evaluation"])
def test_nothing_that_is_trained_or_judged_knows_the_trainer(arrows, room):
    assert "training" not in arrows[room], arrows[room]["training"]


def test_no_two_rooms_know_each_other(arrows):
    graphlib.TopologicalSorter(arrows).prepare()  # CycleError, with the rooms of the cycle


def test_the_library_does_not_know_its_scripts_and_configs():
    scripts = {"configs", "train", "evaluate", "benchmarks", "tests"}
    for path in (ROOT / "zoo").rglob("*.py"):
        names = imported(ast.parse(path.read_text(encoding="utf-8")))
        assert not scripts & {name.partition(".")[0] for name in names}, path
