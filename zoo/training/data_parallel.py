"""Several devices by `jax.pmap`: each has its share of batch rows, and everything else whole."""

import functools

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from zoo.training.devices import DATA, Devices, own, placed


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
