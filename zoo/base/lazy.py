"""Lazy imports, and imports of optional packages."""

import ast
import contextlib
import importlib
import pathlib
import sys
from collections.abc import Iterator

# {extra of pyproject.toml: the modules that its packages bring}
EXTRAS = {
    "flax": ("flax",),
    "train": (
        *("orbax", "etils", "datasets", "pyarrow", "conllu", "filelock", "sacrebleu"),
        *("jiwer", "sacremoses", "tqdm", "tensorboardX", "matplotlib", "yaml"),
    ),
    "export": ("flatbuffers", "safetensors"),
    "hub": ("huggingface_hub",),
    "bucket": ("gcsfs",),
    "subwords": ("tokenizers",),
}


class MissingExtra(ModuleNotFoundError):
    """The error of a missing optional package; its message tells how to install its extra."""


@contextlib.contextmanager
def extra() -> Iterator[None]:
    """Raises MissingExtra where an optional package is imported and is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        for name, modules in EXTRAS.items():
            if package in modules:
                raise MissingExtra(
                    f"{package} is not installed, which belongs to the extra {name!r} of zoo: pip "
                    f"install '.[{name}]' in the checkout, or 'zoo-language-models[{name}]' where "
                    "Zoo is installed, installs all of it.",
                    name=error.name,
                ) from None
        raise


@contextlib.contextmanager
def without(*modules: str) -> Iterator[None]:
    """Makes modules look as if they were not installed while its context imports packages that
    import whatever they find; modules that are loaded already stay visible."""
    hidden = [name for name in modules if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]  # None: cannot be imported
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]


def names(package: str):
    """Returns `__getattr__`, `__dir__` and `__all__` of a package whose names are imported on first
    access, from the modules from which its stub, __init__.pyi, imports them for type checkers."""
    stub = pathlib.Path(sys.modules[package].__path__[0], "__init__.pyi")
    home = {
        imported.name: node.module or ""
        for node in ast.parse(stub.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom)
        for imported in node.names
    }

    def get(name: str):
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(home[name]), name)

    return get, lambda: sorted({*vars(sys.modules[package]), *home}), sorted(home)
