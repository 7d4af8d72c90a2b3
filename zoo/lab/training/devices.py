"""Devices that train together, of all processes of a run: a (data, model) mesh and its steps.

Rows of a batch lie along the data axis. `Devices` serves one device by `jax.jit`, `PmapDevices`
several by `jax.pmap`, with everything but the rows whole on each, and `MeshDevices` also shards
words, along the model axis. Between steps `PmapDevices` lays the state out in its own way;
checkpoints and validation see arrays of the mesh, which `whole` and `everywhere` make.
"""

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

from zoo.base.arrays.parameter_sharding import Axes, cut_by_rows, path_name
from zoo.errors import UserError
from zoo.experiment import Parallel

DATA, MODEL = "data", "model"
_WHOLE, _BY_ROWS = PartitionSpec(), PartitionSpec(DATA)


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

    def __init__(self, count: int, batch: int, model: int = 1):
        """Makes a mesh of the first `count` devices of each process."""
        devices = chosen(count)
        self.count, self.batch = len(devices), batch
        if self.count % model:
            raise UserError(
                f"parallel.model={model} does not divide the {self._named}: give one that does, or "
                "--devices."
            )
        data = self.count // model
        if batch % data:
            named = self._named
            if model > 1:
                named = f"the {data} devices along the data axis, {named} by parallel.model={model}"
            raise UserError(
                f"training.batch={batch} does not divide by {named}: set "
                f"training.batch={-(-batch // data) * data} or give --devices."
            )
        grid = np.array(devices).reshape(data, model)
        self.mesh = Mesh(grid, (DATA, MODEL), axis_types=(AxisType.Auto, AxisType.Auto))
        self.replicated: Any = NamedSharding(self.mesh, _WHOLE)
        self.by_rows: Any = NamedSharding(self.mesh, _BY_ROWS)
        if self.count == 1:
            self.replicated = self.by_rows = SingleDeviceSharding(devices[0])
        here = self.by_rows.addressable_devices_indices_map((batch,)).values()
        ends = [index[0].indices(batch)[:2] if index else (0, batch) for index in here]
        self.rows = slice(min(first for first, _ in ends), max(last for _, last in ends))

    @property
    def summary(self) -> str:
        return f"{self.count} device(s){_of_processes()}"

    @property
    def _named(self) -> str:
        return f"{self.count} devices{_of_processes()}"

    def layouts(self, state) -> Any:
        """Returns the sharding of each leaf of a TrainState, in the layout of checkpoints."""
        whole = jax.tree.map(lambda _: self.replicated, state)
        return whole._replace(carry=jax.tree.map(lambda _: self.by_rows, state.carry))

    def laid_out(self, shapes):
        """Returns the shapes of a TrainState with shardings, for a checkpoint to be read into."""
        return jax.tree.map(laid_out, shapes, self.layouts(shapes))

    def drawn(self, initial_state, key, taken: dict):
        """Computes the state before the first step; each device draws its shards of the leaves.

        Random numbers depend neither on the devices nor on the processes.
        """
        shapes = jax.eval_shape(initial_state, key, taken)
        layouts = self.layouts(shapes)
        parts = {
            name: jax.tree.map(placed, part, layouts.params[name]) for name, part in taken.items()
        }
        return self.for_steps(jax.jit(initial_state, out_shardings=layouts)(key, parts))

    def restored(self, state):
        """Copies a TrainState into memory that a step may donate, and deletes the given leaves."""
        leaves, structure = jax.tree.flatten(state)
        del state
        copies = []
        for leaf in leaves:
            # On a CPU an array may be memory of NumPy's, which a step must not write to.
            copies.append(jax.block_until_ready(jnp.array(leaf, copy=True)))
            leaf.delete()
        return self.for_steps(jax.tree.unflatten(structure, copies))

    def empty(self, carry):
        """Returns a function that makes the carry of an epoch's start in the layout of a step."""
        layouts = jax.tree.map(lambda _: self.by_rows, jax.eval_shape(carry))
        return jax.jit(carry, out_shardings=layouts)

    def compile(self, step, **static):
        """Compiles step(state, tables, batch, key, axis=..., **static), which donates its state and
        returns (state, results), the same on every device."""
        return jax.jit(functools.partial(step, axis=None, **static), donate_argnums=0)

    def for_steps(self, state):
        """Converts a TrainState of the mesh to the layout of a step."""
        return state

    def everywhere(self, tree):
        """Converts outputs of a step, except carries, to arrays of the mesh; nothing is copied."""
        return tree

    def whole(self, state):
        """Converts a TrainState from the layout of a step to arrays of the mesh."""
        return state

    def place(self, tree):
        """Puts host arrays on every device."""
        return jax.tree.map(lambda x: placed(x, self.replicated), tree)

    def place_tables(self, tree):
        """Puts tables on the devices in the layout of a step."""
        return jax.tree.map(lambda x: placed(x, self.of_table(np.shape(x))), tree)

    def of_table(self, shape) -> Any:
        """Returns the sharding of a table of this shape."""
        return self.replicated

    def split(self, tree):
        """Splits leaves [rows of this process, ...] over its devices in the layout of a step."""
        return jax.tree.map(self._split, tree)

    def _split(self, leaf):
        shape = (self.batch, *leaf.shape[1:])
        return jax.make_array_from_process_local_data(self.by_rows, leaf, shape)

    def first(self, tree):
        """Copies arrays that are the same on every device to the host."""
        return jax.tree.map(lambda leaf: np.asarray(leaf.addressable_data(0)), tree)


