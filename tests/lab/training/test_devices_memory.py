"""The state is on the devices once: at the start, during a run, and when it is resumed."""

import dataclasses
import gc
import os
import signal
import subprocess
import sys

import jax
import numpy as np
import pytest

from tests.lab.training import small
from zoo.errors import Interrupted
from zoo.lab.training.devices import Devices, PmapDevices
from zoo.lab.training.step import TrainState
from zoo.optimizers import Adam

# Larger than a batch by far.
MODEL = dataclasses.replace(small.MODEL, core=dataclasses.replace(small.MODEL.core, size=61))


def buffers(arrays):
    """{where some memory of a device begins: its bytes} of arrays and of views of them."""
    shards = [shard.data for array in arrays for shard in array.addressable_shards]
    return {shard.unsafe_buffer_pointer(): shard.nbytes for shard in shards}


def size(tree):
    return sum(buffers(jax.tree.leaves(tree)).values())


def live():
    return sum(buffers(array for array in jax.live_arrays() if not array.is_deleted()).values())


class Steps(list):
    """(bytes of the state, bytes of all other arrays but the batch) after each step of a run."""

    trainer, last = None, 0

    def train_until(self, trainer, last):
        """Trains until a signal comes during a step."""
        self.trainer, self.last = trainer, last
        with pytest.raises(Interrupted, match=f"after step {last}"):
            trainer.train()


@pytest.fixture
def beside_the_state(monkeypatch):
    """The steps of all runs within the test."""
    gc.collect()
    steps, before = Steps(), live()

    def spying(compile_of):
        return lambda *arguments, **static: spy(compile_of(*arguments, **static))

    def spy(compiled):

        def spied(state, tables, batch, key):
            new_state, results = compiled(state, tables, batch, key)
            placed = size([x for x in jax.tree.leaves(batch) if isinstance(x, jax.Array)])
            steps.append((size(new_state), live() - before - size(new_state) - placed))
            if len(steps) == steps.last:
                steps.trainer._stop = signal.SIGTERM
            return new_state, results

        return spied

    for kind in (Devices, PmapDevices):
        monkeypatch.setattr(kind, "compile", spying(kind.compile))
    return steps


@pytest.mark.parametrize(("devices", "average"), [(1, 0.9), (2, 0.0)])
@pytest.mark.slow
def test_a_run_holds_its_state_once_and_so_does_it_resumed(
    tmp_path, beside_the_state, devices, average
):
    recipe = small.experiment(MODEL, optimizer=Adam(), average=average, validate_every=2)
    params = size(small.trainer(recipe, tmp_path).initial_state().params)
    beside_the_state.train_until(small.trainer(recipe, tmp_path, devices), 3)
    resumed = small.trainer(recipe, tmp_path, devices, log=(log := []))
    beside_the_state.train_until(resumed, 5)
    assert "resuming after step 3 (epoch 1)." in log
    # Parameters, two moments and perhaps an average, on each device.
    expected = devices * (3 + bool(average)) * params
    assert len(beside_the_state) == 5
    for state, other_bytes in beside_the_state:
        assert expected <= state < 1.1 * expected
        assert other_bytes < 1000  # a key, and the results of two steps


