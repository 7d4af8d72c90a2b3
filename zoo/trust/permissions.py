"""Permissions: what a run may make a program do, and nothing that its recipe alone asks for.

A recipe names components, functions and files, and whoever made the run wrote it. Reading one
imports nothing but zoo. What it names beside zoo's own components is used only if the user names
it too: in a config, on the command line, or by having trained the run (`zoo.runs.known_runs`).

What recipes named is kept for the process, by value: a name, once closed, is closed whichever way
it is reached, and what the user names is open, whoever else names it.
"""

import pathlib
from collections.abc import Iterable

from zoo.errors import UserError
from zoo.trust import public_names, user_modules

_closed: dict[str, str] = {}  # {what a recipe names: the folder of its run}
_named: set[str] = set()  # by the user
_paths_are_open = False


def name(names: Iterable[str]):
    """The user names these: components and functions as "module:name", and paths."""
    _named.update(names)


def close(names: Iterable[str], workdir: str | pathlib.Path):
    """A recipe that is not the user's names these; `workdir` is its run's folder, for messages."""
    _closed.update(dict.fromkeys(names, str(workdir)))


def open_paths():
    """Files that recipes name may be read wherever they lie."""
    global _paths_are_open
    _paths_are_open = True


def stranger(name: str, *, path: bool = False) -> str | None:
    """The folder of the run that names this, where no user does; None if it may be used.

    Args:
      path: whether it is a path, which `open_paths` opens as well.
    """
    if name in _named or (path and _paths_are_open):
        return None
    return _closed.get(name)


def check_function(name: str):
    """UserError for a function "module:name" that none but a stranger's recipe names."""
    workdir = stranger(name)
    if workdir is not None:
        raise UserError(
            f"{workdir} was not trained here by you, and needs the function {name}, which would "
            f"be run: look at it, and add --trust {name} if you trust it."
        )


def component(name: str) -> type:
    """The class that a recipe calls so.

    One of zoo's, by `zoo.trust.public_names`; one of a module that this program has
    imported already; or one that the user names, whose module is imported.

    Raises:
      UserError: it is another, or there is no such class. What its module raises when it is
        imported is let through as it is.
    """
    kind = public_names.component(name) or public_names.imported(name)
    if kind is not None:
        return kind
    if public_names.in_zoo(name.partition(":")[0]):
        raise UserError(
            f"the saved recipe has the component {name}, which this version of zoo does not have: "
            "use the version that saved it."
        )
    if name not in _named:
        raise UserError(
            f"the saved recipe has the component {name}, which is not of zoo, and whose module "
            f"would be run: look at it, and add --trust {name} if you trust it."
        )
    try:
        kind = user_modules.value(name) if ":" in name else None
    except user_modules.Missing as error:
        raise UserError(
            f"the saved recipe has the component {name}, which cannot be imported ({error}): put "
            "its class in a module of the working folder, or where else Python imports from."
        ) from error
    if not isinstance(kind, type):
        raise UserError(f"the saved recipe has the component {name}, which is no class.")
    return kind
