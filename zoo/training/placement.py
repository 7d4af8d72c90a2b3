"""The training state on the devices and back: lanes split, and everything else replicated, or cut
by words on a mesh."""

from collections.abc import Iterator
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from zoo.processes.group import Processes
from zoo.training.devices import Devices, one_by_one
from zoo.training.mesh import MeshDevices
from zoo.training.step import TrainState

# Either way of using several.
AnyDevices: TypeAlias = Devices | MeshDevices


def placed(held: list[TrainState], devices: AnyDevices) -> TrainState:
    """The one state of a list, on the devices for a step to donate.

    It is taken out of the list, whose owner must have no other name for it: then no leaf is there
    twice for longer than it takes to place.
    """
    carry = devices.split(jax.tree.map(jnp.asarray, held[0].carry))
    leaves, structure = jax.tree.flatten(held.pop()._replace(carry=()))
    return jax.tree.unflatten(structure, devices.taken(leaves))._replace(carry=carry)


def received(
    held: list[TrainState], shapes: TrainState, devices: AnyDevices, processes: Processes
) -> TrainState:
    """`placed`, of the state that process 0 alone has, in every process.

    Args:
      held: as `placed` takes it; empty but in process 0.
      shapes: of the state.
    """
    wanted, structure = jax.tree.flatten(shapes.carry)
    given = jax.tree.leaves(held[0].carry) if held else []
    carry = [*processes.from_first(given, wanted)]
    carry = devices.split(devices.own(jax.tree.unflatten(structure, carry)))
    wanted, structure = jax.tree.flatten(shapes._replace(carry=()))
    leaves = jax.tree.leaves(held.pop()._replace(carry=())) if held else []
    taken = devices.taken(processes.from_first(_deleted(leaves), wanted))
    return jax.tree.unflatten(structure, taken)._replace(carry=carry)


def _deleted(leaves: list) -> Iterator:
    """The leaves, each of which is gone from the devices when the next is asked for."""
    for leaf in one_by_one(leaves):
        yield leaf
        if isinstance(leaf, jax.Array):
            leaf.delete()
        del leaf


def gathered(state: TrainState, devices: AnyDevices) -> TrainState:
    """The inverse of `placed`, on the host."""
    whole = devices.first(state._replace(carry=()))
    return whole._replace(carry=devices.join(state.carry))


def kept(state: TrainState, devices: AnyDevices) -> TrainState:
    """A state as a checkpoint takes it: `gathered`, or in its parts on a mesh; the carry whole."""
    arrays = devices.kept(state._replace(carry=()))
    return arrays._replace(carry=devices.join(state.carry))


def all_finite(tree) -> bool:
    """Whether there is no NaN or infinity in the arrays of a pytree, wherever they lie."""
    return all(
        (_finite if isinstance(leaf, jax.Array) else np.isfinite)(leaf).all()
        for leaf in jax.tree.leaves(tree)
    )


@jax.jit
def _finite(leaf):
    return jnp.isfinite(leaf).all()
