"""Permissions: which names in a saved recipe a program may import, run or read.

A recipe names components, functions and files, and was written by whoever made the run. Reading a
recipe imports nothing but zoo. Names other than zoo's own components are used only if the user
names them, too: in a config, on the command line, or by having trained the run
(`zoo.lab.runs.own_runs.write_note`).

The names are kept for the process. A name is closed if a recipe of somebody else names it, however
it is reached, and open if the user names it, whoever else does. `configuration.from_json` closes
the names of every recipe that it reads. Training a recipe opens its names as well, unless a recipe
that was read closed them: the recipe may come from there.
"""

import pathlib
import re
from collections.abc import Iterable
from typing import Any

from zoo.base import component_registry
from zoo.base.trust import user_modules
from zoo.errors import UserError, shortened

_FUNCTION = re.compile(r"[\w.]+:[\w.]+")  # or the data set of a hub
_closed: dict[str, str] = {}  # {name in a recipe: the folder of its run}
_user_names: set[str] = set()  # by the user
_paths_are_open = False


def names_of(text: str) -> set[str]:
    """Returns the paths and modules that a string may name: itself, and itself without a range."""
    return {text, text.rpartition("[")[0] or text}


def names_in(recipe: Any) -> set[str]:
    """Returns all paths and modules that the strings of a recipe's JSON may name."""
    names, todo = set(), [recipe]
    while todo:
        value = todo.pop()
        if isinstance(value, dict | list):
            todo += value.values() if isinstance(value, dict) else value
        elif isinstance(value, str):
            names |= names_of(value)
    return names


def open_names(names: Iterable[str]):
    """Opens names that the user names: components and functions as "module:name", and paths."""
    _user_names.update(names)


def open_unclosed_names(names: Iterable[str]):
    """Opens the names of a recipe in the program, except the ones that another recipe closed."""
    _user_names.update(name for name in names if name not in _closed)


def all_open(names: Iterable[str]) -> bool:
    """Whether every name is a component of Zoo, or is one that the user named or permitted."""
    return all(
        component_registry.component(name) is not None
        or stranger(name, path=not _FUNCTION.fullmatch(name) or name.startswith("hub:")) is None
        for name in names
    )


def close(names: Iterable[str], origin: str | pathlib.Path):
    """Closes names in a recipe that may not be the user's; `origin` is its file, for messages."""
    _closed.update(dict.fromkeys(names, str(origin)))


def open_paths():
    """Allows recipes to name files anywhere."""
    global _paths_are_open
    _paths_are_open = True


def stranger(name: str, *, path: bool = False) -> str | None:
    """Returns the folder of the run that closed a name; None if the name may be used."""
    if name in _user_names or (path and _paths_are_open):
        return None
    return _closed.get(name)


def component(name: str) -> type:
    """Returns the class of a component name in a recipe: of zoo, of a module that the program has
    imported, or one that the user names, whose module is then imported."""
    kind = component_registry.component(name) or component_registry.imported(name)
    if kind is not None:
        return kind
    if component_registry.in_zoo(name.partition(":")[0]):
        raise UserError(
            f"the saved recipe has the component {name}, which this version of zoo does not have: "
            "use the version that saved it."
        )
    if name not in _user_names:
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


# ---------------- remote file names, checked before files are written below a local folder
# Object stores and hubs accept any names: "run/../../.bashrc" is valid there, and leads out of a
# folder that it is joined to.

# Windows splits names at both slashes, and reads a letter with a colon as a drive.
_SLASHES = re.compile(r"[/\\]")
_DISK = re.compile(r"[a-zA-Z]:")
_NOWHERE = ("", ".", "..")


def leads_out(name: str) -> bool:
    """Whether a name is absolute, or has a part that is empty, "." or ".."."""
    return bool(_DISK.match(name)) or any(part in _NOWHERE for part in _SLASHES.split(name))


def check_remote(names: Iterable[str], location: str):
    """Checks that names, joined to a folder, name files below it."""
    for name in names:
        if leads_out(name):
            raise UserError(
                f"{location} has an object whose name, {shortened(name)!r}, is absolute or has an "
                "empty part, . or .., so that it could be written outside the folder of the run: "
                "delete or rename that object, or give another address."
            )
