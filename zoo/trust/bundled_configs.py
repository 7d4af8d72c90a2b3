"""The recipes that come with the zoo: the package `configs`, wherever it lies.

In a checkout it is the folder beside zoo; where zoo was installed, it is within it, so that no
other package's `configs` is in its way. Saved recipes name its functions as
"configs.rare_words_log_linear:shape", and its files as "configs/countries.tsv", in both.
"""

import functools
import importlib.util
import pathlib
import sys
from types import ModuleType

NAME = "configs"


@functools.cache
def folder() -> pathlib.Path:
    """The folder of the package."""
    inside = pathlib.Path(__file__).resolve().parents[1] / NAME
    return inside if inside.is_dir() else inside.parents[1] / NAME


def configs() -> ModuleType:
    """The package; from then on `configs` can be imported, from no other folder than this."""
    if NAME not in sys.modules:
        spec = importlib.util.spec_from_file_location(
            NAME, folder() / "__init__.py", submodule_search_locations=[str(folder())]
        )
        assert spec is not None and spec.loader is not None  # as of every file of Python
        module = importlib.util.module_from_spec(spec)
        sys.modules[NAME] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[NAME]
            raise
    return sys.modules[NAME]


def has(module: str) -> bool:
    """Whether a dotted name, such as configs.ptb_nce, is of the package or a module in it."""
    package, _, name = module.partition(".")
    return package == NAME and (not name or any(folder().glob(f"*/{name}.py")))


def file(path: str) -> pathlib.Path | None:
    """The file that a relative path such as "configs/countries.tsv" names, if it comes with zoo."""
    parts = pathlib.PurePath(path).parts
    shipped = folder().joinpath(*parts[1:])
    inside = len(parts) > 1 and parts[0] == NAME and ".." not in parts
    return shipped if inside and shipped.is_file() else None
