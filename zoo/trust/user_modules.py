"""The user's own modules: their folders, and their import.

A program of zoo imports a module outside zoo only if the user named it: see
`zoo.trust.permissions`. Until then, only Python's own folders are on the module path.
"""

import importlib
import pathlib
import sys
from types import ModuleType
from typing import Any

from zoo.trust import configs_package

_WORKING_FOLDER = ""  # in sys.path
_folders: list[str] = []


def look_in(folder: str | pathlib.Path):
    """Adds a folder with the user's own modules, without importing any."""
    name = str(pathlib.Path(folder).resolve())
    if name not in _folders:
        _folders.append(name)


def folders() -> list[str]:
    """Returns the folders of the user's modules: the folders of `look_in`, then the working one."""
    return [*dict.fromkeys((*_folders, str(pathlib.Path.cwd())))]


def open_path():
    """Adds the folders to the module path, after Python's own folders."""
    if _WORKING_FOLDER not in sys.path:
        sys.path.append(_WORKING_FOLDER)
    for name in _folders:
        if name not in sys.path:
            sys.path.insert(sys.path.index(_WORKING_FOLDER), name)


def is_own(module: str) -> bool:
    """Whether a module lies in one of the folders and does not belong to zoo."""
    top = module.partition(".")[0]
    return top not in ("zoo", configs_package.NAME) and any(
        (pathlib.Path(folder) / top).is_dir() or (pathlib.Path(folder) / f"{top}.py").is_file()
        for folder in folders()
    )


class Missing(Exception):
    """The error of a module that does not exist, or that lacks a name."""


def value(name: str) -> Any:
    """Imports a module and returns its function or class, by "module:name"."""
    module, _, path = name.partition(":")
    found: Any = load(module)
    for part in path.split("."):
        if not hasattr(found, part):
            raise Missing(f"{module} has no {path!r}")
        found = getattr(found, part)
    return found


def load(name: str) -> ModuleType:
    """Imports a module; raises `Missing` if it does not exist, and passes on its own errors."""
    if not all(part.isidentifier() for part in name.split(".")):
        raise Missing(f"{name!r} is not the name of a module")
    if configs_package.has(name):
        configs_package.configs()
    open_path()
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        # Pass on the error of a module that this one imports.
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        raise Missing(f"no module named {error.name!r}") from error
