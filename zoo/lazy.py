"""Names of a package that are imported when they are asked for.

A package says what it has under `if TYPE_CHECKING:`, where type checkers and editors read it, and
begins with `__getattr__, __dir__ = lazy.doors(__name__, __file__)`. So one part is used without
reading the files, or needing the packages, of the others.
"""

import ast
import importlib
import pathlib
import sys


def doors(package: str, file: str):
    """(`__getattr__`, `__dir__`) of a package whose names are imported under TYPE_CHECKING.

    Args:
      package: its name.
      file: its `__init__.py`.
    """
    homes = _homes(pathlib.Path(file).read_text(encoding="utf-8"))

    def get(name: str):
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(homes[name]), name)
        setattr(sys.modules[package], name, value)  # from now on without being asked
        return value

    return get, lambda: sorted({*vars(sys.modules[package]), *homes})


def _homes(source: str) -> dict[str, str]:
    """{name: the module that it is imported from} of the imports under TYPE_CHECKING."""
    return {
        alias.name: imported.module
        for block in ast.parse(source).body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for imported in block.body
        if isinstance(imported, ast.ImportFrom) and imported.module
        for alias in imported.names
    }
