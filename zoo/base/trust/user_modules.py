"""The user's own modules: their folders, and their import.

A program of zoo imports a module outside zoo only if the user named it: see
`zoo.base.trust.permissions`. Until then, only Python's own folders are on the module path.
"""

import functools
import importlib
import importlib.util
import pathlib
import sys
from types import ModuleType
from typing import Any

# ----------------------------------- the recipes that come with zoo: the package `configs`
# In a checkout, its folder is beside zoo; in an installation, it is within zoo, so that it cannot
# collide with another package named `configs`. In either, saved recipes name its functions as
# "configs.rare_words_log_linear:shape" and its files as "configs/countries.tsv".

CONFIGS = "configs"


@functools.cache
def configs_folder() -> pathlib.Path:
    inside = pathlib.Path(__file__).resolve().parents[2] / CONFIGS
    return inside if inside.is_dir() else inside.parents[1] / CONFIGS


def configs() -> ModuleType:
    """Imports the package; afterwards `import configs` finds this package alone."""
    if CONFIGS not in sys.modules:
        spec = importlib.util.spec_from_file_location(
            CONFIGS,
            configs_folder() / "__init__.py",
            submodule_search_locations=[str(configs_folder())],
        )
        assert spec is not None and spec.loader is not None  # true of every Python file
        module = importlib.util.module_from_spec(spec)
        sys.modules[CONFIGS] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[CONFIGS]
            raise
    return sys.modules[CONFIGS]


def has_config(module: str) -> bool:
    """Whether a dotted name, such as configs.ptb_nce, names the package or one of its modules."""
    package, _, name = module.partition(".")
    return package == CONFIGS and (not name or any(configs_folder().glob(f"*/{name}.py")))


def config_file(path: str) -> pathlib.Path | None:
    """Returns the file that a path such as "configs/countries.tsv" names; None for others."""
    parts = pathlib.PurePath(path).parts
    shipped = configs_folder().joinpath(*parts[1:])
    inside = len(parts) > 1 and parts[0] == CONFIGS and ".." not in parts
    return shipped if inside and shipped.is_file() else None


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


class Missing(Exception):
    """The error of a module that does not exist, or that lacks a name."""


def value(name: str) -> Any:
    """Imports a module and returns its function or class, by "module:name"."""
    module, _, path = name.partition(":")
    member: Any = load(module)
    for part in path.split("."):
        if not hasattr(member, part):
            raise Missing(f"{module} has no {path!r}")
        member = getattr(member, part)
    return member


def load(name: str) -> ModuleType:
    """Imports a module; raises `Missing` if it does not exist, and passes on its own errors."""
    if not all(part.isidentifier() for part in name.split(".")):
        raise Missing(f"{name!r} is not the name of a module")
    if has_config(name):
        configs()
    open_path()
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        # Pass on the error of a module that this one imports.
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        raise Missing(f"no module named {error.name!r}") from error
