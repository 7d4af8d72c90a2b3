"""Devices that train together, of all processes of a run: a (data, model) mesh and its steps.

Rows of a batch lie along the data axis. `Devices` serves one device by `jax.jit`, `PmapDevices`
several by `jax.pmap`, with everything but the rows whole on each, and `MeshDevices` also shards
words, along the model axis. Between steps `PmapDevices` lays the state out in its own way;
checkpoints and validation see arrays of the mesh, which `state_to_mesh` and `to_mesh` make.
"""

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from zoo.base.arrays.parameter_sharding import Axes, cut_by_rows, path_name
from zoo.errors import UserError
from zoo.experiment import Parallel

DATA, MODEL = "data", "model"
# With FSDP, arrays of at least so many numbers lie in parts between steps.
LARGE = 2**14
_REPLICATED, _BY_ROWS = PartitionSpec(), PartitionSpec(DATA)


class TrainState(NamedTuple):
    """The state of training: all that a step changes."""

    params: Any
    optimizer_state: Any
    carry: Any  # the model's carry, leaves [B, ...]
    step: jax.Array


# The axis of each field that pmap splits over devices; None: replicated on every device.
_STATE_AXES = TrainState(params=None, optimizer_state=None, carry=0, step=None)  # type: ignore[arg-type]


class Devices:
    """Devices of all processes as a (data, model) mesh: rows of a batch lie along the data axis."""

    def __init__(self, count: int | list, batch: int, model: int = 1):
        """Makes a mesh of the first `count` devices of each process, or of the given devices."""
        devices = select_devices(count)
        self.count, self.batch = len(devices), batch
        place = f"{self.count} devices{_processes_note()}"
        if self.count % model:
            raise UserError(
                f"parallel.model={model} does not divide the {place}: give one that does, or "
                "--devices."
            )
        data = self.count // model
        if batch % data:
            if model > 1:
                place = f"the {data} devices along the data axis, {place} by parallel.model={model}"
            raise UserError(
                f"training.batch={batch} does not divide by {place}: set "
                f"training.batch={-(-batch // data) * data} or give --devices."
            )
        grid = np.array(devices).reshape(data, model)
        self.mesh = Mesh(grid, (DATA, MODEL), axis_types=(AxisType.Auto, AxisType.Auto))
        self.replicated: Any = NamedSharding(self.mesh, _REPLICATED)
        self.by_rows: Any = NamedSharding(self.mesh, _BY_ROWS)
        index_map: dict[Any, Any] = {**self.by_rows.devices_indices_map((batch,))}
        process = jax.process_index()
        bounds = [
            index[0].indices(batch)[:2]
            for device, index in index_map.items()
            if device.process_index == process
        ]
        self.rows = slice(min(start for start, _ in bounds), max(stop for _, stop in bounds))

    @property
    def summary(self) -> str:
        """The devices and processes, for the log."""
        return f"{self.count} device(s){_processes_note()}"

    def layouts(self, state) -> Any:
        """Returns the sharding of each leaf of a TrainState, in the layout of checkpoints."""
        layouts = jax.tree.map(lambda _: self.replicated, state)
        return layouts._replace(carry=jax.tree.map(lambda _: self.by_rows, state.carry))

    def with_layouts(self, shapes):
        """Adds shardings to the shapes of a TrainState, into which a checkpoint is then read."""
        return jax.tree.map(with_layout, shapes, self.layouts(shapes))

    def draw_state(self, initial_state, key, values: dict):
        """Computes the state before the first step; each device draws its shards of the leaves.

        Random numbers depend neither on the devices nor on the processes.
        """
        shapes = jax.eval_shape(initial_state, key, values)
        layouts = self.layouts(shapes)
        params = {
            name: jax.tree.map(put, part, layouts.params[name]) for name, part in values.items()
        }
        return self.for_steps(jax.jit(initial_state, out_shardings=layouts)(key, params))

    def copy_state(self, state):
        """Copies a TrainState into memory that a step may donate, and deletes the given leaves."""
        leaves, structure = jax.tree.flatten(state)
        del state
        copies = []
        for leaf in leaves:
            # On a CPU an array may be memory of NumPy's, which a step must not write to.
            copies.append(jax.block_until_ready(jnp.array(leaf, copy=True)))
            leaf.delete()
        return self.for_steps(jax.tree.unflatten(structure, copies))

    def carry_function(self, carry):
        """Compiles a function that makes the carry of an epoch's start, in the layout of a step."""
        layouts = jax.tree.map(lambda _: self.by_rows, jax.eval_shape(carry))
        return jax.jit(carry, out_shardings=layouts)

    def compile(self, step, **static):
        """Compiles step(state, tables, batch, key, axis=..., **static), which donates its state and
        returns (state, results), the same on every device."""
        return jax.jit(functools.partial(step, axis=None, **static), donate_argnums=0)

    def argument_shapes(self, state, tables, batch, key) -> tuple:
        """Returns the shapes of a step's arguments in its layout, from shapes of whole arrays."""
        return (
            self.shapes_for_steps(state),
            jax.tree.map(lambda x: with_layout(x, self.table_layout(x.shape)), tables),
            jax.tree.map(lambda x: with_layout(x, self.by_rows), batch),
            with_layout(key, self.replicated),
        )

    def shapes_for_steps(self, shapes):
        """Returns the shapes of a TrainState on the mesh, as it lies between steps."""
        return self.with_layouts(shapes)

    def for_steps(self, state):
        """Converts a TrainState of the mesh to the layout of a step."""
        return state

    def to_mesh(self, tree):
        """Converts outputs of a step, except carries, to arrays of the mesh without a copy."""
        return tree

    def state_to_mesh(self, state):
        """Converts a TrainState from the layout of a step to arrays of the mesh."""
        return state

    def place(self, tree):
        """Puts host arrays on every device."""
        return jax.tree.map(lambda x: put(x, self.replicated), tree)

    def place_tables(self, tree):
        """Puts tables on the devices in the layout of a step."""
        return jax.tree.map(lambda x: put(x, self.table_layout(np.shape(x))), tree)

    def table_layout(self, shape) -> Any:
        """Returns the sharding of a table of this shape."""
        return self.replicated

    def split(self, tree):
        """Splits leaves [rows of this process, ...] over its devices in the layout of a step."""
        return jax.tree.map(self._split, tree)

    def _split(self, leaf):
        """Splits one array over the devices."""
        shape = (self.batch, *leaf.shape[1:])
        return jax.make_array_from_process_local_data(self.by_rows, leaf, shape)

    def to_host(self, tree):
        """Copies arrays that are the same on every device to the host."""
        return jax.tree.map(lambda leaf: np.asarray(leaf.addressable_data(0)), tree)


