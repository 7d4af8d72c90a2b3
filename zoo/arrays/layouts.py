"""Functions of arrays that are shared out over devices, in whatever way.

An axis of a mesh of devices is of one of three kinds. Of an automatic one, arrays do not tell how
they lie along it, and the compiler finds what is to be sent. Of an explicit one, the types of
arrays tell it, and functions have to say how results lie wherever that is open. Along a manual one,
as within `jax.shard_map`, a function sees the part of one device; types tell which arrays vary from
device to device, and loops want that of what they carry.

Types of arrays that were placed on a mesh name it, or that of `jax.set_mesh`, even where they do
not tell how the arrays lie.
"""

import functools
import inspect
import math
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


def _meshes(tree):
    """The meshes of the types of the arrays, each array's that has one."""
    types = (jax.typeof(x) for x in jax.tree.leaves(tree) if _is_array(x))
    return (kind.sharding.mesh for kind in types if not kind.sharding.mesh.empty)


# ---------------------------------------------------------------- automatic axes


def shares(rows: int, block: int, tree) -> tuple[int, int]:
    """Runs of adjacent rows that each lie on one device, if rows are shared out at all.

    Args:
      rows: how many there are.
      block: rows that a device takes at a time.
      tree: arrays of the computation, whose types may name a mesh. Where none does, the devices are
        all that there are, of which the computation may want one: a block is then of all of them.

    Returns:
      (how many runs, which divides the rows; rows of each in a block).
    """
    mesh = next(_meshes(tree), None)
    if not isinstance(rows, int | np.integer):  # a symbol, as exported programs have
        return 1, block
    if mesh is None:
        count = math.gcd(rows, jax.device_count())
        return count, -(-block // count)
    return math.gcd(rows, automatic_devices(tree)), block


def rows_whole(array):
    """The array [N, ...] with all of its rows on every device, sent once; as it is where no type
    names a mesh.

    Rows that are read by number would otherwise be looked for on every device and be summed over
    them, time after time.
    """
    if automatic_devices(array) == 1:
        return array
    others = [PartitionSpec.UNCONSTRAINED] * (array.ndim - 1)
    sharding = NamedSharding(next(_meshes(array)), PartitionSpec(None, *others))
    return jax.lax.with_sharding_constraint(array, sharding)


def automatic_devices(tree) -> int:
    """How many devices lie along the automatic axes of the mesh of the arrays; 1 without a mesh."""
    mesh = next(_meshes(tree), None)
    if mesh is None:
        return 1
    sizes = zip(mesh.axis_sizes, mesh.axis_types, strict=True)
    return math.prod(size for size, kind in sizes if kind == AxisType.Auto)


# ---------------------------------------------------------------- explicit axes


def explicit_mesh(tree):
    """The mesh of the explicit axes over which arrays of the tree lie; None if there is none."""
    return next((mesh for mesh in _meshes(tree) if AxisType.Explicit in mesh.axis_types), None)


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


def over_tokens(argument: str, axes: int = 1):
    """Decorates a function of tokens, so that it can be called with arrays on explicit axes.

    Args:
      argument: the name of an array [..., ?] of it, whose leading axes are those of the tokens.
      axes: how many of its axes are not.
    """

    def decorate(function):
        signature = inspect.signature(function)

        @functools.wraps(function)
        def called(*positional, **named):
            mesh = explicit_mesh((positional, named))
            if mesh is None:
                return function(*positional, **named)
            bound = signature.bind(*positional, **named)
            of_tokens = spec_of(bound.arguments[argument])[:-axes]

            def spec(result):
                if result.ndim < len(of_tokens):
                    return PartitionSpec()
                return PartitionSpec(*of_tokens, *[None] * (result.ndim - len(of_tokens)))

            def whole(given):
                return function(*given[0], **given[1])

            return automatic(whole, (bound.args, bound.kwargs), mesh, spec)

        return called

    return decorate