@pytest.mark.slow
@pytest.mark.parametrize("devices", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_validation_copies_neither_parameters_nor_tables(tmp_path, monkeypatch, devices):
    model = dataclasses.replace(small.LOG_LINEAR, core=MODEL.core)
    recipe = small.experiment(model, vocabulary=small.WITH_FEATURES, epochs=1)
    gc.collect()
    before = live()
    trainer = small.trainer(recipe, tmp_path, devices)
    validate, measurements = trainer.task.validate, []

    def spied(params, mesh):
        gc.collect()
        state, tables = trainer.state, trainer.task.tables
        assert buffers(jax.tree.leaves(params)).keys() <= buffers(jax.tree.leaves(state)).keys()
        used = {*jax.devices()[:devices]}
        assert all(leaf.devices() == used for leaf in jax.tree.leaves((params, tables)))
        measurements.append((size(tables), live() - before - size(state) - size(tables)))
        return validate(params, mesh)

    monkeypatch.setattr(trainer.task, "validate", spied)
    trainer.train()
    ((tables, other_bytes),) = measurements
    assert other_bytes < 1000 < tables  # a batch, a key, results


@pytest.mark.parametrize("kind", [Devices, PmapDevices])
def test_each_leaf_of_a_checkpoint_is_gone_before_the_next_is_copied(monkeypatch, kind):
    values = [np.arange(7.0, dtype=np.float32) + number for number in range(5)]
    devices = kind(1 if kind is Devices else 2, batch=2)
    state = TrainState(values, (), (), np.int32(1))
    read = jax.device_put(state, devices.layouts(state))
    leaves, alive = jax.tree.leaves(read), []
    copy = jax.numpy.array

    def counted(leaf, **options):
        alive.append(sum(not leaf_given.is_deleted() for leaf_given in leaves))
        return copy(leaf, **options)

    monkeypatch.setattr(jax.numpy, "array", counted)
    restored = devices.copy_state(read)
    assert alive == [6, 5, 4, 3, 2, 1]
    jax.tree.map(np.testing.assert_array_equal, small.on_host(restored, devices), state)


# Prints the bytes of a state, and the most that was held at once while it was put on the devices.
RESUME = """
import pathlib, sys
import jax
from tests.lab.training import small, test_devices_memory
from zoo.lab.runs.checkpoints import Checkpoints

def held(name):
    status = pathlib.Path("/proc/self/status").read_text()
    return 1024 * int(status.partition(f"{name}:")[2].split()[0])

folder = pathlib.Path(sys.argv[1])
trainer = small.trainer(test_devices_memory.LARGE, folder)
checkpoints = Checkpoints(folder / "checkpoints")
# What the libraries that read a checkpoint need themselves is not of the state.
first = Checkpoints(folder / "first")
first.save("last", 1, {"ones": jax.numpy.ones(3)}, {})
first.restore("last", {"ones": jax.numpy.ones(3)})
before = held("VmRSS")
trainer._begin(checkpoints)
print(test_devices_memory.size(trainer.state), held("VmHWM") - before)
"""
LARGE = small.experiment(
    dataclasses.replace(MODEL, core=dataclasses.replace(MODEL.core, size=900, layers=4)),
    optimizer=Adam(),
)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_run_is_resumed_through_little_more_than_its_state(tmp_path, beside_the_state):
    beside_the_state.train_until(small.trainer(LARGE, tmp_path), 1)
    # What is freed goes back at once: what an allocator keeps of it differs by machine and by luck.
    limits = dict.fromkeys(("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"), "1000000")
    command = [sys.executable, "-c", RESUME, str(tmp_path)]
    printed = subprocess.run(
        command, check=True, capture_output=True, text=True, env={**os.environ, **limits}
    ).stdout
    state, peak = map(int, printed.split())
    assert 1 < peak / state < 1.25


def test_a_state_that_is_drawn_may_be_donated(tmp_path):
    """No array stands in it twice, though an average begins as the parameters."""
    recipe = small.experiment(optimizer=Adam(), average=0.9)
    trainer = small.trainer(recipe, tmp_path)
    state = trainer.devices.draw_state(trainer.initial_state, jax.random.key(0), {})
    leaves = jax.tree.leaves(state)
    assert len(buffers(leaves)) == len(leaves)


def test_a_restored_state_is_not_in_memory_of_numpys(tmp_path):
    numpy_array = np.ones(4096, np.float32)
    read = TrainState(jax.device_put(numpy_array, jax.devices()[0], may_alias=True), (), (), ())
    state = Devices(1, batch=1).copy_state(read)
    step = jax.jit(lambda state: state._replace(params=state.params + 1), donate_argnums=0)
    np.testing.assert_array_equal(step(state).params, 2)
    assert state.params.is_deleted()
    np.testing.assert_array_equal(numpy_array, 1)
