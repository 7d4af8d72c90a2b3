"""Digests of arrays and of JSON, so that a bit that flips on a disk is found when it is read."""

import hashlib
import json
from typing import Any

import jax
import numpy as np


def leaf_names(tree: Any, is_leaf=None) -> dict[str, Any]:
    """The leaves of a pytree by their paths, such as "params/head/bias".

    A field of a named tuple and the same key of a dict, which is how orbax keeps it, have one name.
    """
    leaves = jax.tree_util.tree_leaves_with_path(tree, is_leaf)
    return {jax.tree_util.keystr(path, simple=True, separator="/"): leaf for path, leaf in leaves}


def layout(leaf: Any) -> str:
    """Dtype and shape of an array, of its metadata or of a ShapeDtypeStruct: "float32[5, 7]"."""
    return f"{np.dtype(leaf.dtype).name}{[*leaf.shape]}"


def of_arrays(tree: Any) -> dict[str, str]:
    """{path of a leaf: sha256 of its dtype, shape and bytes}; the leaves lie on the host."""
    return {name: _of_array(np.asarray(leaf)) for name, leaf in leaf_names(tree).items()}


def _of_array(array):
    hasher = hashlib.sha256(layout(array).encode())
    hasher.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return hasher.hexdigest()


def of_json(value: Any) -> str:
    """The sha256 of a value that JSON can hold, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
