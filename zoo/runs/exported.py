"""Parameters of a run that was exported: one file of safetensors in the place of checkpoints.

An exported run has no optimiser state and cannot be trained further; all else that reads a run
reads it. The SHA-256 of its files are kept beside them and compared when they are read.
"""

import contextlib
import hashlib
import pathlib
from typing import Any

import jax
import numpy as np

from zoo import lazy
from zoo.errors import UserError
from zoo.runs import digests, storage

PARAMS = "params.safetensors"
RECORD = "export.json"


def is_exported(path: pathlib.Path) -> bool:
    """Whether a folder holds an exported run, whole or damaged."""
    return (path / RECORD).exists() or (path / PARAMS).exists()


def is_whole(path: pathlib.Path) -> bool:
    """Whether a folder holds an exported run with its record and its parameters."""
    return (path / RECORD).is_file() and (path / PARAMS).is_file()


def safetensors() -> Any:
    """The module `safetensors.numpy`; `lazy.MissingExtra` where that package is not installed."""
    with lazy.extra():
        import safetensors.numpy
    return safetensors.numpy


def named_arrays(tree: Any) -> dict[str, np.ndarray]:
    """The leaves of a pytree by their paths, such as "head/bias", on the host."""
    leaves = digests.leaf_names(tree)
    return {name: np.ascontiguousarray(np.asarray(leaf)) for name, leaf in leaves.items()}


def record(path: pathlib.Path) -> dict:
    """What was noted of an export: checkpoint (step), SHA-256 of its files, platforms, versions."""
    with _reading(path / RECORD):
        return storage.read_object(path / RECORD)


def check(path: pathlib.Path, name: str):
    """UserError if a file of an exported run is not as it was written."""
    known, file = record(path).get("sha256"), path / name
    with _reading(file):
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
    if not isinstance(known, dict) or known.get(name) != digest:
        raise UserError(f"{file} is not as it was written: put back a copy of it.")


@contextlib.contextmanager
def _reading(file):
    """UserError where a file cannot be read."""
    try:
        yield
    except OSError as error:
        raise UserError(
            f"{file} cannot be read ({error.strerror}): put back a copy of it."
        ) from error


def read_params(path: pathlib.Path, like: Any) -> tuple[int, Any]:
    """Reads (step, parameters on the host) of an exported run.

    Args:
      path: the folder.
      like: a pytree of shapes, those of the model.

    Raises:
      UserError: the file is damaged, or of another model.
      lazy.MissingExtra: safetensors is not installed.
    """
    file, kept, load = path / PARAMS, record(path), safetensors().load
    with _reading(file):
        content = file.read_bytes()
    try:
        arrays = load(content)
    except Exception as error:  # safetensors has errors of its own
        raise UserError(f"{file} cannot be read ({error}): put back a copy of it.") from error
    names = digests.leaf_names(like)
    for name in [*names, *arrays]:
        there, here = (
            digests.layout(leaves[name]) if name in leaves else "missing"
            for leaves in (arrays, names)
        )
        if there != here:
            raise UserError(
                f"{file} is of another model: {name} is {there} there, and {here} in the recipe; "
                "put back a copy of the export."
            )
    check(path, PARAMS)
    leaves = [arrays[name] for name in names]
    return int(kept["checkpoint"]), jax.tree.unflatten(jax.tree.structure(like), leaves)