def chosen(count: int) -> list:
    """Returns the first `count` devices of each process, process by process."""
    here = jax.local_device_count()  # as many as in any other process: see zoo.base.distributed
    if not 0 <= count <= here:
        raise UserError(f"--devices {count}: this machine has {here}; 0 takes all.")
    return [
        device
        for process in range(jax.process_count())
        for device in jax.local_devices(process)[: count or here]
    ]


def own(devices: list) -> list:
    """Returns the devices that belong to this process."""
    return [device for device in devices if device.process_index == jax.process_index()]


def _of_processes() -> str:
    count = jax.process_count()
    return f" of {count} processes" if count > 1 else ""


def placed(array, layout) -> jax.Array:
    """Puts a host array on devices: each device receives only its shard."""
    array = np.asarray(array)
    return jax.make_array_from_callback(array.shape, layout, lambda index: array[index])


def laid_out(shape, layout) -> jax.ShapeDtypeStruct:
    """Returns a ShapeDtypeStruct with a sharding."""
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

    def __init__(self, count: int, batch: int):
        super().__init__(count, batch)
        here = own([*self.mesh.devices.flat])
        mesh = Mesh(np.array(here), (DATA,), axis_types=(AxisType.Auto,))
        self._own_replicated = NamedSharding(mesh, _WHOLE)
        self._own_by_devices = NamedSharding(mesh, _BY_ROWS)
        self._own = len(here)

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

    def for_steps(self, state):
        arrays = jax.tree.map(
            lambda leaf: _moved(leaf, leaf.shape, self._own_replicated), state._replace(carry=())
        )
        return arrays._replace(carry=jax.tree.map(self._by_devices, state.carry))

    def _by_devices(self, leaf):
        shape = (self._own, self.batch // self.count, *leaf.shape[1:])
        return _moved(leaf, shape, self._own_by_devices, (1, *shape[1:]))

    def everywhere(self, tree):
        return jax.tree.map(lambda leaf: _moved(leaf, leaf.shape, self.replicated), tree)

    def whole(self, state):
        arrays = self.everywhere(state._replace(carry=()))
        return arrays._replace(carry=jax.tree.map(self._by_rows, state.carry))

    def _by_rows(self, leaf):
        shape = (self.batch, *leaf.shape[2:])
        return _moved(leaf, shape, self.by_rows, leaf.shape[1:])

    def empty(self, carry):
        drawn = super().empty(carry)
        return lambda: jax.tree.map(self._by_devices, drawn())

    def place(self, tree):
        return jax.tree.map(lambda x: placed(x, self._own_replicated), tree)

    def of_table(self, shape) -> Any:
        return self._own_replicated

    def _split(self, leaf):
        shape = (self._own, leaf.shape[0] // self._own, *leaf.shape[1:])
        return jax.device_put(leaf.reshape(shape), self._own_by_devices)


def _moved(array: jax.Array, shape, layout, of_device=None) -> jax.Array:
    """Wraps the buffers of an array, where they lie, as an array with another sharding."""
    parts = [shard.data for shard in array.addressable_shards]
    if of_device is not None:
        parts = [part.reshape(of_device) for part in parts]
    return jax.make_array_from_single_device_arrays(tuple(shape), layout, parts)


# ------ words sharded over devices: the compiler inserts the communication. Rows of words, in
# parameters, in the optimiser's state and in tables, lie along the model axis.


class MeshDevices(Devices):
    """Devices along two axes: rows of a batch along one, words along the other.

    A parameter of words whose rows do not divide by the model axis is sharded by columns; if its
    columns do not divide either, it is replicated.
    """

    def __init__(
        self,
        count: int,
        batch: int,
        model: int,
        state: Any,
        parameter_axes: Axes,
        words: Sequence[int],
    ):
        if model > min(words):
            raise UserError(
                f"parallel.model={model} are more shards than there are words, {min(words)}: give "
                "a smaller number."
            )
        super().__init__(count, batch, model)
        self.model, self._words = model, tuple(words)
        of_params = cut_by_rows(parameter_axes, state.params, self.mesh, MODEL)
        self._not_by_rows = of_params.not_by_rows
        layouts = {
            path_name(path): (leaf.shape, sharding.spec)
            for (path, leaf), sharding in zip(
                jax.tree_util.tree_leaves_with_path(state.params),
                jax.tree.leaves(of_params.shardings),
                strict=True,
            )
            if len(sharding.spec)
        }
        leaves = jax.tree_util.tree_leaves_with_path(state._replace(carry=()))
        if self._not_by_rows and not layouts:
            raise UserError(
                f"parallel.model={model} divides neither the rows nor the columns of "
                f"{'; '.join(self._not_by_rows)}, so that nothing would be sharded: give a number "
                "that divides some, or parallel.model=1."
            )
        self._of_state = [self._of_leaf(path_name(path), x, layouts) for path, x in leaves]

    @property
    def summary(self) -> str:
        data = self.count // self.model
        mesh = f"{super().summary} as {data} (data) x {self.model} (model)"
        others = "; ".join(self._not_by_rows)
        return f"{mesh}, whose model axis does not divide the rows of {others}" if others else mesh

    def _of_leaf(self, name, leaf, layouts) -> PartitionSpec:
        """Chooses the layout of a leaf of the state.

        A leaf whose path contains the path of a sharded parameter of the same shape is sharded as
        that parameter: so the optimiser's moments and averages lie with their parameters. Other
        leaves are replicated.
        """
        names = name.replace(".", "/").split("/")  # a dot in those of tables updated by rows
        for first, end in itertools.combinations(range(len(names) + 1), 2):
            shape, layout = layouts.get("/".join(names[first:end]), (None, None))
            if shape == leaf.shape:
                return layout
        return _WHOLE

    def layouts(self, state):
        structure = jax.tree.structure(state._replace(carry=()))
        layouts = [NamedSharding(self.mesh, layout) for layout in self._of_state]
        carry = jax.tree.map(lambda _: self.by_rows, state.carry)
        return jax.tree.unflatten(structure, layouts)._replace(carry=carry)

    def compile(self, step, **static):
        """Compiles a step whose new state keeps the layout of the old; see Devices.compile."""

        def of_mesh(state, tables, batch, key):
            state, results = step(state, tables, batch, key, axis=None, **static)
            whole = jax.tree.map(lambda _: self.replicated, results)
            return jax.lax.with_sharding_constraint((state, results), (self.layouts(state), whole))

        return jax.jit(of_mesh, donate_argnums=0)

    def of_table(self, shape) -> NamedSharding:
        """Shards a table with one row a word, if its rows divide."""
        cut = shape and shape[0] in self._words and shape[0] % self.model == 0
        return NamedSharding(self.mesh, PartitionSpec(MODEL) if cut else _WHOLE)


def choose_devices(
    count: int, batch: int, parallel: Parallel, task, initial_state: Callable[[], Any]
) -> Devices:
    """Chooses the devices that train a task together."""
    if parallel.model == 1:
        return (Devices if len(chosen(count)) == 1 else PmapDevices)(count, batch)
    state = jax.eval_shape(initial_state)
    words = [len(lexicon) for lexicon in task.lexicons.values()]
    return MeshDevices(count, batch, parallel.model, state, task.parameter_axes, words)
