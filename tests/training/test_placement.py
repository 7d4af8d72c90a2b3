"""The state is on the devices once: at the start, during a run, and when it is resumed."""

import dataclasses
import gc
import os
import signal
import subprocess
import sys
import weakref

import jax
import numpy as np
import pytest

from tests.training import small
from zoo.errors import Interrupted
from zoo.optimizers import Adam
from zoo.training import placement
from zoo.training.devices import Devices

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
    found, before = Steps(), live()
    compile_of = Devices.compile

    def compile(self, step, state_axes, **static):
        compiled = compile_of(self, step, state_axes, **static)

        def spied(state, tables, batch, key):
            new, results = compiled(state, tables, batch, key)
            placed = size([x for x in jax.tree.leaves(batch) if isinstance(x, jax.Array)])
            found.append((size(new), live() - before - size(new) - placed))
            if len(found) == found.last:
                found.trainer._stop = signal.SIGTERM
            return new, results

        return spied

    monkeypatch.setattr(Devices, "compile", compile)
    return found


@pytest.mark.parametrize(("devices", "average"), [(1, 0.9), (2, 0.0)])
@pytest.mark.slow
def test_a_run_holds_its_state_once_and_so_does_it_resumed(
    tmp_path, beside_the_state, devices, average
):
    recipe = small.experiment(MODEL, optimizer=Adam(), average=average, validate_every=2)
    params = size(small.trainer(recipe, tmp_path).initial_state().params)
    beside_the_state.train_until(small.trainer(recipe, tmp_path, devices), 3)
    resumed = small.trainer(recipe, tmp_path, devices, said=(said := []))
    beside_the_state.train_until(resumed, 5)
    assert "resuming after step 3 (epoch 1)." in said
    # Parameters, two moments and perhaps an average, on each device.
    whole = devices * (3 + bool(average)) * params
    assert len(beside_the_state) == 5
    for state, others in beside_the_state:
        assert whole <= state < 1.1 * whole
        assert others < 1000  # a key, and the results of two steps


@pytest.mark.parametrize("devices", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_validation_copies_neither_parameters_nor_tables(tmp_path, monkeypatch, devices):
    model = dataclasses.replace(small.LOG_LINEAR, core=MODEL.core)
    recipe = small.experiment(model, vocabulary=small.WITH_FEATURES, epochs=1)
    gc.collect()
    before = live()
    trainer = small.trainer(recipe, tmp_path, devices)
    validate, found = trainer.task.validate, []

    def spied(params):
        gc.collect()
        state, tables = trainer._state, trainer.task.tables
        assert buffers(jax.tree.leaves(params)).keys() <= buffers(jax.tree.leaves(state)).keys()
        assert {leaf.device for leaf in jax.tree.leaves((params, tables))} == {jax.devices()[0]}
        found.append((size(tables), live() - before - size(state) - devices * size(tables)))
        return validate(params)

    monkeypatch.setattr(trainer.task, "validate", spied)
    trainer.train()
    ((tables, others),) = found
    assert others < 1000 < tables  # a batch, a key, results


@pytest.mark.parametrize("count", [1, 2])
def test_each_leaf_is_gone_before_the_next_is_placed(monkeypatch, count):
    values = [np.arange(7.0, dtype=np.float32) + number for number in range(5)]
    leaves = [jax.numpy.array(value) for value in values]
    given = [weakref.ref(leaf) for leaf in leaves]
    alive = []
    put = jax.device_put

    def is_there(leaf):
        return leaf is not None and not leaf.is_deleted()

    def counted(leaf, device, **options):
        alive.append(sum(is_there(reference()) for reference in given))
        return put(leaf, device, **options)

    monkeypatch.setattr(jax, "device_put", counted)
    devices = Devices(count, batch=2)
    placed = devices.taken(leaves)
    assert not leaves
    assert alive == [left for left in (5, 4, 3, 2, 1) for _ in range(count)]
    for leaf, value in zip(devices.first(placed), values, strict=True):
        np.testing.assert_array_equal(leaf, value)


@pytest.mark.parametrize("count", [1, 2])
def test_leaves_of_a_checkpoint_are_given_back_one_by_one(count):
    """JAX holds what it copies from the host until it next has something to do."""
    values = [np.arange(999_999.0, dtype=np.float32) + number for number in range(20)]
    leaves = [value.copy() for value in values]
    given = [weakref.ref(leaf) for leaf in leaves]
    devices = Devices(count, batch=2)
    gc.disable()  # not by luck
    try:
        placed = devices.taken(leaves)
        left = sum(reference() is not None for reference in given)
    finally:
        gc.enable()
    assert left <= len(values) // 2  # some callbacks are late
    for leaf, value in zip(devices.first(placed), values, strict=True):
        np.testing.assert_array_equal(leaf, value)


# Prints the bytes of a state, and the most that was held at once while it was put on the devices.
RESUME = """
import pathlib, sys
import jax
from tests.training import small, test_placement
from zoo.runs.checkpoints import Checkpoints

def held(name):
    status = pathlib.Path("/proc/self/status").read_text()
    return 1024 * int(status.partition(f"{name}:")[2].split()[0])

folder = pathlib.Path(sys.argv[1])
trainer = small.trainer(test_placement.LARGE, folder)
checkpoints = Checkpoints(folder / "checkpoints")
# What the libraries that read a checkpoint need themselves is not of the state.
first = Checkpoints(folder / "first")
first.save("last", 1, {"ones": jax.numpy.ones(3)}, {})
first.restore("last", {"ones": jax.numpy.ones(3)})
before = held("VmRSS")
trainer._begin(checkpoints)
print(test_placement.size(trainer._state), held("VmHWM") - before)
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
    told = subprocess.run(
        command, check=True, capture_output=True, text=True, env={**os.environ, **limits}
    ).stdout
    state, peak = map(int, told.split())
    assert 1 < peak / state < 1.25


def test_an_array_that_stands_twice_is_placed_twice_and_one_of_numpy_is_copied():
    array, of_numpy = jax.numpy.arange(16.0), np.ones(4096, np.float32)
    same = jax.device_put(array, jax.devices()[0])
    placed = Devices(1, batch=1).taken([array, array, same, of_numpy])
    assert placed[0].unsafe_buffer_pointer() == array.unsafe_buffer_pointer()
    assert len({leaf.unsafe_buffer_pointer() for leaf in placed}) == 4
    step = jax.jit(lambda leaves: [leaf + 1 for leaf in leaves], donate_argnums=0)
    np.testing.assert_array_equal(step(placed)[2], np.arange(1.0, 17.0))
    assert all(leaf.is_deleted() for leaf in placed)
    np.testing.assert_array_equal(of_numpy, 1)


def test_a_placed_state_comes_back(tmp_path):
    trainer = small.trainer(small.experiment(), tmp_path)
    for count in (1, 4):
        state = jax.device_get(trainer.initial_state())
        devices = Devices(count, batch=4)
        held = [trainer.initial_state()]
        back = placement.gathered(placement.placed(held, devices), devices)
        assert not held
        jax.tree.map(np.testing.assert_array_equal, back, state)
