"""Modules of the user's own: where they are looked for, and their import.

A program of zoo imports a module outside zoo only where the user named it: see
`zoo.trust.permissions`. Before that, no folder but Python's own is on its path.
"""

import importlib
import pathlib
import sys
from types import ModuleType

from zoo.trust import shipped

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


def load(name: str) -> ModuleType:
    """The module of a name; raises what its import raises."""
    if shipped.has(name):
        shipped.configs()
    open_path()
    return importlib.import_module(name)
