"""Digests of arrays and of JSON, so that a bit that flips on a disk is found when it is read."""

import functools
import hashlib
import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

# Two sums modulo 2^32 with seeds of their own: two arrays agree in both by chance once in 2^64.
_SEEDS = (0x9E3779B9, 0x85EBCA77)
# Elements of an array on one device or the host for which compiling a program takes longer.
_SMALL = 1 << 20


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
    """{path of a leaf: sha256 of its dtype, shape and bytes}, of leaves on the host."""
    return {name: _of_array(leaf) for name, leaf in leaf_names(tree).items()}


def _of_array(leaf):
    hasher = hashlib.sha256(layout(leaf).encode())
    hasher.update(np.ascontiguousarray(leaf).reshape(-1).view(np.uint8).data)
    return hasher.hexdigest()


def checksums(tree: Any) -> dict[str, str]:
    """{path of a leaf: its layout and a checksum of its values}, computed where the leaves lie.

    With the bits w_i of element i, in words of 32 bits, and a mixing function m (the last steps of
    MurmurHash3, Appleby 2011), a checksum is sum_i m(w_i ^ m(i ^ s)) modulo 2^32 for two seeds s.
    A sum has no order: it is the same however devices and processes share an array out, and none
    of them ever holds the whole. Processes that share arrays out have to call this together.
    """
    found = {}
    for name, leaf in leaf_names(tree).items():
        # One after another: what a sum needs besides its array is of the array's size.
        sums = np.asarray(_sums(leaf))
        found[name] = f"{layout(leaf)} {''.join(f'{int(x):08x}' for x in sums)}"
    return found


def is_shared(leaf: Any) -> bool:
    """Whether a leaf is an array, or the shape of one, that several devices hold."""
    sharding = getattr(leaf, "sharding", None)
    return sharding is not None and len(sharding.device_set) > 1


def _sums(leaf):
    """uint32 [2], the checksum of an array."""
    array = leaf if is_shared(leaf) else np.asarray(leaf)
    if array.size <= _SMALL and isinstance(array, np.ndarray):
        return _of_small(array)
    if array.dtype.itemsize > 4:  # without jax_enable_x64 JAX would make 32 bits of 64
        array = np.atleast_1d(np.asarray(array)).view(np.uint32)
    return _compiled()(array).addressable_data(0)


def _of_small(array):
    """`_checksum` without a program to compile."""
    size = min(array.dtype.itemsize, 4)
    words = np.ascontiguousarray(array).reshape(-1).view(f"uint{8 * size}").astype(np.uint32)
    index = np.arange(words.size, dtype=np.uint32)
    return np.array(
        [_mixed(words ^ _mixed(index ^ np.uint32(seed))).sum(dtype=np.uint32) for seed in _SEEDS]
    )


@functools.cache
def _compiled():
    return jax.jit(_checksum)


def _checksum(array):
    """See `checksums`."""
    if array.dtype == bool:
        words = array.astype(jnp.uint32)
    else:
        size = array.dtype.itemsize
        words = jax.lax.bitcast_convert_type(array, f"uint{8 * size}").astype(jnp.uint32)
    index = jnp.zeros(words.shape, jnp.uint32)
    for axis, length in enumerate(words.shape):
        places = jax.lax.broadcasted_iota(jnp.uint32, words.shape, axis)
        index = index * jnp.uint32(length % 2**32) + places
    mixed = tuple(_mixed(words ^ _mixed(index ^ jnp.uint32(seed))) for seed in _SEEDS)
    # One reduction for both, which XLA forms as it reads: two would each hold an array as large.
    zeros, axes = (jnp.uint32(0),) * len(_SEEDS), tuple(range(words.ndim))
    return jnp.stack(jax.lax.reduce(mixed, zeros, _added, axes))


def _added(first, second):
    return tuple(a + b for a, b in zip(first, second, strict=True))


def _mixed(x):
    """A bijection of 32 bits in which each bit of the input changes half of the output's."""
    x = (x ^ (x >> 16)) * np.uint32(0x85EBCA6B)
    x = (x ^ (x >> 13)) * np.uint32(0xC2B2AE35)
    return x ^ (x >> 16)


def of_json(value: Any) -> str:
    """The sha256 of a value that JSON can hold, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
