"""Exported runs, whose parameters are one file of safetensors in place of checkpoints.

An exported run does not have an optimiser state and cannot be trained further; everything else that
reads a run reads it too. The record has the SHA-256 of itself and of all files but the results, the
model card and load.py. They are compared on reading.
"""

import os
import pathlib
from typing import Any

import jax
import numpy as np

from zoo.base import lazy, strict_json
from zoo.errors import UserError
from zoo.lab.runs import checksums, location, provenance

PARAMS = "params.safetensors"
RECORD = "export.json"
_RECORD = {"checkpoint": int, "sha256": dict, "data": str, "digest": str, "versions": dict | None}


def is_exported(path: pathlib.Path) -> bool:
    """Whether a folder holds an exported run, complete or damaged."""
    # Not by pathlib, which raises an error for a name that is too long. Buckets hold no exports.
    return os.path.exists(path / RECORD) or os.path.exists(path / PARAMS)


def is_complete(path: pathlib.Path) -> bool:
    """Whether a folder holds an exported run with its record and its parameters."""
    return os.path.isfile(path / RECORD) and os.path.isfile(path / PARAMS)


def safetensors() -> Any:
    """Imports and returns the module `safetensors.numpy`."""
    with lazy.extra():
        import safetensors.numpy
    return safetensors.numpy


def named_arrays(tree: Any) -> dict[str, np.ndarray]:
    """Copies the leaves of a pytree to the host, {path such as "head/bias": array}."""
    leaves = checksums.leaf_names(tree)
    return {name: np.ascontiguousarray(np.asarray(leaf)) for name, leaf in leaves.items()}


def read_record(path: pathlib.Path) -> dict:
    """Reads an export's record: "checkpoint" (a step), "sha256" {file: digest}, "data"; raises
    UserError unless the record has its own digest."""
    record = strict_json.read(path / RECORD, _RECORD)
    provenance.check_version(record.get("versions", {}), path / RECORD)
    _compare_digest(path / RECORD, record.pop("digest"), checksums.json_digest(record))
    return record


def check_file(path: pathlib.Path, name: str):
    """Raises UserError unless a file of an exported run has the SHA-256 of the record; a file that
    both folder and record lack passes."""
    expected, file = read_record(path)["sha256"].get(name), path / name
    if expected is None:
        if file.exists():
            raise UserError(
                f"{path / RECORD} has no checksum of {name}: put back a copy of the export, or "
                "export the run again."
            )
        return
    _compare_digest(file, expected, checksums.file_digest(file))


def _compare_digest(file, expected, digest):
    """Raises UserError unless the digest of a file is the expected digest."""
    if expected != digest:
        raise UserError(f"{file} is not as it was written: put back a copy of it.")


def read_arrays(path: pathlib.Path) -> dict[str, np.ndarray]:
    """Reads the arrays of an exported run's safetensors file by name; does not check its digest."""
    file, load = path / PARAMS, safetensors().load
    content = location.read_bytes(file)
    try:
        return load(content)
    except Exception as error:  # safetensors has errors of its own
        raise UserError(f"{file} cannot be read ({error}): put back a copy of it.") from error


def read_params(path: pathlib.Path, arrays: dict[str, np.ndarray], like: Any) -> tuple[int, Any]:
    """Returns (step of the checkpoint, parameters like the pytree `like`) from the arrays of
    `read_arrays`; raises UserError if layouts or the file's SHA-256 differ."""
    record, names = read_record(path), checksums.leaf_names(like)
    difference = checksums.first_difference(arrays, names)
    if difference:
        name, saved, expected = difference
        raise UserError(
            f"{path / PARAMS} is of another model: {name} is {saved} there, and {expected} in the "
            "recipe; put back a copy of the export."
        )
    check_file(path, PARAMS)
    leaves = [arrays[name] for name in names]
    return record["checkpoint"], jax.tree.unflatten(jax.tree.structure(like), leaves)
