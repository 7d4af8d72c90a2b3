"""The two houses: which room may use which, read from the source of zoo/."""

import ast

import pytest

from tests.repository import house

# Heads, cores and embeddings bind mathematics that stands below: plain functions of arrays.
WITHOUT_DATACLASSES = ("base/arrays", "losses")


@pytest.fixture(scope="module")
def arrows():
    return house.arrows()


def test_imports_are_seen():
    source = (
        "import typing, zoo.heads\nfrom zoo import base\nfrom zoo.data.batches import Batches\n"
        "if typing.TYPE_CHECKING:\n    import zoo.lab.training\nelse:\n    import zoo.cores\n"
        "def later():\n    from configs import micro_softmax\n"
    )
    assert house.imported_names(ast.parse(source)) == {
        *("typing", "zoo.heads", "zoo.base", "zoo.data.batches.Batches", "zoo.cores"),
        *("configs.micro_softmax", "zoo.lab.training"),
    }
    names = ("zoo.base.arrays", "zoo.data.batches.Batches", "zoo.lab.runs.hub", "zoo.Experiment")
    assert [*map(house.room, names)] == ["base", "data", "lab.runs", "zoo"]


def test_every_room_is_on_a_floor(arrows):
    assert arrows.keys() == {*house.FLOORS, *house.DOORS, "lab"}


def test_arrows_go_down(arrows):
    up = {
        f"{room} uses {target}": modules
        for room, modules_by_target in arrows.items()
        for target, modules in modules_by_target.items()
        if room not in house.DOORS
        and house.FLOORS.get(target, len(house.FLOORS)) >= house.FLOORS[room]
    }
    assert not up


def test_the_library_does_not_use_the_lab(arrows):
    """But for the doors, which import the lab on first access."""
    users = {room for room, targets in arrows.items() if any(t.startswith("lab") for t in targets)}
    assert {room for room in users if not room.startswith("lab.")} == {*house.DOORS}


def test_the_map_shows_the_house():
    """python -m tests.repository.house writes it."""
    text = (house.ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (page_map,) = house.MAP.findall(text)
    assert page_map == house.drawn_map()


@pytest.mark.parametrize("room", WITHOUT_DATACLASSES)
def test_mathematics_is_plain_functions(room):
    for path in (house.ROOT / "zoo" / room).rglob("*.py"):
        names = house.imported_names(ast.parse(path.read_text(encoding="utf-8")))
        assert "dataclasses" not in names, path


def test_the_library_does_not_know_its_scripts_and_configs():
    scripts = {"configs", "train", "evaluate", "benchmarks", "examples", "tests"}
    for path in (house.ROOT / "zoo").rglob("*.py"):
        names = house.imported_names(ast.parse(path.read_text(encoding="utf-8")))
        assert not scripts & {name.partition(".")[0] for name in names}, path
