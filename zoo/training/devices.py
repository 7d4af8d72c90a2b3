"""One device or several, behind one interface: the only file that names `pmap`."""

import functools

import jax
import numpy as np

from zoo.errors import UserError

AXIS = "data"


class Devices:
    """The local devices that share the lanes of a batch.

    On one device a step is jitted; on several it is pmapped, with parameters and tables replicated
    and everything that has a lane axis split.
    """

    def __init__(self, count: int, batch: int):
        """Takes the first `count` local devices, all if 0; the batch must divide by them."""
        devices = jax.local_devices()
        if not 0 <= count <= len(devices):
            raise UserError(f"--devices {count}: this machine has {len(devices)}; 0 takes all.")
        self.devices = devices[: count or len(devices)]
        self.count = len(self.devices)
        if batch % self.count:
            raise UserError(
                f"training.batch={batch} does not divide by {self.count} devices: set "
                f"training.batch={-(-batch // self.count) * self.count} or give --devices."
            )
        # One function for all calls of `place`: each would otherwise be compiled anew.
        self._on_devices = jax.pmap(lambda x: x, axis_name=AXIS, devices=self.devices)

    @property
    def axis(self) -> str | None:
        """The name of the devices' axis, None on one device."""
        return AXIS if self.count > 1 else None

    def compile(self, step, **static):
        """step(state, tables, columns, key, axis=..., **static), jitted or pmapped.

        The state is donated. Under pmap every leaf of every argument has a device axis: replicated
        leaves as `replicate` makes them, leaves with lanes as `split` does.
        """
        step = functools.partial(step, axis=self.axis, **static)
        if self.count == 1:
            return jax.jit(step, donate_argnums=0)
        return jax.pmap(step, axis_name=AXIS, devices=self.devices, donate_argnums=0)

    def replicate(self, tree):
        """The tree on every device."""
        if not jax.tree.leaves(tree):
            return tree  # pmap refuses to map over nothing
        if self.count == 1:
            # A copy of each leaf: what a step donates must stand in the tree once only.
            return jax.device_put(jax.tree.map(np.array, tree), self.devices[0])
        # From the host to each device: no device ever holds the copies of the others.
        copy = jax.pmap(lambda _, x: x, in_axes=(0, None), axis_name=AXIS, devices=self.devices)
        return copy(np.arange(self.count), jax.tree.map(np.asarray, tree))

    def split(self, tree):
        """Leaves [B, ...] shared out over the devices."""
        if self.count == 1:
            # Bound to the device like everything that a step returns: the second step would be
            # compiled anew for arguments that are bound where the first step's were not.
            return jax.device_put(tree, self.devices[0])
        return jax.tree.map(
            lambda x: x.reshape(self.count, x.shape[0] // self.count, *x.shape[1:]), tree
        )

    def place(self, tree):
        """Leaves [B, ...] shared out and put on the devices, just as a step returns them: a step
        that gets them elsewhere is compiled anew."""
        if self.count == 1 or not jax.tree.leaves(tree):
            return jax.device_put(tree, self.devices[0])
        return self._on_devices(self.split(tree))

    def join(self, tree):
        """The inverse of `split`, on the host."""
        if self.count == 1:
            return jax.device_get(tree)
        return jax.tree.map(lambda x: np.asarray(x).reshape(-1, *x.shape[2:]), tree)

    def first(self, tree):
        """One copy of what is the same on every device, on the host."""
        if self.count == 1:
            return jax.device_get(tree)
        # The copy of one device as it lies there: x[0] would be a program on all of them.
        return jax.tree.map(
            lambda x: np.asarray(x.addressable_shards[0].data).reshape(x.shape[1:]), tree
        )
