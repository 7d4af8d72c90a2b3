"""Functions of arrays that are shared out over devices, in whatever way.

An axis of a mesh of devices is of one of three kinds. Of an automatic one, arrays do not tell how
they lie along it, and the compiler finds what is to be sent. Of an explicit one, the types of
arrays tell it, and functions have to say how results lie wherever that is open. Along a manual one,
as within `jax.shard_map`, a function sees the part of one device; types tell which arrays vary from
device to device, and loops want that of what they carry.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec


def alike(tree):
    """The tree, its arrays varying over all manual axes over which any of them varies.

    A loop may then carry what is made of one of them, `zeros` for a start, and add what is made of
    another. The gradient of an array that was the same on all devices is summed over them.
    """
    arrays = [x for x in jax.tree.leaves(tree) if _is_array(x)]
    axes = frozenset().union(*map(_varying, arrays))
    if not axes:
        return tree

    def vary(x):
        missing = tuple(sorted(axes - _varying(x))) if _is_array(x) else ()
        return jax.lax.pcast(x, missing, to="varying") if missing else x

    return jax.tree.map(vary, tree)


def zeros(shape, dtype, like: jax.Array) -> jax.Array:
    """Zeros that vary over the manual axes over which the array `like` varies."""
    return jnp.zeros_like(like, dtype=dtype, shape=shape)


def filled(shape, value, dtype, like: jax.Array) -> jax.Array:
    """`zeros` of another value."""
    return jnp.full_like(like, value, dtype=dtype, shape=shape)


def _is_array(x) -> bool:
    return isinstance(x, jax.Array | np.ndarray)


def _varying(x) -> frozenset[str]:
    return jax.typeof(x).manual_axis_type.varying


# ---------------------------------------------------------------- explicit axes


def explicit_mesh(tree):
    """The mesh of the explicit axes over which arrays of the tree lie; None if there is none."""
    for x in jax.tree.leaves(tree):
        if isinstance(x, jax.Array):
            mesh = jax.typeof(x).sharding.mesh
            if AxisType.Explicit in (mesh.axis_types or ()):
                return mesh
    return None


def spec_of(array) -> tuple:
    """How an array lies: for each of its axes the axes of the mesh, a tuple of names."""
    spec = jax.typeof(array).sharding.spec
    names = [() if name is None else name if isinstance(name, tuple) else (name,) for name in spec]
    return (*names, *[()] * (np.ndim(array) - len(names)))


def automatic(function: Callable, tree, mesh, spec: Callable[[Any], PartitionSpec]):
    """function(tree) with the explicit axes of a mesh made automatic within it.

    Args:
      function: of a tree like `tree`, to a tree of arrays.
      tree: arrays, and whatever else the function wants.
      mesh: see `explicit_mesh`.
      spec: of a result, how it lies on the mesh.
    """
    leaves, structure = jax.tree.flatten(tree)
    slots = [slot for slot, x in enumerate(leaves) if _is_array(x)]
    inner = mesh.update_axis_types(
        {
            name: AxisType.Auto
            for name, kind in zip(mesh.axis_names, mesh.axis_types, strict=True)
            if kind == AxisType.Explicit
        }
    )

    def of_arrays(arrays):
        with jax.sharding.use_abstract_mesh(inner):
            within = [jax.sharding.reshard(x, PartitionSpec(*[None] * x.ndim)) for x in arrays]
            given = [*leaves]
            for slot, x in zip(slots, within, strict=True):
                given[slot] = x
            results = function(jax.tree.unflatten(structure, given))
        return jax.tree.map(
            lambda x: jax.sharding.reshard(x, NamedSharding(mesh, spec(x))), results
        )

    # Compiled in any case: operations one by one would have to be told of the mesh.
    return jax.jit(of_arrays)([leaves[slot] for slot in slots])
