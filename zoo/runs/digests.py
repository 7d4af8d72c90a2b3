"""Digests of arrays and of JSON, so that a bit that flips on a disk is found when it is read."""

import hashlib
import itertools
import json
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

# Of an array that devices share out, so many bytes are on the host at a time.
BYTES_AT_A_TIME = 2**26


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
    """{path of a leaf: sha256 of its dtype, shape and bytes}, wherever the leaves lie."""
    return {name: _of_array(leaf) for name, leaf in leaf_names(tree).items()}


def is_shared(leaf: Any) -> bool:
    """Whether a leaf is an array, or the shape of one, that several devices hold."""
    sharding = getattr(leaf, "sharding", None)
    return sharding is not None and len(sharding.device_set) > 1


def _of_array(leaf):
    hasher = hashlib.sha256(layout(leaf).encode())
    for rows in _in_rows(leaf) if is_shared(leaf) and leaf.ndim else [np.asarray(leaf)]:
        hasher.update(np.ascontiguousarray(rows).reshape(-1).view(np.uint8).data)
    return hasher.hexdigest()


def _in_rows(array: jax.Array) -> Iterator[np.ndarray]:
    """The rows of an array that devices share out, some at a time, on the host."""
    count, others = array.shape[0], array.shape[1:]
    parts = {}  # by where they begin: copies of a part are read once
    for shard in array.addressable_shards:
        parts[
            tuple(
                axis.indices(size)[0] for axis, size in zip(shard.index, array.shape, strict=True)
            )
        ] = shard.data
    ends = sorted({start[0] for start in parts} | {count})
    most = max(1, BYTES_AT_A_TIME * count // max(1, array.nbytes))
    for begin, end in itertools.pairwise(ends):
        for first in range(begin, end, most):
            rows = np.empty((min(most, end - first), *others), array.dtype)
            for start, part in parts.items():
                if start[0] <= first < start[0] + part.shape[0]:
                    taken = jax.lax.dynamic_slice_in_dim(part, first - start[0], len(rows))
                    columns = map(slice, start[1:], np.add(start[1:], part.shape[1:]))
                    rows[(slice(None), *columns)] = np.asarray(taken)
            yield rows


def of_json(value: Any) -> str:
    """The sha256 of a value that JSON can hold, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
