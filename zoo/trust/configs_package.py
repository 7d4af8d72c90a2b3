"""The recipes that come with zoo: the package `configs`.

In a checkout, its folder is beside zoo; in an installation, it is within zoo, so that it cannot
collide with another package named `configs`. In either, saved recipes name its functions as
"configs.rare_words_log_linear:shape" and its files as "configs/countries.tsv".
"""

import functools
import importlib.util
import pathlib
import sys
from types import ModuleType

NAME = "configs"


@functools.cache
def folder() -> pathlib.Path:
    """Returns the folder of the package."""
    inside = pathlib.Path(__file__).resolve().parents[1] / NAME
    return inside if inside.is_dir() else inside.parents[1] / NAME


def configs() -> ModuleType:
    """Imports the package; afterwards `import configs` finds this package alone."""
    if NAME not in sys.modules:
        spec = importlib.util.spec_from_file_location(
            NAME, folder() / "__init__.py", submodule_search_locations=[str(folder())]
        )
        assert spec is not None and spec.loader is not None  # true of every Python file
        module = importlib.util.module_from_spec(spec)
        sys.modules[NAME] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[NAME]
            raise
    return sys.modules[NAME]


def has(module: str) -> bool:
    """Whether a dotted name, such as configs.ptb_nce, names the package or one of its modules."""
    package, _, name = module.partition(".")
    return package == NAME and (not name or any(folder().glob(f"*/{name}.py")))


def file(path: str) -> pathlib.Path | None:
    """Returns the file that a path such as "configs/countries.tsv" names; None for others."""
    parts = pathlib.PurePath(path).parts
    shipped = folder().joinpath(*parts[1:])
    inside = len(parts) > 1 and parts[0] == NAME and ".." not in parts
    return shipped if inside and shipped.is_file() else None
