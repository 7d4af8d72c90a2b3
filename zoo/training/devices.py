"""One device or several, behind one interface: the only file that names `pmap`."""

import functools
import gc
from collections.abc import Iterable, Iterator
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from zoo.errors import UserError
from zoo.processes.group import ALONE, Processes

AXIS = "data"


class Devices:
    """The devices that share the lanes of a batch, those of this process among them.

    On one device a step is jitted; on several it is pmapped: each has its share of the lanes, with
    parameters and tables replicated. A process has the lanes of its own devices, and holds no
    others; steps of several processes are of all their devices.
    """

    def __init__(self, count: int, batch: int, processes: Processes = ALONE):
        """Takes the first `count` devices of each process, all if 0; the batch must divide by
        all of them."""
        self.devices, self.processes = chosen(count), processes
        self.count = len(self.devices) * processes.count
        if batch % self.count:
            raise UserError(
                f"training.batch={batch} does not divide by {self._named}: set "
                f"training.batch={-(-batch // self.count) * self.count} or give --devices."
            )
        # The lanes of a batch that this process has.
        self.rows = slice(None)
        if processes.count > 1:
            lanes = batch // processes.count
            self.rows = slice(processes.index * lanes, (processes.index + 1) * lanes)
        mesh = Mesh(np.array(self.devices), (AXIS,), axis_types=(AxisType.Auto,))
        self._replicated = NamedSharding(mesh, PartitionSpec())
        self._by_lanes = NamedSharding(mesh, PartitionSpec(AXIS))

    @property
    def summary(self) -> str:
        """The devices in words."""
        together = f" of {self.processes.count} processes" if self.processes.count > 1 else ""
        return f"{self.count} device(s){together}"

    @property
    def _named(self) -> str:
        if self.processes.count == 1:
            return f"{self.count} devices"
        return f"{self.count} devices, those of {self.processes.count} processes"

    def own(self, tree):
        """The rows of leaves [B, ...] that this process has; the tree itself if it is alone."""
        return tree if self.processes.count == 1 else jax.tree.map(lambda x: x[self.rows], tree)

    @property
    def axis(self) -> str | None:
        """The name of the devices' axis, None on one device."""
        return AXIS if self.count > 1 else None

    def compile(self, step, state_axes, **static):
        """step(state, tables, batch, key, axis=..., **static), jitted or pmapped.

        It gives (state, results). The state is donated; results are the same on every device. Under
        pmap the tables and the key are as `replicate` makes them, and the batch as `split` does.

        Args:
          state_axes: the state with None in the place of what is replicated, and 0 of what is
            split; it comes back as it came.
        """
        step = functools.partial(step, axis=self.axis, **static)
        if self.count == 1:
            return jax.jit(step, donate_argnums=0)
        # What is replicated has no axis of devices: a device's copy of it can be read as it lies.
        axes: Any = {"in_axes": (state_axes, None, 0, None), "out_axes": (state_axes, None)}
        devices = of_all(self.processes, self.devices)
        return jax.pmap(step, axis_name=AXIS, devices=devices, donate_argnums=0, **axes)

    def replicate(self, tree):
        """The tree on every device; what lies on the one device already is not copied."""
        if self.count == 1:
            return jax.device_put(tree, self.devices[0])
        return jax.tree.map(self._on_each, tree)

    def place_tables(self, tree):
        """Tables as a step takes them: on every device."""
        return self.replicate(tree)

    def drawn(self, initial_state, key, taken: dict):
        """initial_state(key, taken), on one device."""
        return initial_state(key, taken)

    def laid_out(self, shapes):
        """Shapes of a state as a checkpoint is read into them: onto the host."""
        return shapes

    def kept(self, tree):
        """A tree as a checkpoint takes it: one copy on the host."""
        return self.first(tree)

    def taken(self, leaves: Iterable) -> list:
        """Leaves as `replicate` places them, each in memory of its own, for a step to donate.

        A list is emptied leaf by leaf, so that each leaf is there twice only while it is placed;
        those that lie on the one device already are not copied, and are gone after a step; those on
        the first of several are gone at once.
        """
        placed, seen = [], set()
        for leaf in one_by_one(leaves):
            if self.count > 1:
                placed.append(jax.block_until_ready(self._on_each(leaf)))
                if isinstance(leaf, jax.Array):
                    leaf.delete()  # at once: NumPy's view of it and the array hold each other
                _let_go(placed[-1])
                del leaf
                continue
            # A step may neither donate an array twice nor what belongs to NumPy.
            of_numpy = not isinstance(leaf, jax.Array)
            new = of_numpy or leaf.unsafe_buffer_pointer() in seen
            placed.append(jax.device_put(leaf, self.devices[0], may_alias=not new))
            seen.add(placed[-1].unsafe_buffer_pointer())
            if of_numpy:
                _let_go(placed[-1])
            del leaf
        return placed

    def _on_each(self, leaf) -> jax.Array:
        """A copy of a leaf on each device, just as a step returns it.

        From the host to each device: no device ever holds the copies of the others.
        """
        array = np.asarray(leaf)
        copies = [jax.device_put(array, device, may_alias=False) for device in self.devices]
        return jax.make_array_from_single_device_arrays(array.shape, self._replicated, copies)

    def split(self, tree):
        """Leaves [B, ...] of this process shared out and put on its devices, just as a step
        returns them.

        On several devices they get an axis of devices before that of the lanes. A step that gets
        them elsewhere is compiled anew.
        """
        if self.count == 1:
            return jax.device_put(tree, self.devices[0])
        count = len(self.devices)
        tree = jax.tree.map(lambda x: x.reshape(count, x.shape[0] // count, *x.shape[1:]), tree)
        return jax.device_put(tree, self._by_lanes)

    def join(self, tree):
        """The inverse of `own` and `split`, on the host."""
        tree = jax.device_get(tree)
        if self.count == 1:
            return tree
        return self.processes.gathered(jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), tree))

    def alone(self, tree):
        """What is the same on every device, as it lies on the first of them; nothing is copied."""
        if self.count == 1:
            return tree
        return jax.tree.map(lambda leaf: leaf.addressable_shards[0].data, tree)

    def first(self, tree):
        """One copy of what is the same on every device, on the host."""
        return jax.device_get(self.alone(tree))


