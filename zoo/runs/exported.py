"""Parameters of a run that was exported: one file of safetensors in the place of checkpoints.

An exported run has no optimiser state and cannot be trained further; all else that reads a run
reads it. Digests of the arrays are kept beside them and compared when they are read.
"""

import pathlib
from typing import Any

import jax
import numpy as np

from zoo import strict_json
from zoo.errors import UserError
from zoo.runs import digests

PARAMS = "params.safetensors"
RECORD = "export.json"
_RECORD = {"checkpoint": int, "digests": dict, "data": str | None}


def is_exported(path: pathlib.Path) -> bool:
    """Whether a folder holds an exported run."""
    return (path / RECORD).is_file() and (path / PARAMS).is_file()


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
    """What was noted of an export: checkpoint (step), digests, platforms, versions.

    Raises:
      UserError: it cannot be read, or lacks one of these.
    """
    return strict_json.read(path / RECORD, _RECORD)


def shapes(path: pathlib.Path) -> list[tuple[int, ...]] | None:
    """The shapes of the parameters, none of which is read; None if they cannot be told:
    `read_params` says why."""
    import safetensors

    try:
        with safetensors.safe_open(str(path / PARAMS), "numpy") as file:
            names = file.keys()
            return [tuple(file.get_slice(name).get_shape()) for name in names]
    except Exception:  # safetensors has errors of its own, and those of the system
        return None


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
    if digests.of_arrays(arrays) != kept["digests"]:
        raise UserError(f"{file} is not as it was written: put back a copy of it.")
    leaves = [arrays[name] for name in names]
    return kept["checkpoint"], jax.tree.unflatten(jax.tree.structure(like), leaves)
