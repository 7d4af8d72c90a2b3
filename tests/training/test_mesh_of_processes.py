"""A mesh of the devices of several processes: who has what, and what is refused.

Runs of real processes are in test_processes.py.
"""

import jax
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec

from zoo.errors import UserError
from zoo.processes.group import Processes
from zoo.runs import digests
from zoo.training import host_copies
from zoo.training.mesh import MeshDevices
from zoo.training.step import TrainState


@pytest.mark.parametrize(
    ("own", "counts", "model", "sentence"),
    [
        (3, (3, 3), 2, "parallel.model=2 neither divides the 3 devices of each process nor is a"),
        (2, (2, 2), 3, "parallel.model=3 does not divide the 4 devices"),
        (3, (3, 1), 2, r"process 1 has 1 device\(s\) and process 0 has 3: give all .* --devices"),
    ],
)
def test_a_mesh_of_processes_that_is_none_is_refused(monkeypatch, own, counts, model, sentence):
    here = jax.local_devices()
    monkeypatch.setattr(jax, "local_devices", lambda process=0: here[: counts[process]])
    state = TrainState({}, (), (), np.zeros((), np.int32))
    with pytest.raises(UserError, match=sentence):
        MeshDevices(own, 12, model, state, {}, [8], Processes(0, 2, "h:1"))


@pytest.mark.parametrize(
    ("own", "model", "rows"), [(2, 2, (6, 12)), (1, 2, (0, 12)), (2, 1, (6, 12))]
)
def test_a_process_has_the_lanes_of_its_devices(monkeypatch, own, model, rows):
    """Two that share a row of the mesh have the same ones."""
    here = jax.local_devices()
    both = [here[:own], here[own : 2 * own]]
    monkeypatch.setattr(jax, "local_devices", lambda process=1: both[process])
    state = TrainState({"table": np.zeros((8, 2))}, (), (), np.zeros((), np.int32))
    axes = {"table": ("words", "")}
    mesh = MeshDevices(own, 12, model, state, axes, [8], Processes(1, 2, "h:1"))
    np.testing.assert_array_equal(mesh.own(np.arange(12)), np.arange(*rows))
    assert mesh.count == 2 * own and mesh.summary.endswith(f"x {model} (model) of 2 processes")


@pytest.mark.parametrize("axis", [0, 1])
def test_an_array_is_put_together_some_rows_at_a_time(monkeypatch, axis):
    monkeypatch.setattr(digests, "BYTES_AT_A_TIME", 100)  # three rows of the ten
    array = np.arange(80.0, dtype=np.float32).reshape(10, 8)
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:2]), ("model",))
    layout = NamedSharding(mesh, PartitionSpec(*[None] * axis, "model"))
    shared = host_copies.put(array, layout)
    assert shared.addressable_shards[0].data.shape == ((5, 8), (10, 4))[axis]
    np.testing.assert_array_equal(host_copies.whole(shared), array)
    np.testing.assert_array_equal(
        host_copies.whole(host_copies.put(array, NamedSharding(mesh, PartitionSpec()))), array
    )
