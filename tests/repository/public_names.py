"""Public names: what rooms export, recipes, passports, commands and exports are made of.

`python -m tests.repository.public_names` writes them to public_names.txt, so that a change of what
users write, call or read is seen in a diff.
"""

import dataclasses
import importlib
import inspect
import pathlib
import types
import typing
from collections.abc import Iterator

from zoo.lab.commands import command_table
from zoo.lab.evaluation import figures
from zoo.lab.options import Option

FILE = pathlib.Path(__file__).with_name("public_names.txt")
ROOMS = (
    *("zoo", "zoo.alignment", "zoo.attention", "zoo.configuration", "zoo.cores", "zoo.data"),
    *("zoo.decoding", "zoo.embeddings", "zoo.heads", "zoo.interop.linen", "zoo.interop.nnx"),
    *("zoo.lab.own_text", "zoo.lab.rescoring", "zoo.layers", "zoo.lexicon", "zoo.losses"),
    *("zoo.models", "zoo.optimizers", "zoo.priors", "zoo.row_updates"),
)


def exported(module: types.ModuleType) -> list[str]:
    """The names of `__all__`; without it, those that the module itself defines."""
    names = getattr(module, "__all__", None) or [
        name
        for name, value in vars(module).items()
        if getattr(value, "__module__", None) == module.__name__ and not name.startswith("_")
    ]
    return sorted(names)


def signature(function) -> str:
    """The parameters, with "=" behind those that have a default."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return "(...)"
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    words = [
        stars.get(parameter.kind, "")
        + parameter.name
        + ("" if parameter.default is inspect.Parameter.empty else "=")
        for parameter in parameters
        if parameter.name not in ("self", "cls")
    ]
    return f"({', '.join(words)})"


def members(kind: type, bases: set) -> Iterator[str]:
    """The public methods and properties of a class, but for those of the bases that are listed."""
    for name in sorted(dir(kind)):
        owner = next((base for base in kind.__mro__ if name in vars(base)), object)
        value = inspect.getattr_static(kind, name)
        if (
            name.startswith("_")
            or not owner.__module__.startswith("zoo")
            or owner in bases - {kind}
        ):
            continue
        if isinstance(value, property):
            yield f"    .{name}"
        elif callable(getattr(kind, name)) and not isinstance(value, type):
            yield f"    .{name}{signature(getattr(kind, name))}"


def library() -> Iterator[str]:
    """The exported names of each room."""
    modules = [importlib.import_module(room) for room in ROOMS]
    values = [getattr(module, name) for module in modules for name in exported(module)]
    classes = {value for value in values if isinstance(value, type)}
    for module in modules:
        yield f"\n{module.__name__}"
        for name in exported(module):
            value = getattr(module, name)
            if isinstance(value, type):
                bases = [base.__name__ for base in value.__mro__[1:] if base in classes]
                yield f"  {name}{signature(value)}{', as ' + bases[0] if bases else ''}"
                yield from members(value, classes)
            else:
                yield f"  {name}{signature(value) if callable(value) else ''}"


def options(table, command: str) -> Iterator[str]:
    """The options of a command and of those within it."""
    if isinstance(table, dict):
        for name, inner in table.items():
            yield from options(inner.options, f"{command} {name}")
        return
    yield f"  {command}"
    option: Option
    for option in table:
        yield f"    {option.usage}"


def fields(kind, known: set) -> Iterator[str]:
    """The fields of a dataclass of passports, and of those within it."""
    if dataclasses.is_dataclass(kind) and kind not in known:
        known.add(kind)
        yield f"  {kind.__name__}: {', '.join(f.name for f in dataclasses.fields(kind))}"
        for hint in typing.get_type_hints(kind).values():
            yield from fields(hint, known)
    for argument in typing.get_args(kind):
        yield from fields(argument, known)


def lines() -> Iterator[str]:
    """All public names, as lines."""
    yield "Public names, by python -m tests.repository.public_names"
    yield from library()
    yield "\ncommands"
    for name in command_table.COMMANDS:
        yield from options(command_table.load(name)[0], name)
    yield "\nfields of passports"
    known: set = set()
    for kind in vars(figures).values():
        if isinstance(kind, type) and kind.__module__ == figures.__name__:
            yield from fields(kind, known)


def text() -> str:
    """The file's contents."""
    return "\n".join(lines()) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
