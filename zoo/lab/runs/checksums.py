"""Checksums of arrays, files and JSON, by which a bit that flips on a disk is found on reading."""

import hashlib
import json
import operator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from zoo.lab.runs import location

# Seeds of two sums modulo 2^32: different arrays agree in both with probability 2^-64.
_SEEDS = (0x9E3779B9, 0x85EBCA77)
# Arrays up to this size are summed by numpy, faster than a program compiles.
_SMALL = 1 << 20


def leaf_names(tree: Any, is_leaf=None) -> dict[str, Any]:
    """Returns {path such as "params/head/bias": leaf} of a pytree.

    Fields of named tuples have the same paths as keys of dicts, into which orbax turns them.
    """
    leaves = jax.tree_util.tree_leaves_with_path(tree, is_leaf)
    return {jax.tree_util.keystr(path, simple=True, separator="/"): leaf for path, leaf in leaves}


def layout(leaf: Any) -> str:
    """Formats dtype and shape of an array, metadata or ShapeDtypeStruct: "float32[5, 7]"."""
    return f"{np.dtype(leaf.dtype).name}{[*leaf.shape]}"


def first_difference(saved: dict[str, Any], target: dict[str, Any]) -> tuple[str, str, str] | None:
    """Returns (name, saved layout, target layout) of the first leaf that is missing or has another
    dtype or shape, or None; contents are not compared."""
    for name in (*target, *saved):
        layouts = [layout(x[name]) if name in x else "missing" for x in (saved, target)]
        if layouts[0] != layouts[1]:
            return name, layouts[0], layouts[1]
    return None


def array_digests(tree: Any) -> dict[str, str]:
    """Computes the SHA-256 of the dtype, shape and bytes of each leaf on the host, by path."""
    digests = {}
    for name, leaf in leaf_names(tree).items():
        hasher = hashlib.sha256(layout(leaf).encode())
        hasher.update(np.ascontiguousarray(leaf).reshape(-1).view(np.uint8).data)
        digests[name] = hasher.hexdigest()
    return digests


def checksums(tree: Any) -> dict[str, str]:
    """Computes {path: checksum} of the leaves of a pytree, on the devices where they lie.

    With the bits w_i of element i, in words of 32 bits, and a mixing function m (the last steps of
    MurmurHash3, Appleby 2011), a checksum is sum_i m(w_i ^ m(i ^ s)) modulo 2^32 for two seeds s.
    The sum does not depend on how an array is sharded over devices and processes, and no device
    ever holds all of it. Processes that share sharded arrays must call this together.
    """
    checksum_by_name = {}
    for name, leaf in leaf_names(tree).items():
        # One leaf at a time: a sum may need as much memory again as its array.
        array = leaf if is_shared(leaf) else np.asarray(leaf)
        if array.size <= _SMALL and isinstance(array, np.ndarray):
            size = min(array.dtype.itemsize, 4)
            words = np.ascontiguousarray(array).reshape(-1).view(f"uint{8 * size}")
            index = np.arange(words.size, dtype=np.uint32)
            seeds = (_mix(index ^ np.uint32(seed)) for seed in _SEEDS)
            terms = (_mix(words.astype(np.uint32) ^ seed) for seed in seeds)
            sums = np.array([x.sum(dtype=np.uint32) for x in terms])
        else:
            if array.dtype.itemsize > 4:  # without jax_enable_x64 JAX would make 32 bits of 64
                array = np.atleast_1d(np.asarray(array)).view(np.uint32)
            sums = np.asarray(_device_checksum(array).addressable_data(0))
        checksum_by_name[name] = f"{layout(leaf)} {''.join(f'{int(x):08x}' for x in sums)}"
    return checksum_by_name


def is_shared(leaf: Any) -> bool:
    """Whether several devices hold a leaf (array or ShapeDtypeStruct), in shards or copies."""
    sharding = getattr(leaf, "sharding", None)
    return sharding is not None and len(sharding.device_set) > 1


@jax.jit
def _device_checksum(array):
    """Computes two uint32 sums of an array's words hashed with their positions, on its devices."""
    if array.dtype == bool:
        words = array.astype(jnp.uint32)
    else:
        size = array.dtype.itemsize
        words = jax.lax.bitcast_convert_type(array, f"uint{8 * size}").astype(jnp.uint32)
    index = jnp.zeros(words.shape, jnp.uint32)
    for axis, length in enumerate(words.shape):
        positions = jax.lax.broadcasted_iota(jnp.uint32, words.shape, axis)
        index = index * jnp.uint32(length % 2**32) + positions
    terms = tuple(_mix(words ^ _mix(index ^ jnp.uint32(seed))) for seed in _SEEDS)
    # XLA fuses one reduction of both with their computation; two would each store an array.
    zeros, axes = (jnp.uint32(0),) * len(_SEEDS), tuple(range(words.ndim))
    return jnp.stack(
        jax.lax.reduce(terms, zeros, lambda *pair: tuple(map(operator.add, *pair)), axes)
    )


def _mix(x):
    """Mixes 32 bits: a bijection in which each bit of x changes half of the result's bits."""
    x = (x ^ (x >> 16)) * np.uint32(0x85EBCA6B)
    x = (x ^ (x >> 13)) * np.uint32(0xC2B2AE35)
    return x ^ (x >> 16)


def json_digest(value: Any) -> str:
    """Computes the SHA-256 of a JSON value, independent of the order of keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def file_digest(file: Any) -> str:
    """Computes the SHA-256 of a file of a run; raises UserError if it cannot be read."""
    return hashlib.sha256(location.read_bytes(file)).hexdigest()
