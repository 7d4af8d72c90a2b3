"""The house: the rooms of zoo/ on their floors, and the map of it in CONTRIBUTING.

A room is a package of the library or of the lab, or a module beside them. It uses only rooms on
the floors below its own. `python -m tests.repository.house` writes the map.
"""

import ast
import collections
import pathlib
import re

ROOT = pathlib.Path(__file__).parents[2]
LIBRARY = (
    ("errors", "version"),
    ("base",),
    ("alignment", "configuration", "lexicon", "losses", "optimizers"),
    ("layers", "row_updates", "sources"),
    ("attention", "cores", "embeddings", "priors"),
    ("data", "heads"),
    ("decoding", "models"),
    ("experiment", "interop"),
)
LAB = (
    ("lab.options", "lab.papers", "lab.table"),
    ("lab.runs",),
    ("lab.adaptation", "lab.evaluation"),
    ("lab.export", "lab.rescoring", "lab.training"),
    ("lab.comparison",),
    ("lab.micro_report", "lab.own_text"),
    ("lab.commands",),
)
# The doors, on no floor: names of both houses on first access, and `python -m zoo`.
DOORS = ("zoo", "__main__")
FLOORS = {room: floor for floor, rooms in enumerate((*LIBRARY, *LAB), start=1) for room in rooms}
MAP = re.compile(
    r"(?<=<!-- map, by python -m tests\.repository\.house -->\n).*?(?=<!-- end -->)", re.DOTALL
)


def imported_names(tree: ast.Module) -> set[str]:
    """Dotted names that a module imports, wherever in it, those of types too."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "imports are absolute here"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def room(name: str) -> str:
    """The room of a dotted name: "heads" of zoo.heads.softmax, "lab.runs" of zoo.lab.runs.hub."""
    parts = name.split(".")[1:]
    parts = parts[: 2 if parts[:1] == ["lab"] else 1]
    path = ROOT.joinpath("zoo", *parts)
    is_room = parts and (path.is_dir() or path.with_suffix(".py").is_file())
    return ".".join(parts) if is_room else "zoo"


def arrows() -> dict[str, dict[str, list[str]]]:
    """{room: {room that it imports: the modules that do}}."""
    modules_by_arrow: dict[str, dict[str, list[str]]] = {}
    zoo = ROOT / "zoo"
    # A stub names what its package imports on first access.
    for path in sorted([*zoo.rglob("*.py"), *zoo.rglob("*.pyi")]):
        parts = path.relative_to(ROOT).with_suffix("").parts
        source = room(".".join(part for part in parts if part != "__init__"))
        modules_by_target = modules_by_arrow.setdefault(source, collections.defaultdict(list))
        for name in imported_names(ast.parse(path.read_text(encoding="utf-8"))):
            target = room(name)
            if name.partition(".")[0] == "zoo" and target != source:
                modules_by_target[target].append("/".join(parts))
    return modules_by_arrow


def drawn_map() -> str:
    """Two tables of rooms, from the bottom up, each with the first sentence of its docstring."""
    tables = []
    for title, floors in (("the library", LIBRARY), ("the lab", LAB)):
        rows = [f"| floor | {title} | contents |", "| --- | --- | --- |"]
        for name in (name for rooms in floors for name in rooms):
            path = ROOT.joinpath("zoo", *name.split("."))
            path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
            docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
            sentence = re.split(r"(?<=\.)\s", " ".join(docstring.split()))[0]
            place = path.relative_to(ROOT).as_posix().removesuffix("/__init__.py")
            rows.append(f"| {FLOORS[name]} | `{place}` | {sentence} |")
        tables.append("\n".join(rows) + "\n")
    return "\n".join(tables)


def main() -> None:
    page = ROOT / "CONTRIBUTING.md"
    page.write_text(MAP.sub(lambda _: drawn_map(), page.read_text("utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
