"""Lazy imports, and imports of optional packages."""

import contextlib
import importlib
import sys
from collections.abc import Iterator

# {extra of pyproject.toml: {module: requirement for pip}}. Messages name packages, not extras, for
# users who have Zoo from a checkout or a wheel cannot install its extras from an index.
EXTRAS = {
    "flax": {"flax": "flax>=0.12,<0.15"},
    "train": {
        "orbax": "orbax-checkpoint>=0.12,<0.14",
        "etils": "etils>=1.9",
        "datasets": "datasets>=5,<6",
        "conllu": "conllu>=6,<7",
        "filelock": "filelock>=3.15",
        "sacrebleu": "sacrebleu>=2.5,<3",
        "sacremoses": "sacremoses>=0.1,<0.3",
        "tqdm": "tqdm>=4.66",
        "tensorboardX": "tensorboardX>=2.6.4",
        "matplotlib": "matplotlib>=3.10",
        "argcomplete": "argcomplete>=3.6",
    },
    "export": {"flatbuffers": "flatbuffers>=25", "safetensors": "safetensors>=0.5"},
    "hub": {"huggingface_hub": "huggingface-hub>=1"},
    "bucket": {"gcsfs": "gcsfs>=2025.5"},
}


class MissingExtra(ModuleNotFoundError):
    """The error of a missing optional package; its message tells how to install it."""


@contextlib.contextmanager
def extra() -> Iterator[None]:
    """Raises MissingExtra where an optional package is imported and is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        for packages in EXTRAS.values():
            if package in packages:
                raise MissingExtra(
                    f"{package} is not installed, which this part of zoo needs: pip install "
                    f"'{packages[package]}', or in a checkout all that zoo needs with pip install "
                    "-r requirements.txt.",
                    name=error.name,
                ) from None
        raise


@contextlib.contextmanager
def without(*modules: str) -> Iterator[None]:
    """Makes modules look as if they were not installed while its context imports others.

    A package may import whatever it finds for uses that the caller does not have. Modules that are
    loaded already stay visible.
    """
    hidden = [name for name in modules if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]  # None: cannot be imported
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]


def names(package: str, modules: dict[str, str]):
    """Returns `__getattr__` and `__dir__` of a package that imports names on first access."""

    def get(name: str):
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(modules[name]), name)

    return get, lambda: sorted({*vars(sys.modules[package]), *modules})
