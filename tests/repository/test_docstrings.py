"""Public docstrings have one parameter an item, so that a page of the API can show each."""

import ast
import dataclasses
import importlib
import inspect
import pathlib
import re

import pytest

from zoo import heads, losses
from zoo.base import component_registry
from zoo.heads import sampled, softmax
from zoo.lab.training import tasks

# Rooms whose public names are held to it; the last are bases that whoever writes a head reads.
ROOMS = (losses, heads)
BASES = (sampled.SampledHead, softmax.WordVectors)
PUBLIC = {
    **{f"{room.__name__}.{name}": getattr(room, name) for room in ROOMS for name in room.__all__},
    **{f"{base.__module__}.{base.__name__}": base for base in BASES},
}
ZOO = pathlib.Path(losses.__file__).parents[1]
OWN = ("self", "cls")
# "name: text", or "several, names: see `function`", whose docstring explains them.
ITEM = re.compile(r"((?:\w+, )+\w+(?=: see)|\*{0,2}\w+): \S")


def items(docstring: str, section: str) -> dict[str, str]:
    """{name: text} of a section such as "Args"; a line that begins no item ends the reading."""
    found: dict[str, str] = {}
    lines = inspect.cleandoc(docstring).split("\n")
    if f"{section}:" not in lines:
        return found
    for line in lines[lines.index(f"{section}:") + 1 :]:
        if not line.startswith("  "):
            break
        if line.startswith("   "):
            found[[*found][-1]] += f" {line.strip()}"
        else:
            match = ITEM.match(line.strip())
            assert match, f"{line!r} begins with no name"
            text = line.strip()[match.end() - 1 :]
            found |= dict.fromkeys(match[1].split(", "), text)
    return found


# What the class of heads tells of its methods' parameters, so that no method does.
OF_METHODS = items(heads.Head.__doc__ or "", "Arguments of methods")


def check(name: str, docstring: str, section: str, parameters: list[str], others=()):
    """That all of the parameters are items, each its own, and nothing else is; nor does an item
    hold one of the others."""
    given = items(docstring, section)
    assert [*given] == parameters, f"{name}: {section} are {[*given]}"
    for item, text in given.items():
        names = {*parameters, *others}
        inside = [other for other in names if re.search(rf"\. {re.escape(other)}: ", text)]
        assert not inside, f"{name}: {', '.join(inside)} within the item of {item}"


def methods(kind: type) -> dict[str, object]:
    """The public methods that a class writes itself, as they were written."""
    own = {name: inspect.unwrap(method) for name, method in vars(kind).items() if callable(method)}
    return {
        name: method
        for name, method in own.items()
        if not name.startswith("_") and inspect.isfunction(method) and method.__doc__
    }


def parameters_of(function) -> list[str]:
    """The names of the parameters, as docstrings write them."""
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    parameters = inspect.signature(function).parameters.values()
    return [stars.get(one.kind, "") + one.name for one in parameters if one.name != "self"]


@pytest.mark.parametrize("name", PUBLIC)
def test_a_parameter_is_an_item(name):
    public = PUBLIC[name]
    if inspect.isfunction(public):
        check(name, public.__doc__, "Args", parameters_of(public))
        return
    own = vars(public).get("__annotations__", {})
    if dataclasses.is_dataclass(public):
        fields = [field.name for field in dataclasses.fields(public)]
        given = [*items(public.__doc__, "Attributes")]
        assert given == [field for field in fields if field in given or field in own]
        check(name, public.__doc__, "Attributes", given, fields)
    of_head = isinstance(public, type) and issubclass(public, heads.Head)
    shared = OF_METHODS if of_head else ()
    for method, function in methods(public).items():
        if items(function.__doc__, "Args"):
            parameters = [one for one in parameters_of(function) if one not in shared]
            check(f"{name}.{method}", function.__doc__, "Args", parameters)


def test_the_contract_documents_every_parameter():
    """Parameters that many methods take in the class, all others in the method, none in both."""
    for method, function in methods(heads.Head).items():
        others = [name for name in parameters_of(function) if name not in OF_METHODS]
        assert [*items(function.__doc__, "Args")] == others, method