def select_devices(count: int | list) -> list:
    """Returns the first `count` devices of each process, process by process; or given devices."""
    if isinstance(count, list):
        return count
    local = jax.local_device_count()  # as many as in any other process: see zoo.base.distributed
    if not 0 <= count <= local:
        raise UserError(f"--devices {count}: this machine has {local}; 0 takes all.")
    return [
        device
        for process in range(jax.process_count())
        for device in jax.local_devices(process)[: count or local]
    ]


def _processes_note() -> str:
    """Returns the number of processes as words for a message, if there are several."""
    count = jax.process_count()
    return f" of {count} processes" if count > 1 else ""


def put(array, layout) -> jax.Array:
    """Puts a host array on devices: each device receives only its shard."""
    array = np.asarray(array)
    return jax.make_array_from_callback(array.shape, layout, lambda index: array[index])


def with_layout(shape, layout) -> jax.ShapeDtypeStruct:
    """Adds a sharding to a ShapeDtypeStruct."""
    return jax.ShapeDtypeStruct(shape.shape, shape.dtype, sharding=layout)


def sum_over_devices(tree, axis: str | None):
    """Sums each leaf of a pytree over the devices of a named axis."""
    return tree if axis is None else jax.lax.psum(tree, axis)


# ---- several devices by `jax.pmap`: each has its share of batch rows, and everything else whole


