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
IMPLICIT = ("self", "cls")
# "name: text", or "several, names: see `function`", whose docstring explains them.
ITEM = re.compile(r"((?:\w+, )+\w+(?=: see)|\*{0,2}\w+): \S")


def items(docstring: str, section: str) -> dict[str, str]:
    """{name: text} of a section such as "Args"; a line that begins no item ends the reading."""
    text_by_name: dict[str, str] = {}
    lines = inspect.cleandoc(docstring).split("\n")
    if f"{section}:" not in lines:
        return text_by_name
    for line in lines[lines.index(f"{section}:") + 1 :]:
        if not line.startswith("  "):
            break
        if line.startswith("   "):
            text_by_name[[*text_by_name][-1]] += f" {line.strip()}"
        else:
            match = ITEM.match(line.strip())
            assert match, f"{line!r} begins with no name"
            text = line.strip()[match.end() - 1 :]
            text_by_name |= dict.fromkeys(match[1].split(", "), text)
    return text_by_name


# What the class of heads tells of its methods' parameters, so that no method does.
METHOD_PARAMETERS = items(heads.Head.__doc__ or "", "Arguments of methods")


def check(name: str, docstring: str, section: str, parameters: list[str], further=()):
    """That all of the parameters are items, each its own, and nothing else is; nor does an item
    hold one of the others."""
    text_by_name = items(docstring, section)
    assert [*text_by_name] == parameters, f"{name}: {section} are {[*text_by_name]}"
    for item, text in text_by_name.items():
        names = {*parameters, *further}
        inside = [
            parameter for parameter in names if re.search(rf"\. {re.escape(parameter)}: ", text)
        ]
        assert not inside, f"{name}: {', '.join(inside)} within the item of {item}"


def methods(kind: type) -> dict[str, object]:
    """The public methods that a class writes itself, as they were written."""
    callables = {
        name: inspect.unwrap(method) for name, method in vars(kind).items() if callable(method)
    }
    return {
        name: method
        for name, method in callables.items()
        if not name.startswith("_") and inspect.isfunction(method) and method.__doc__
    }


def parameters_of(function) -> list[str]:
    """The names of the parameters, as docstrings write them."""
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    parameters = inspect.signature(function).parameters.values()
    return [
        stars.get(parameter.kind, "") + parameter.name
        for parameter in parameters
        if parameter.name != "self"
    ]


@pytest.mark.parametrize("name", PUBLIC)
def test_a_parameter_is_an_item(name):
    public = PUBLIC[name]
    if inspect.isfunction(public):
        check(name, public.__doc__, "Args", parameters_of(public))
        return
    annotations = vars(public).get("__annotations__", {})
    if dataclasses.is_dataclass(public):
        fields = [field.name for field in dataclasses.fields(public)]
        attributes = [*items(public.__doc__, "Attributes")]
        assert attributes == [
            field for field in fields if field in attributes or field in annotations
        ]
        check(name, public.__doc__, "Attributes", attributes, fields)
    is_head = isinstance(public, type) and issubclass(public, heads.Head)
    shared = METHOD_PARAMETERS if is_head else ()
    for method, function in methods(public).items():
        if items(function.__doc__, "Args"):
            parameters = [
                parameter_name
                for parameter_name in parameters_of(function)
                if parameter_name not in shared
            ]
            check(f"{name}.{method}", function.__doc__, "Args", parameters)


def test_the_contract_documents_every_parameter():
    """Parameters that many methods take in the class, all others in the method, none in both."""
    for method, function in methods(heads.Head).items():
        own_parameters = [name for name in parameters_of(function) if name not in METHOD_PARAMETERS]
        assert [*items(function.__doc__, "Args")] == own_parameters, method


