"""The training state on the devices and back: lanes split, and everything else replicated, or cut
by words on a mesh."""

from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from zoo.training.devices import Devices
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
