"""One device or several, behind one interface: the only file that names `pmap`."""

import functools
import gc

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
        """The tree on every device; what lies on the one device already is not copied."""
        if self.count == 1:
            return jax.device_put(tree, self.devices[0])
        return jax.tree.map(self._on_each, tree)

    def taken(self, leaves: list) -> list:
        """Leaves as `replicate` places them, each in memory of its own, for a step to donate.

        The list is emptied leaf by leaf, so that each leaf is there twice only while it is placed;
        those that lie on the one device already are not copied, and are gone after a step; those on
        the first of several are gone at once.
        """
        placed, found = [], set()
        leaves.reverse()
        while leaves:
            leaf = leaves.pop()
            if self.count > 1:
                placed.append(jax.block_until_ready(self._on_each(leaf)))
                if isinstance(leaf, jax.Array):
                    leaf.delete()  # at once: NumPy's view of it and the array hold each other
                _let_go(placed[-1])
                del leaf
                continue
            # A step may neither donate an array twice nor what belongs to NumPy.
            of_numpy = not isinstance(leaf, jax.Array)
            new = of_numpy or leaf.unsafe_buffer_pointer() in found
            placed.append(jax.device_put(leaf, self.devices[0], may_alias=not new))
            found.add(placed[-1].unsafe_buffer_pointer())
            if of_numpy:
                _let_go(placed[-1])
            del leaf
        return placed

    def _on_each(self, leaf) -> jax.Array:
        """A copy of a leaf on each device, just as a pmapped step returns it.

        From the host to each device: no device ever holds the copies of the others.
        """
        row = np.asarray(leaf)[None]
        copies = [jax.device_put(row, device, may_alias=False) for device in self.devices]
        shape = (self.count, *row.shape[1:])
        return jax.make_array_from_single_device_arrays(shape, self._sharding, copies)

    @functools.cached_property
    def _sharding(self):
        """How arrays with a device axis lie on the devices."""
        return self._on_devices(np.zeros(self.count, np.float32)).sharding

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

    def alone(self, tree):
        """One copy of what is the same on every device, on the first of them."""
        return tree if self.count == 1 else jax.device_put(self.first(tree), self.devices[0])

    def first(self, tree):
        """One copy of what is the same on every device, on the host."""
        if self.count == 1:
            return jax.device_get(tree)
        # The copy of one device as it lies there: x[0] would be a program on all of them.
        return jax.tree.map(
            lambda x: np.asarray(x.addressable_shards[0].data).reshape(x.shape[1:]), tree
        )


def _let_go(copy: jax.Array) -> None:
    """Waits for a copy, and makes JAX give back the array on the host that it was made from.

    JAX keeps such an array until it runs something, or Python's collector does.
    """
    jax.block_until_ready(copy)
    gc.collect(0)