def names_of(node: ast.FunctionDef | ast.ClassDef) -> list[str]:
    """The parameters of a function, or the fields of a class, as docstrings write them."""
    if isinstance(node, ast.ClassDef):
        return [part.target.id for part in node.body if isinstance(part, ast.AnnAssign)]
    given = node.args
    names = [one.arg for one in (*given.posonlyargs, *given.args) if one.arg not in OWN]
    names += [f"*{given.vararg.arg}"] if given.vararg else []
    names += [one.arg for one in given.kwonlyargs]
    return names + ([f"**{given.kwarg.arg}"] if given.kwarg else [])


@pytest.mark.parametrize("path", sorted(ZOO.rglob("*.py")), ids=lambda path: str(path.name))
def test_every_docstring_has_one_parameter_an_item(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            continue
        names = names_of(node)
        section = "Attributes" if isinstance(node, ast.ClassDef) else "Args"
        given = items(ast.get_docstring(node) or "", section)
        if section == "Args":  # attributes may be those of a base, or set when it is made
            assert [*given] == [name for name in names if name in given], (path, node.name)
        for item, text in given.items():
            inside = [other for other in names if re.search(rf"[.;] {re.escape(other)}: ", text)]
            assert not inside, f"{path}, {node.name}: {inside} within the item of {item}"


@pytest.mark.parametrize("package", component_registry.PACKAGES)
def test_every_field_of_a_component_is_an_attribute(package):
    module = importlib.import_module(package)
    for name in getattr(module, "__all__", dir(module)):
        kind = getattr(module, name)
        if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
            continue
        fields = {field.name for field in dataclasses.fields(kind)}
        given = {*items(vars(kind).get("__doc__") or "", "Attributes")}
        own = {*vars(kind).get("__annotations__", ())} & fields
        assert own <= given, f"{name} does not document {own - given}"
        assert given <= fields | {*dir(kind)}, f"{name} does not have {given - fields}"


# Modules that only export names of others.
DOORS = ("attention", "cores", "embeddings")


def exported_names() -> set[tuple[str, str]]:
    """(module, name) of all names that a package exports, directly or on first access."""
    found = set()
    for init in (*ZOO.rglob("__init__.py"), *(ZOO / f"{door}.py" for door in DOORS)):
        text = init.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.module:
                found |= {(node.module, alias.name) for alias in node.names}
        found |= {(module, name) for name, module in re.findall(r'"(\w+)": "(zoo[\w.]+)"', text)}
    # Bases that whoever writes a head or a task reads.
    return found | {(base.__module__, base.__name__) for base in (*BASES, tasks.Task)}


EXPORTED = exported_names()
# Modules that users import by themselves.
PUBLIC_MODULES = ("base.component_registry", "base.distributed", "experiment", "optimizers")
PUBLIC_MODULES += ("lab.adaptation", "lab.own_text", "lab.papers")
SHIPPED = "lab/export/standalone.py"  # which exports have as load.py
SECTIONS = re.compile(r"^(Args|Returns|Raises|Attributes|Yields):", re.MULTILINE)


def helpers_with_sections(module: str, tree: ast.Module, exported) -> list[str]:
    """The names of helpers, nested ones included, whose docstrings have a section."""
    found = []

    def visit(node, public):
        for part in getattr(node, "body", []):
            if not isinstance(part, ast.FunctionDef | ast.ClassDef):
                continue
            known = public or (node is tree and (module, part.name) in exported)
            known = known and not part.name.startswith("_")
            if not known and SECTIONS.search(ast.get_docstring(part) or ""):
                found.append(part.name)
            visit(part, known)

    visit(tree, False)
    return found


def test_helpers_have_one_sentence():
    for path in sorted(ZOO.rglob("*.py")):
        parts = path.relative_to(ZOO).with_suffix("").parts
        if ".".join(parts) not in PUBLIC_MODULES and not path.match(SHIPPED):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            assert not helpers_with_sections(".".join(("zoo", *parts)), tree, EXPORTED), path
