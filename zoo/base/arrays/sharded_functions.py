"""Functions of arrays that are sharded over devices, on all kinds of mesh axes.

An axis of a mesh of devices has one of three kinds. Along an automatic axis, the types of arrays do
not give their sharding, and the compiler inserts the communication. Along an explicit axis, the
types of arrays give their sharding, and functions must give the sharding of results wherever it is
ambiguous. Along a manual axis, as within `jax.shard_map`, a function sees the shard of one device;
types give the arrays that vary over devices, and the arrays that a loop carries must vary from the
start.

The type of an array that was placed on a mesh names this mesh, or the mesh of `jax.set_mesh`, even
where it does not give the sharding. The mesh knows its devices: what depends on their platform or
number is asked of it, so that a program can be compiled for devices that the machine does not have.
"""

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AbstractDevice, AbstractMesh, AxisType, NamedSharding, PartitionSpec

_ARRAYS = jax.Array | np.ndarray


def vary_together(tree: Any) -> Any:
    """Makes all arrays of a tree vary over all manual axes over which any of them varies.

    A loop may then carry results of all of them, starting from `zeros`. The gradient of an array
    that was the same on all devices is summed over the devices.
    """
    arrays = [x for x in jax.tree.leaves(tree) if isinstance(x, _ARRAYS)]
    axes = frozenset().union(*(jax.typeof(x).manual_axis_type.varying for x in arrays))
    if not axes:
        return tree

    def vary(x):
        varying = jax.typeof(x).manual_axis_type.varying if isinstance(x, _ARRAYS) else axes
        missing = tuple(sorted(axes - varying))
        return jax.lax.pcast(x, missing, to="varying") if missing else x

    return jax.tree.map(vary, tree)


def zeros(shape: Any, dtype: Any, like: jax.Array) -> jax.Array:
    """Makes zeros that vary over the manual axes over which the array `like` varies."""
    return jnp.zeros_like(like, dtype=dtype, shape=shape)


def filled(shape: Any, value: Any, dtype: Any, like: jax.Array) -> jax.Array:
    """Makes an array filled with a value, as `zeros` does with 0."""
    return jnp.full_like(like, value, dtype=dtype, shape=shape)


def _meshes(tree):
    types = (jax.typeof(x) for x in jax.tree.leaves(tree) if isinstance(x, _ARRAYS))
    return (kind.sharding.mesh for kind in types if not kind.sharding.mesh.empty)


def _mesh_or_context(tree):
    return next(_meshes(tree), jax.sharding.get_abstract_mesh())


def platform(tree: Any) -> str:
    """Returns the platform on which arrays lie, "cpu", "gpu" or "tpu", by the mesh of their types,
    or the mesh in context, or JAX's default; "" within `for_any_platform`."""
    device = _mesh_or_context(tree).abstract_device
    return device.platform if device else jax.default_backend()


def is_local(tree: Any) -> bool:
    """Whether arrays are known to lie on one device: in `pmap` and `shard_map`, or if their mesh,
    or the machine where no mesh is known, has one.

    Under `jit` with several devices, a sum over blocks of tokens would be sent after each block.
    """
    mesh = _mesh_or_context(tree)
    if mesh.empty:
        return jax.device_count() == 1
    sizes = zip(mesh.axis_sizes, mesh.axis_types, strict=True)
    return math.prod(size for size, kind in sizes if kind != AxisType.Manual) == 1


def for_any_platform() -> Any:
    """Returns a context in which functions are traced for one device, whatever its platform."""
    device = AbstractDevice(device_kind="", num_cores=None, platform="")
    mesh = AbstractMesh((1,), ("device",), (AxisType.Auto,), abstract_device=device)
    return jax.sharding.use_abstract_mesh(mesh)


# ---------------------------------------------------------------- automatic axes


