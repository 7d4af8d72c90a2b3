"""The choice of devices: one, several by `jax.pmap`, or a mesh that shards the words."""

from collections.abc import Callable

import jax

from zoo.experiment import Parallel
from zoo.training.data_parallel import PmapDevices
from zoo.training.devices import Devices, chosen
from zoo.training.model_parallel import MeshDevices
from zoo.training.step import TrainState
from zoo.training.task import Task


def choose_devices(
    count: int, batch: int, parallel: Parallel, task: Task, initial_state: Callable[[], TrainState]
) -> Devices:
    """Chooses the devices that train a task together."""
    if parallel.model == 1:
        return (Devices if len(chosen(count)) == 1 else PmapDevices)(count, batch)
    state = jax.eval_shape(initial_state)
    words = [len(lexicon) for lexicon in task.lexicons.values()]
    return MeshDevices(count, batch, parallel.model, state, task.parameter_axes, words)
