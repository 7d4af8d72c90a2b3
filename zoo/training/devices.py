"""Devices that train together: their (data, model) mesh, and the interface of their steps.

The base class serves one device, by `jax.jit`. `PmapDevices` serves several by `jax.pmap`, and
`zoo.training.model_parallel` shards the words over them. Each uses the devices of all processes of
a run. Between steps an implementation may lay out the state in its own way; checkpoints and
validation see arrays of the whole mesh, which `whole` and `everywhere` make.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

from zoo.errors import UserError

DATA, MODEL = "data", "model"


class Devices:
    """Devices of all processes as a (data, model) mesh: rows of a batch lie along the data axis."""

    # The name of the devices' axis within a step; only pmap has one.
    axis: str | None = None

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
        self.replicated: Any = NamedSharding(self.mesh, PartitionSpec())
        self.by_rows: Any = NamedSharding(self.mesh, PartitionSpec(DATA))
        if self.count == 1:
            self.replicated = self.by_rows = SingleDeviceSharding(devices[0])
        here = self.by_rows.addressable_devices_indices_map((batch,)).values()
        ends = [index[0].indices(batch)[:2] if index else (0, batch) for index in here]
        self.rows = slice(min(first for first, _ in ends), max(last for _, last in ends))

    @property
    def summary(self) -> str:
        """The devices in words."""
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
        """Copies a TrainState read from a checkpoint into memory that a step may donate.

        The given leaves are deleted one by one.
        """
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

    def for_steps(self, state):
        """Converts a TrainState of the mesh to the layout of a step."""
        return state

    def everywhere(self, tree):
        """Converts outputs of a step, except carries, to arrays of the mesh; nothing is copied."""
        return tree

    def whole(self, state):
        """Converts a TrainState from the layout of a step to arrays of the mesh."""
        return state

    def compile(self, step, state_axes, **static):
        """Compiles step(state, tables, batch, key, axis=..., **static) for the devices.

        The compiled step returns (state, results). Its state is donated; results are the same on
        every device.
        """
        return jax.jit(functools.partial(step, axis=None, **static), donate_argnums=0)

    def place(self, tree):
        """Puts host arrays on every device."""
        return jax.tree.map(lambda x: placed(x, self.replicated), tree)

    def place_tables(self, tree):
        """Puts tables on the devices in the layout of a step."""
        return self.place(tree)

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
    here = jax.local_device_count()  # as many as in any other process: see zoo.distributed
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


# ---- several devices by `jax.pmap`: each has its share of batch rows, and everything else whole


def sum_over_devices(tree, axis: str | None):
    """Sums each leaf of a pytree over the devices of a named axis."""
    return tree if axis is None else jax.lax.psum(tree, axis)


class PmapDevices(Devices):
    """Several devices by `jax.pmap`: each has its share of the rows, and everything else whole.

    A step takes arrays of this process's devices: replicated leaves unchanged, and split leaves
    with an axis of devices before the axis of rows.
    """

    axis = DATA

    def __init__(self, count: int, batch: int):
        """Takes the first `count` devices of each process; see Devices."""
        super().__init__(count, batch)
        here = own([*self.mesh.devices.flat])
        mesh = Mesh(np.array(here), (DATA,), axis_types=(AxisType.Auto,))
        self._own_replicated = NamedSharding(mesh, PartitionSpec())
        self._own_by_devices = NamedSharding(mesh, PartitionSpec(DATA))
        self._own = len(here)

    def compile(self, step, state_axes, **static):
        """Compiles a step by `jax.pmap`; see Devices.compile."""
        # Replicated leaves have no axis of devices: the copy on a device is read where it lies.
        return jax.pmap(
            functools.partial(step, axis=DATA, **static),
            axis_name=DATA,
            devices=[*self.mesh.devices.flat],
            donate_argnums=0,
            in_axes=(state_axes, None, 0, None),
            out_axes=(state_axes, None),
        )

    def for_steps(self, state):
        """Converts a TrainState of the mesh to this process's arrays; see Devices.for_steps."""
        arrays = jax.tree.map(
            lambda leaf: _moved(leaf, leaf.shape, self._own_replicated), state._replace(carry=())
        )
        return arrays._replace(carry=jax.tree.map(self._by_devices, state.carry))

    def _by_devices(self, leaf):
        shape = (self._own, self.batch // self.count, *leaf.shape[1:])
        return _moved(leaf, shape, self._own_by_devices, (1, *shape[1:]))

    def everywhere(self, tree):
        """Converts outputs of a step, except carries, to arrays of the mesh, without copying."""
        return jax.tree.map(lambda leaf: _moved(leaf, leaf.shape, self.replicated), tree)

    def whole(self, state):
        """Converts this process's arrays to a TrainState of the mesh; see Devices.whole."""
        arrays = self.everywhere(state._replace(carry=()))
        return arrays._replace(carry=jax.tree.map(self._by_rows, state.carry))

    def _by_rows(self, leaf):
        shape = (self.batch, *leaf.shape[2:])
        return _moved(leaf, shape, self.by_rows, leaf.shape[1:])

    def empty(self, carry):
        """Returns a function that makes the carry of an epoch's start; see Devices.empty."""
        drawn = super().empty(carry)
        return lambda: jax.tree.map(self._by_devices, drawn())

    def place(self, tree):
        """Puts host arrays on every device of this process."""
        return jax.tree.map(lambda x: placed(x, self._own_replicated), tree)

    def _split(self, leaf):
        shape = (self._own, leaf.shape[0] // self._own, *leaf.shape[1:])
        return jax.device_put(leaf.reshape(shape), self._own_by_devices)


def _moved(array: jax.Array, shape, layout, of_device=None) -> jax.Array:
    """Wraps the buffers of an array, where they lie, as an array with another sharding."""
    parts = [shard.data for shard in array.addressable_shards]
    if of_device is not None:
        parts = [part.reshape(of_device) for part in parts]
    return jax.make_array_from_single_device_arrays(tuple(shape), layout, parts)
