"""Completion of command lines with the TAB key, by argcomplete; see docs/runs.md.

At each TAB the shell calls the program with the line typed so far in its environment.
"""

import argparse
import functools
import glob
import importlib
import os
from collections.abc import Callable, Iterable
from typing import Any

from zoo import component_registry, lazy
from zoo.trust import user_modules

# {beginning of --set: the package and the base class of the components that may follow}
_COMPONENTS = {
    "model.head=": ("zoo.heads", "Head"),
    "model.core=": ("zoo.cores", "Core"),
    "model.embedding=": ("zoo.embeddings", "Embedding"),
}


def line() -> list[str] | None:
    """Returns the arguments of the command line that a shell completes, or None if none does."""
    if "_ARGCOMPLETE" not in os.environ:
        return None
    # Of `python -m zoo train`, three words name the program.
    return os.environ["COMP_LINE"].split()[int(os.environ["_ARGCOMPLETE"]) :]


def complete(parser: argparse.ArgumentParser):
    """Writes the words that may come next where the shell reads them, and exits."""
    with lazy.extra():
        import argcomplete
    words: Any = functools.partial(_words, argcomplete.completers.FilesCompleter())
    argcomplete.autocomplete(parser, always_complete_options=False, default_completer=words)


def _words(files: Callable, prefix: str, action: argparse.Action, **_: object) -> Iterable[str]:
    """Returns words that an argument may be; argcomplete keeps the words that begin so."""
    if action.dest in ("config", "show"):
        return [*user_modules.configs().names(), *files(prefix)]
    if action.dest == "set":
        return _settings(prefix)
    return _runs(prefix) if action.metavar == "DIR" else files(prefix)


def _settings(prefix):
    """Returns settings of components, such as model.head=Softmax, or their beginnings."""
    field = prefix.partition("=")[0] + "="
    if field not in _COMPONENTS:
        return [*_COMPONENTS]
    package, base = _COMPONENTS[field]
    module = importlib.import_module(package)
    classes = (component_registry.component(f"{package}:{name}") for name in module.__all__)
    kind = getattr(module, base)
    return [field + one.__name__ for one in classes if one and issubclass(one, kind)]


def _runs(prefix):
    """Returns the folders that begin so: runs, and with a / at the end folders of other things."""
    return [
        path if os.path.exists(f"{path}/experiment.json") else f"{path}/"
        for path in (found.removesuffix("/") for found in glob.glob(f"{glob.escape(prefix)}*/"))
    ]
