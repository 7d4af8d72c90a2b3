"""Parameters of a run that was exported: one file of safetensors in the place of checkpoints.

An exported run has no optimiser state and cannot be trained further; all else that reads a run
reads it. Digests of the arrays are kept beside them and compared when they are read.
"""

import os
import pathlib
from typing import Any

import jax
import numpy as np

from zoo.errors import UserError
from zoo.runs import digests, storage

PARAMS = "params.safetensors"
RECORD = "export.json"


def is_exported(path: pathlib.Path) -> bool:
    """Whether a folder holds an exported run."""
    # Not by pathlib, which raises an error for a name that is too long.
    return os.path.isfile(path / RECORD) and os.path.isfile(path / PARAMS)


def safetensors() -> Any:
    """The module `safetensors.numpy`; UserError where that package is not installed."""
    try:
        import safetensors.numpy
    except ModuleNotFoundError as error:
        raise UserError(
            "safetensors is not installed, which exported runs need: "
            "pip install 'zoo-language-models[export]'."
        ) from error
    return safetensors.numpy


def named_arrays(tree: Any) -> dict[str, np.ndarray]:
    """The leaves of a pytree by their paths, such as "head/bias", on the host."""
    leaves = digests.leaf_names(tree)
    return {name: np.ascontiguousarray(np.asarray(leaf)) for name, leaf in leaves.items()}


def record(path: pathlib.Path) -> dict:
    """What was noted of an export: checkpoint (step), digests, platforms, versions."""
    return storage.read_object(path / RECORD)


def read_params(path: pathlib.Path, like: Any) -> tuple[int, Any]:
    """Reads (step, parameters on the host) of an exported run.

    Args:
      path: the folder.
      like: a pytree of shapes, those of the model.

    Raises:
      UserError: the file is damaged, or of another model, or safetensors is not installed.
    """
    file, kept = path / PARAMS, record(path)
    try:
        arrays = safetensors().load_file(str(file))
    except UserError:
        raise
    except Exception as error:  # safetensors has errors of its own, and those of the system
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
    if digests.of_arrays(arrays) != kept.get("digests"):
        raise UserError(f"{file} is not as it was written: put back a copy of it.")
    leaves = [arrays[name] for name in names]
    return int(kept["checkpoint"]), jax.tree.unflatten(jax.tree.structure(like), leaves)
