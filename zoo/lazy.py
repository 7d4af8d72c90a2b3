"""Names that are imported when they are asked for, and packages that may not be installed."""

import contextlib
import importlib
import sys
from collections.abc import Iterator

# What pip installs for which modules, by the extras of pyproject.toml: packages by their own names,
# for whoever has zoo from a checkout or a wheel has no index that knows zoo and its extras.
EXTRAS = {
    "flax": {"flax": "flax>=0.12,<0.15"},
    "train": {
        "orbax": "orbax-checkpoint>=0.12,<0.14",
        "etils": "etils>=1.9",
        "datasets": "datasets>=5,<6",
        "conllu": "conllu>=6,<7",
        "filelock": "filelock>=3.15",
        "sacrebleu": "sacrebleu>=2.5,<3",
        "tqdm": "tqdm>=4.66",
        "tensorboardX": "tensorboardX>=2.6.4",
        "matplotlib": "matplotlib>=3.10",
    },
    "export": {"flatbuffers": "flatbuffers>=25", "safetensors": "safetensors>=0.5"},
    "hub": {"huggingface_hub": "huggingface-hub>=1"},
    "bucket": {"gcsfs": "gcsfs>=2025.5"},
}


class MissingExtra(ModuleNotFoundError):
    """A package that a part of the zoo needs is not installed; the message is one sentence that
    says which, and how to install it."""


@contextlib.contextmanager
def extra() -> Iterator[None]:
    """Around imports of packages that only an extra of the zoo brings.

    Raises:
      MissingExtra: one is not installed.
    """
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


def names(package: str, modules: dict[str, str]):
    """Returns the `__getattr__` and `__dir__` of a package that imports names when asked for them.

    Args:
      package: its name.
      modules: {name: the module that has it}.
    """

    def get(name: str):
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(modules[name]), name)

    return get, lambda: sorted({*vars(sys.modules[package]), *modules})