def names_of(node: ast.FunctionDef | ast.ClassDef) -> list[str]:
    """The parameters of a function, or the fields of a class, as docstrings write them."""
    if isinstance(node, ast.ClassDef):
        return [part.target.id for part in node.body if isinstance(part, ast.AnnAssign)]
    arguments = node.args
    names = [
        argument.arg
        for argument in (*arguments.posonlyargs, *arguments.args)
        if argument.arg not in IMPLICIT
    ]
    names += [f"*{arguments.vararg.arg}"] if arguments.vararg else []
    names += [argument.arg for argument in arguments.kwonlyargs]
    return names + ([f"**{arguments.kwarg.arg}"] if arguments.kwarg else [])


@pytest.mark.parametrize("path", sorted(ZOO.rglob("*.py")), ids=lambda path: str(path.name))
def test_every_docstring_has_one_parameter_an_item(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            continue
        names = names_of(node)
        section = "Attributes" if isinstance(node, ast.ClassDef) else "Args"
        text_by_name = items(ast.get_docstring(node) or "", section)
        if section == "Args":  # attributes may be those of a base, or set when it is made
            assert [*text_by_name] == [name for name in names if name in text_by_name], (
                path,
                node.name,
            )
        for item, text in text_by_name.items():
            inside = [
                parameter
                for parameter in names
                if re.search(rf"[.;] {re.escape(parameter)}: ", text)
            ]
            assert not inside, f"{path}, {node.name}: {inside} within the item of {item}"


@pytest.mark.parametrize("package", component_registry.PACKAGES)
def test_every_field_of_a_component_is_an_attribute(package):
    module = importlib.import_module(package)
    for name in getattr(module, "__all__", dir(module)):
        kind = getattr(module, name)
        if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
            continue
        fields = {field.name for field in dataclasses.fields(kind)}
        attributes = {*items(vars(kind).get("__doc__") or "", "Attributes")}
        own_fields = {*vars(kind).get("__annotations__", ())} & fields
        assert own_fields <= attributes, f"{name} does not document {own_fields - attributes}"
        assert attributes <= fields | {*dir(kind)}, f"{name} does not have {attributes - fields}"


# Modules that only export names of others.
DOORS = ("attention", "cores", "embeddings")


def exported_names() -> set[tuple[str, str]]:
    """(module, name) of all names that a package exports, directly or on first access."""
    exports = set()
    inits = (*ZOO.rglob("__init__.py"), *ZOO.rglob("__init__.pyi"))
    for init in (*inits, *(ZOO / f"{door}.py" for door in DOORS)):
        for node in ast.walk(ast.parse(init.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                exports |= {(node.module, alias.name) for alias in node.names}
    # Bases that whoever writes a head or a task reads.
    return exports | {(base.__module__, base.__name__) for base in (*BASES, tasks.Task)}


EXPORTED = exported_names()
# Modules that users import by themselves.
PUBLIC_MODULES = (
    "base.component_registry",
    "base.distributed",
    "experiment",
    "optimizers",
    "row_updates",
)
PUBLIC_MODULES += ("lab.adaptation", "lab.own_text", "lab.papers")
SHIPPED = "lab/export/standalone.py"  # which exports have as load.py
SECTIONS = re.compile(r"^(Args|Returns|Raises|Attributes|Yields):", re.MULTILINE)


def helpers_with_sections(module: str, tree: ast.Module, exported) -> list[str]:
    """The names of helpers, nested ones included, whose docstrings have a section."""
    helpers = []

    def visit(node, public):
        for part in getattr(node, "body", []):
            if not isinstance(part, ast.FunctionDef | ast.ClassDef):
                continue
            is_exported = public or (node is tree and (module, part.name) in exported)
            is_exported = is_exported and not part.name.startswith("_")
            if not is_exported and SECTIONS.search(ast.get_docstring(part) or ""):
                helpers.append(part.name)
            visit(part, is_exported)

    visit(tree, False)
    return helpers


def test_helpers_have_one_sentence():
    for path in sorted(ZOO.rglob("*.py")):
        parts = path.relative_to(ZOO).with_suffix("").parts
        if ".".join(parts) not in PUBLIC_MODULES and not path.match(SHIPPED):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            assert not helpers_with_sections(".".join(("zoo", *parts)), tree, EXPORTED), path