class PmapDevices(Devices):
    """Several devices by `jax.pmap`: each has its share of the rows, and everything else whole.

    A step takes arrays of this process's devices: replicated leaves unchanged, and split leaves
    with an axis of devices before the axis of rows.
    """

    def __init__(self, count: int | list, batch: int):
        super().__init__(count, batch)
        process = jax.process_index()
        local = [each for each in self.mesh.devices.flat if each.process_index == process]
        mesh = Mesh(np.array(local), (DATA,), axis_types=(AxisType.Auto,))
        self._local_replicated = NamedSharding(mesh, _REPLICATED)
        self._local_by_devices = NamedSharding(mesh, _BY_ROWS)
        self._local_count = len(local)

    def compile(self, step, **static):
        # Replicated leaves have no axis of devices: the copy on a device is read where it lies.
        return jax.pmap(
            functools.partial(step, axis=DATA, **static),
            axis_name=DATA,
            devices=[*self.mesh.devices.flat],
            donate_argnums=0,
            in_axes=(_STATE_AXES, None, 0, None),
            out_axes=(_STATE_AXES, None),
        )

    def argument_shapes(self, state, tables, batch, key):
        def split(leaf):
            shape = self._local_count, leaf.shape[0] // self._local_count, *leaf.shape[1:]
            return jax.ShapeDtypeStruct(shape, leaf.dtype)

        carry, batch = jax.tree.map(split, (state.carry, batch))
        return state._replace(carry=carry), tables, batch, key

    def for_steps(self, state):
        arrays = jax.tree.map(
            lambda x: _reshard(x, x.shape, self._local_replicated), state._replace(carry=())
        )
        return arrays._replace(carry=jax.tree.map(self._by_devices, state.carry))

    def _by_devices(self, leaf):
        """Gives an array of the mesh an axis of devices before the axis of rows."""
        shape = (self._local_count, self.batch // self.count, *leaf.shape[1:])
        return _reshard(leaf, shape, self._local_by_devices, (1, *shape[1:]))

    def to_mesh(self, tree):
        return jax.tree.map(lambda leaf: _reshard(leaf, leaf.shape, self.replicated), tree)

    def state_to_mesh(self, state):
        arrays = self.to_mesh(state._replace(carry=()))
        return arrays._replace(carry=jax.tree.map(self._by_rows, state.carry))

    def _by_rows(self, leaf):
        """Removes the axis of devices: an array of the mesh, by rows."""
        shape = (self.batch, *leaf.shape[2:])
        return _reshard(leaf, shape, self.by_rows, leaf.shape[1:])

    def carry_function(self, carry):
        make_carry = super().carry_function(carry)
        return lambda: jax.tree.map(self._by_devices, make_carry())

    def place(self, tree):
        return jax.tree.map(lambda x: put(x, self._local_replicated), tree)

    def table_layout(self, shape) -> Any:
        return self._local_replicated

    def _split(self, leaf):
        shape = (self._local_count, leaf.shape[0] // self._local_count, *leaf.shape[1:])
        return jax.device_put(leaf.reshape(shape), self._local_by_devices)


def _reshard(array: jax.Array, shape, layout, shard_shape=None) -> jax.Array:
    """Wraps the buffers of an array as an array with another sharding, without a copy."""
    parts = [shard.data for shard in array.addressable_shards]
    if shard_shape is not None:
        parts = [part.reshape(shard_shape) for part in parts]
    return jax.make_array_from_single_device_arrays(tuple(shape), layout, parts)


# ------ words sharded over devices: the compiler inserts the communication. Rows of words, in
# parameters, in the optimiser's state and in tables, lie along the model axis.


class LeafLayout(NamedTuple):
    """The layout of a leaf of a TrainState on a mesh with a model axis."""

    shape: tuple[int, ...]
    saved: NamedSharding  # in checkpoints and validation
    step: NamedSharding  # between steps, padded
    computation: NamedSharding  # within a step

    @property
    def padding(self) -> list[tuple[int, int]]:
        """The widths of padding, (0, n), of each axis in a step."""
        sizes = self.step.mesh.shape
        counts = (
            math.prod(sizes[name] for name in jax.tree.leaves(names)) for names in self.step.spec
        )
        axes = itertools.zip_longest(self.shape, counts, fillvalue=1)
        return [(0, -size % count) for size, count in axes]

    def pad(self, leaf):
        """Pads an array with zeros."""
        padded = jnp.pad(leaf, self.padding) if self.shape else leaf
        return jax.lax.with_sharding_constraint(padded, self.step)

    def cut(self, leaf):
        """Cuts the padding off an array, and gathers it where a step needs it whole."""
        part = leaf[tuple(map(slice, self.shape))]
        return jax.lax.with_sharding_constraint(part, self.computation)

    def convert(self, function: Callable, sharding: NamedSharding, leaf):
        """Pads an array, or cuts its padding, and deletes it, unless it may stay as it is."""
        if self.step == self.saved:
            return leaf
        result = jax.block_until_ready(jax.jit(function, out_shardings=sharding)(leaf))
        leaf.delete()
        return result


class MeshDevices(Devices):
    """Devices along two axes: rows of a batch along one, words along the other.

    In a step, rows of words that do not divide by the model axis are padded to a multiple. The
    step's function never sees the padding: XLA masks it. Checkpoints and validation have the rows
    without padding, cut by columns if these divide by the model axis, and whole otherwise.

    With `fsdp`, each large parameter that a step needs whole lies in parts over all devices between
    steps, with its moments and its average. A step gathers the parameters and sums the gradients.
    """

    def __init__(
        self,
        count: int | list,
        batch: int,
        model: int,
        state: Any,
        parameter_axes: Axes,
        words: Sequence[int],
        fsdp: bool = False,
    ):
        """Chooses the layout of each leaf of a TrainState, given by its shapes."""
        if model > min(words):
            raise UserError(
                f"parallel.model={model} are more shards than there are words, {min(words)}: give "
                "a smaller number."
            )
        super().__init__(count, batch, model)
        self.model, self._words, self._fsdp = model, tuple(words), fsdp
        arguments = parameter_axes, state.params, self.mesh, MODEL
        saved, padded = (cut_by_rows(*arguments, pad) for pad in (False, True))
        self._layouts = {
            path_name(path): self._parameter_layout(leaf.shape, *shardings)
            for (path, leaf), *shardings in zip(
                jax.tree_util.tree_leaves_with_path(state.params),
                jax.tree.leaves(saved.shardings),
                jax.tree.leaves(padded.shardings),
                strict=True,
            )
        }
        leaves = jax.tree_util.tree_leaves_with_path(state._replace(carry=()))
        self._state_layouts = [self._leaf_layout(path_name(path), x) for path, x in leaves]

    @property
    def summary(self) -> str:
        data = self.count // self.model
        return f"{super().summary} as {data} (data) x {self.model} (model)"

    def _parameter_layout(self, shape, saved, padded) -> LeafLayout:
        """Chooses the layout of a parameter; with FSDP, one that a step needs whole lies in parts
        between steps, cut by its longest axis."""
        is_whole = self.model == 1 or not any(padded.spec)
        if not (self._fsdp and is_whole and math.prod(shape) >= LARGE):
            return LeafLayout(shape, saved, padded, padded)
        spec = PartitionSpec(*[None] * shape.index(max(shape)), (DATA, MODEL))
        return LeafLayout(shape, saved, NamedSharding(self.mesh, spec), saved)

    def _leaf_layout(self, name, leaf) -> LeafLayout:
        """Chooses the layout of a leaf of the state.

        A leaf whose path contains the path of a parameter of the same shape is sharded as that
        parameter: so the optimiser's moments and averages lie with their parameters. Other leaves
        are replicated.
        """
        names = name.replace(".", "/").split("/")  # a dot in those of tables updated by rows
        for first, end in itertools.combinations(range(len(names) + 1), 2):
            layout = self._layouts.get("/".join(names[first:end]))
            if layout and layout.shape == leaf.shape:
                is_parameter = names[0] == "params"
                return layout if is_parameter else layout._replace(computation=layout.step)
        return LeafLayout(leaf.shape, *3 * (self.replicated,))

    def _map_leaves(self, function, state):
        """Computes function(layout, leaf) of all leaves of a TrainState but the carry's."""
        leaves, structure = jax.tree.flatten(state._replace(carry=()))
        results = map(function, self._state_layouts, leaves)
        return jax.tree.unflatten(structure, results)._replace(carry=state.carry)

    def layouts(self, state):
        layouts = self._map_leaves(lambda layout, _: layout.saved, state)
        return layouts._replace(carry=jax.tree.map(lambda _: self.by_rows, state.carry))

    def compile(self, step, **static):
        """Compiles a step whose new state keeps the layout of the old; see Devices.compile."""

        def mesh_step(state, tables, batch, key):
            state = self._map_leaves(LeafLayout.cut, state)
            state, results = step(state, tables, batch, key, axis=None, **static)
            state, layouts = self._map_leaves(LeafLayout.pad, state), self.layouts(state)
            others = (state.carry, results), (layouts.carry, self.replicated)
            carry, results = jax.lax.with_sharding_constraint(*others)
            return state._replace(carry=carry), results

        return jax.jit(mesh_step, donate_argnums=0)

    def shapes_for_steps(self, shapes):
        def padded(layout, leaf):
            return with_layout(jax.eval_shape(layout.pad, leaf), layout.step)

        return self._map_leaves(padded, self.with_layouts(shapes))

    def for_steps(self, state):
        return self._map_leaves(lambda leaf, x: leaf.convert(leaf.pad, leaf.step, x), state)

    def state_to_mesh(self, state):
        return self._map_leaves(lambda leaf, x: leaf.convert(leaf.cut, leaf.saved, x), state)

    def table_layout(self, shape) -> NamedSharding:
        """Shards a table with one row a word, if its rows divide."""
        is_sharded = shape and shape[0] in self._words and shape[0] % self.model == 0
        return NamedSharding(self.mesh, PartitionSpec(MODEL) if is_sharded else _REPLICATED)


def choose_devices(
    count: int | list,
    batch: int,
    parallel: Parallel,
    words: Sequence[int],
    parameter_axes: Axes,
    initial_state: Callable[[], Any],
) -> Devices:
    """Chooses the devices that train a model together; `words`: the sizes of its lexicons."""
    if len(select_devices(count)) == parallel.model == 1:
        return Devices(count, batch)
    if parallel.model == 1 and not parallel.fsdp:
        return PmapDevices(count, batch)
    state = jax.eval_shape(initial_state)
    axes = parameter_axes, words
    return MeshDevices(count, batch, parallel.model, state, *axes, parallel.fsdp)