def split_rows(rows: int, block: int, tree: Any) -> tuple[int, int]:
    """Divides rows into runs of adjacent rows that each lie on one device.

    Gives (number of runs, which divides the rows; rows of each run in a block). `tree`: arrays of
    the computation, whose types may name a mesh. Where no type does, all devices count, though the
    computation may use only one: a block is then shared by all of them.
    """
    mesh = next(_meshes(tree), None)
    if not isinstance(rows, int | np.integer):  # a symbol, as exported programs have
        return 1, block
    if mesh is None:
        count = 1 if is_local(tree) else math.gcd(rows, jax.device_count())
        return count, -(-block // count)
    return math.gcd(rows, automatic_devices(tree)), block


def replicate_rows(array: jax.Array) -> jax.Array:
    """Replicates the rows of an array on every device of an automatic mesh, once.

    Each lookup of rows by number would otherwise search every device and sum over them.
    """
    if automatic_devices(array) == 1:
        return array
    column_axes = [PartitionSpec.UNCONSTRAINED] * (array.ndim - 1)
    sharding = NamedSharding(next(_meshes(array)), PartitionSpec(None, *column_axes))
    return jax.lax.with_sharding_constraint(array, sharding)


def automatic_devices(tree: Any) -> int:
    """Counts the devices along the automatic axes of the mesh of arrays; 1 without a mesh."""
    return math.prod(_automatic_sizes(tree))


def grid(tree: Any) -> tuple[int, int]:
    """Counts the devices over which tokens and words are taken to lie, along automatic axes of the
    mesh of arrays: words along the last of several axes, tokens along the others. A single axis,
    which may be either's, counts as one device."""
    sizes = _automatic_sizes(tree)
    return (math.prod(sizes[:-1]), sizes[-1]) if len(sizes) > 1 else (1, 1)


def _automatic_sizes(tree) -> list[int]:
    """Returns the size of each axis of the mesh of arrays, 1 for axes that are not automatic."""
    mesh = next(_meshes(tree), None)
    if mesh is None:
        return []
    axes = zip(mesh.axis_sizes, mesh.axis_types, strict=True)
    return [size if kind == AxisType.Auto else 1 for size, kind in axes]


def over_grid(grid: tuple[int, int], function: Callable, token_arrays: Any, tables: Any) -> Any:
    """Computes function(number of a run of rows, token arrays [n, ...], tables [size, ...]) on each
    device of a grid, for a run of adjacent tokens and a run of adjacent rows, as if nothing else
    were: only sums over the runs are sent, of results and of gradients.

    `function` gives results of tokens, [n, ...]; gives them for each run of rows, [runs, N, ...].
    Rows that fill up the last run are 0. Where rows are one run, arrays need no mesh.
    """
    if grid == (1, 1):
        return jax.tree.map(lambda x: x[None], function(0, token_arrays, tables))
    tokens, row_runs = jax.tree.leaves(token_arrays)[0].shape[0], grid[1]
    token_runs = math.gcd(grid[0], tokens)

    def lay_out(x):
        if row_runs == 1:
            return x
        mesh, free = next(_meshes((token_arrays, tables))), [PartitionSpec.UNCONSTRAINED]
        layout = NamedSharding(mesh, PartitionSpec(mesh.axis_names[-1], *free * (x.ndim - 1)))
        return jax.lax.with_sharding_constraint(x, layout)

    def cut_tokens(x):
        runs = x.reshape(token_runs, -1, *x.shape[1:])
        return lay_out(jnp.broadcast_to(runs, (row_runs, *runs.shape)))

    def cut_table(x):
        padding = (0, -x.shape[0] % row_runs), *[(0, 0)] * (x.ndim - 1)
        runs = jnp.pad(x, padding).reshape(row_runs, 1, -1, *x.shape[1:])
        return lay_out(jnp.broadcast_to(runs, (row_runs, token_runs, *runs.shape[2:])))

    arrays = jax.tree.map(cut_tokens, token_arrays), jax.tree.map(cut_table, tables)
    results = jax.vmap(jax.vmap(function, (None, 0, 0)))(jnp.arange(row_runs), *arrays)
    return jax.tree.map(lambda x: x.reshape(row_runs, tokens, *x.shape[3:]), results)


def rows_here(rows: jax.Array, run: jax.Array, size: Any) -> tuple[jax.Array, jax.Array]:
    """Returns (rows within a run of `size` rows, 0 for rows elsewhere; whether they are here)."""
    within = rows - run * size
    is_here = (within >= 0) & (within < size)
    return jnp.where(is_here, within, 0), is_here


# ---------------------------------------------------------------- explicit axes


def explicit_mesh(tree: Any) -> Any:
    """Returns the first mesh with explicit axes on which an array of a tree lies, or None."""
    return next((mesh for mesh in _meshes(tree) if AxisType.Explicit in mesh.axis_types), None)


def spec_of(array: jax.Array) -> tuple:
    """Returns the sharding of an array: for each of its axes a tuple of names of mesh axes."""
    spec = jax.typeof(array).sharding.spec
    names = [() if name is None else name if isinstance(name, tuple) else (name,) for name in spec]
    return (*names, *[()] * (np.ndim(array) - len(names)))


def with_automatic_axes(function: Callable, tree: Any, mesh: Any, spec: Callable) -> Any:
    """Computes function(tree) with the explicit axes of a mesh made automatic within it."""
    leaves, structure = jax.tree.flatten(tree)
    slots = [slot for slot, x in enumerate(leaves) if isinstance(x, _ARRAYS)]
    inner = mesh.update_axis_types(
        {
            name: AxisType.Auto
            for name, kind in zip(mesh.axis_names, mesh.axis_types, strict=True)
            if kind == AxisType.Explicit
        }
    )

    def call(arrays):
        with jax.sharding.use_abstract_mesh(inner):
            within = [jax.sharding.reshard(x, PartitionSpec(*[None] * x.ndim)) for x in arrays]
            arguments = [*leaves]
            for slot, x in zip(slots, within, strict=True):
                arguments[slot] = x
            results = function(jax.tree.unflatten(structure, arguments))
        return jax.tree.map(
            lambda x: jax.sharding.reshard(x, NamedSharding(mesh, spec(x))), results
        )

    # Always compiled: operations one by one would need the mesh as an argument.
    return jax.jit(call)([leaves[slot] for slot in slots])


def over_tokens(argument: str, axes: int = 1) -> Callable[[Any], Any]:
    """Decorates a function of tokens, so that it can be called with arrays on explicit axes.

    `argument` is the name of the states; their axes except the last `axes` are the tokens'.
    """

    def decorate(function):
        """Wraps the function for arrays on explicit axes; others call it unchanged."""
        signature = inspect.signature(function)

        @functools.wraps(function)
        def wrapper(*positional, **keywords):
            mesh = explicit_mesh((positional, keywords))
            if mesh is None:
                return function(*positional, **keywords)
            bound = signature.bind(*positional, **keywords)
            token_spec = spec_of(bound.arguments[argument])
            token_spec = token_spec[: len(token_spec) - axes]

            def spec(result):
                if result.ndim < len(token_spec):
                    return PartitionSpec()
                return PartitionSpec(*token_spec, *[None] * (result.ndim - len(token_spec)))

            arguments = bound.args, bound.kwargs
            return with_automatic_axes(lambda x: function(*x[0], **x[1]), arguments, mesh, spec)

        return wrapper

    return decorate
