"""Exported runs, whose parameters are one file of safetensors in place of checkpoints.

An exported run does not have an optimiser state and cannot be trained further; everything else that
reads a run reads it too. The record has the SHA-256 of itself and of all files but the results, the
model card and load.py. They are compared on reading.
"""

import contextlib
import hashlib
import os
import pathlib
from typing import Any

import jax
import numpy as np

from zoo import lazy, strict_json
from zoo.errors import UserError
from zoo.runs import checksums

PARAMS = "params.safetensors"
RECORD = "export.json"
_RECORD = {"checkpoint": int, "sha256": dict, "data": str, "digest": str}


def is_exported(path: pathlib.Path) -> bool:
    """Whether a folder holds an exported run, whole or damaged."""
    # Not by pathlib, which raises an error for a name that is too long. Buckets hold no exports.
    return os.path.exists(path / RECORD) or os.path.exists(path / PARAMS)


def is_whole(path: pathlib.Path) -> bool:
    """Whether a folder holds an exported run with its record and its parameters."""
    return os.path.isfile(path / RECORD) and os.path.isfile(path / PARAMS)


def safetensors() -> Any:
    """Imports the module `safetensors.numpy`."""
    with lazy.extra():
        import safetensors.numpy
    return safetensors.numpy


def named_arrays(tree: Any) -> dict[str, np.ndarray]:
    """Copies the leaves of a pytree to the host, {path such as "head/bias": array}."""
    leaves = checksums.leaf_names(tree)
    return {name: np.ascontiguousarray(np.asarray(leaf)) for name, leaf in leaves.items()}


def record(path: pathlib.Path) -> dict:
    """Reads the record of an export: its checkpoint's step, SHA-256 of files, and more."""
    with _reading(path / RECORD):
        kept = strict_json.read(path / RECORD, _RECORD)
    _compare(path / RECORD, kept.pop("digest"), checksums.of_json(kept))
    return kept


def check(path: pathlib.Path, name: str):
    """Checks the SHA-256 of a file of an exported run, unless neither it nor the file exists."""
    known, file = record(path)["sha256"].get(name), path / name
    if known is None:
        if file.exists():
            raise UserError(
                f"{path / RECORD} has no checksum of {name}: put back a copy of the export, or "
                "export the run again."
            )
        return
    with _reading(file):
        _compare(file, known, hashlib.sha256(file.read_bytes()).hexdigest())


def _compare(file, known, digest):
    if known != digest:
        raise UserError(f"{file} is not as it was written: put back a copy of it.")


def shapes(path: pathlib.Path) -> list[tuple[int, ...]] | None:
    """Returns the shapes of the parameters without reading them; None if the file is damaged.

    `read_params` raises an error that names the damage.
    """
    with lazy.extra():
        import safetensors

    try:
        with safetensors.safe_open(str(path / PARAMS), "numpy") as file:
            names = file.keys()
            return [tuple(file.get_slice(name).get_shape()) for name in names]
    except Exception:  # errors of safetensors, or OSError
        return None


@contextlib.contextmanager
def _reading(file):
    """Raises UserError where a file cannot be read."""
    try:
        yield
    except OSError as error:
        raise UserError(
            f"{file} cannot be read ({error.strerror}): put back a copy of it."
        ) from error


def read_params(path: pathlib.Path, like: Any) -> tuple[int, Any]:
    """Reads the parameters of an exported run."""
    file, kept, load = path / PARAMS, record(path), safetensors().load
    with _reading(file):
        content = file.read_bytes()
    try:
        arrays = load(content)
    except Exception as error:  # safetensors has errors of its own
        raise UserError(f"{file} cannot be read ({error}): put back a copy of it.") from error
    names = checksums.leaf_names(like)
    for name in [*names, *arrays]:
        there, here = (
            checksums.layout(leaves[name]) if name in leaves else "missing"
            for leaves in (arrays, names)
        )
        if there != here:
            raise UserError(
                f"{file} is of another model: {name} is {there} there, and {here} in the recipe; "
                "put back a copy of the export."
            )
    check(path, PARAMS)
    leaves = [arrays[name] for name in names]
    return kept["checkpoint"], jax.tree.unflatten(jax.tree.structure(like), leaves)
