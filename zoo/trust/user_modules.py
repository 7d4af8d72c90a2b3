"""Modules of the user's own: where they are looked for, and their import.

A program of zoo imports a module outside zoo only where the user named it: see
`zoo.trust.permissions`. Before that, no folder but Python's own is on its path.
"""

import importlib
import pathlib
import sys
from types import ModuleType
from typing import Any

from zoo.trust import bundled_configs

_WORKING_FOLDER = ""  # as sys.path calls it
_folders: list[str] = []


def look_in(folder: str | pathlib.Path):
    """Adds a folder where modules of the user's own are; nothing is imported from it yet."""
    name = str(pathlib.Path(folder).resolve())
    if name not in _folders:
        _folders.append(name)


def folders() -> list[str]:
    """The folders where modules of this process are looked for: those of `look_in`, and the working
    folder."""
    return [*dict.fromkeys((*_folders, str(pathlib.Path.cwd())))]


def open_path():
    """Modules can be imported from the folders, after Python's own places, and then from the
    working folder."""
    if _WORKING_FOLDER not in sys.path:
        sys.path.append(_WORKING_FOLDER)
    for name in _folders:
        if name not in sys.path:
            sys.path.insert(sys.path.index(_WORKING_FOLDER), name)


def is_own(module: str) -> bool:
    """Whether a module lies in one of the folders, and is not of zoo."""
    top = module.partition(".")[0]
    return top not in ("zoo", bundled_configs.NAME) and any(
        (pathlib.Path(folder) / top).is_dir() or (pathlib.Path(folder) / f"{top}.py").is_file()
        for folder in folders()
    )


class Missing(Exception):
    """There is no such module, or it has no such name; the message says which."""


def value(name: str) -> Any:
    """The function or class that "module:name" names; its module is imported.

    Raises:
      Missing: there is none. What the module itself raises is let through as it is.
    """
    module, _, path = name.partition(":")
    found: Any = load(module)
    for part in path.split("."):
        if not hasattr(found, part):
            raise Missing(f"{module} has no {path!r}")
        found = getattr(found, part)
    return found


def load(name: str) -> ModuleType:
    """The module of a name; raises `Missing` if there is none, and what its import raises."""
    if not all(part.isidentifier() for part in name.split(".")):
        raise Missing(f"{name!r} is not the name of a module")
    if bundled_configs.has(name):
        bundled_configs.configs()
    open_path()
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        # Not of what the module imports itself.
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        raise Missing(f"there is no module {error.name!r}") from error