def chosen(count: int) -> list:
    """The first `count` local devices, all if 0; UserError if there are not so many."""
    devices = jax.local_devices()
    if not 0 <= count <= len(devices):
        raise UserError(f"--devices {count}: this machine has {len(devices)}; 0 takes all.")
    return devices[: count or len(devices)]


def of_all(processes: Processes, own: list) -> list:
    """As many devices of every process as of this one, process by process.

    Args:
      own: those of this process.

    Raises:
      UserError: a process has fewer.
    """
    if processes.count == 1:
        return own
    devices = [jax.local_devices(process)[: len(own)] for process in range(processes.count)]
    for index, others in enumerate(devices):
        if len(others) < len(own):
            raise UserError(
                f"process {index} has {len(others)} device(s) and process {processes.index} has "
                f"{len(own)}: give all processes as many, or --devices."
            )
    return [device for others in devices for device in others]


def one_by_one(leaves: Iterable) -> Iterator:
    """The leaves in their order; a list is emptied, and holds no leaf that was given."""
    if not isinstance(leaves, list):
        yield from leaves
        return
    leaves.reverse()
    while leaves:
        yield leaves.pop()


def _let_go(copy: jax.Array) -> None:
    """Waits for a copy, and makes JAX give back the array on the host that it was made from.

    JAX keeps such an array until it runs something, or Python's collector does.
    """
    jax.block_until_ready(copy)
    gc.collect(0)
