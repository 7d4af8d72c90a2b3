"""Permissions: which names in a saved recipe a program may import, run or read.

A recipe names components, functions and files, and was written by whoever made the run. Reading a
recipe imports nothing but zoo. Names other than zoo's own components are used only if the user
names them, too: in a config, on the command line, or by having trained the run
(`zoo.runs.known_runs`).

The names are kept for the process. A name is closed if a recipe that is read from JSON names it
(`zoo.configuration.from_json`), and open if the user names it, whoever else does. Training a recipe
opens its names as well, unless they were closed: the recipe may come from there.
"""

import re
from collections.abc import Iterable
from typing import Any

from zoo import component_registry
from zoo.errors import UserError
from zoo.trust import user_modules

_FUNCTION = re.compile(r"[\w.]+:[\w.]+")  # or the data set of a hub
_closed: dict[str, str] = {}  # {name in a recipe: its run or file}
_named: set[str] = set()  # by the user
_paths_are_open = False


def names(value: Any) -> set[str]:
    """Returns all paths and modules that the strings of a JSON value may name.

    A string names itself, its parts between commas, as two files of pairs are written, and what
    stands before a range.
    """
    found, todo = set(), [value]
    while todo:
        item = todo.pop()
        if isinstance(item, dict | list):
            todo += item.values() if isinstance(item, dict) else item
        elif isinstance(item, str):
            for part in (item, *item.split(",")):
                found |= {part, part.rpartition("[")[0] or part}
    return found


def name(names: Iterable[str]):
    """Opens names that the user names: components and functions as "module:name", and paths."""
    _named.update(names)


def name_unclosed(names: Iterable[str]):
    """Opens the names of a recipe in the program, except the ones that another recipe closed."""
    _named.update(name for name in names if name not in _closed)


def all_open(names: Iterable[str]) -> bool:
    """Whether every name is a component of Zoo, or is one that the user named or permitted."""
    return all(
        component_registry.component(name) is not None
        or stranger(name, path=not _FUNCTION.fullmatch(name) or name.startswith("hub:")) is None
        for name in names
    )


def close(names: Iterable[str], origin: Any):
    """Closes names in a recipe that may not be the user's; `origin` is told in messages."""
    _closed.update(dict.fromkeys(names, str(origin)))


def open_paths():
    """Allows recipes to name files anywhere."""
    global _paths_are_open
    _paths_are_open = True


def stranger(name: str, *, path: bool = False) -> str | None:
    """Returns the origin of the recipe that closed a name; None if the name may be used."""
    if name in _named or (path and _paths_are_open):
        return None
    return _closed.get(name)


def check_function(name: str):
    """Raises UserError for a function "module:name" that only another person's recipe names."""
    origin = stranger(name)
    if origin is not None:
        raise UserError(
            f"{origin} was not trained here by you, and needs the function {name}, which would "
            f"be run: look at it, and add --trust {name} if you trust it."
        )


def component(name: str) -> type:
    """Returns the class of a component name in a recipe.

    The class is one of zoo's (see `zoo.component_registry`), one of a module that the program
    has imported already, or one that the user names, whose module is then imported.
    """
    kind = component_registry.component(name) or component_registry.imported(name)
    if kind is not None:
        return kind
    if component_registry.in_zoo(name.partition(":")[0]):
        raise UserError(
            f"the saved recipe has the component {name}, which this version of zoo does not have: "
            "use the version that saved it."
        )
    if name not in _named:
        raise UserError(
            f"the saved recipe has the component {name}, which is not part of zoo, and whose "
            f"module would be run: look at it, and add --trust {name} if you trust it."
        )
    try:
        kind = user_modules.value(name) if ":" in name else None
    except user_modules.Missing as error:
        raise UserError(
            f"the saved recipe has the component {name}, which cannot be imported ({error}): put "
            "its class in a module of the working folder, or where else Python imports from."
        ) from error
    if not isinstance(kind, type):
        raise UserError(f"the saved recipe has the component {name}, which is not a class.")
    return kind
