"""1, 2 and 4 devices give the same numbers; with SGD, for Adam hides wrong scales."""

import pathlib
import re

import jax
import numpy as np
import pytest

from tests.lab.training import recipes, small
from tests.marks import slow
from zoo.lab.training.devices import Devices, PmapDevices
from zoo.lab.training.step import TrainState
from zoo.optimizers import SGD

# Sentences so few and short that some batch rows end early.
FEW_SENTENCES = {"sentences": 9, "length": 4, "epochs": 3, "shuffle": True}
SHORT = {"epochs": 1, "shuffle": True}


def trained(folder, devices, recipe):
    """(trainer, progress) of a run on so many devices."""
    trainer = small.trainer(recipe, folder, devices)
    return trainer, trainer.train()


def assert_close(expected, actual, **tolerance):
    """Of two trainers: the same ends but for rounding."""
    expected_state, state = (small.last_state(trainer)[1] for trainer in (expected, actual))
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, **{"atol": 3e-6} | tolerance),
        (expected_state.params, expected_state.carry),
        (state.params, state.carry),
    )


SLOW = [
    ("softmax", (2, 4), FEW_SENTENCES),
    ("log-linear", (2, 4), FEW_SENTENCES),
    ("background", (2,), FEW_SENTENCES),
    ("background", (2,), FEW_SENTENCES | {"state": "sentences"}),
    ("rows", (2, 4), FEW_SENTENCES | {"clip": 0.1}),
    ("pairs", (2, 4), SHORT),
    ("digits", (2,), SHORT | {"optimizer": SGD(0.4)}),
    ("digits by rows", (2,), SHORT),
    # Masks of words and states, windows and averages.
    ("regularised", (2, 4), {"rtol": 1e-3, "atol": 2e-5}),
]


@pytest.mark.parametrize(
    ("kind", "counts", "settings"),
    slow(("softmax", (4,), FEW_SENTENCES | {"state": "sentences"}), *SLOW),
)
def test_the_number_of_devices_changes_nothing_but_rounding(tmp_path, kind, counts, settings):
    tolerance = {name: settings[name] for name in ("rtol", "atol") if name in settings}
    training = {name: value for name, value in settings.items() if name not in tolerance}
    recipe = recipes.recipe(kind, **training)
    single, progress_alone = trained(tmp_path / "1", 1, recipe)
    if "sentences" in training:
        batches = single.task.epoch(0)
        real = (batches[len(batches) - 1].positions >= 0).sum(axis=1)
        assert real.min() == 0 < real.max()  # the last batch has a batch row without words
    start, end = single.initial_state(), small.last_state(single)[1]
    changes = jax.tree.map(
        lambda start_leaf, end_leaf: np.abs(start_leaf - end_leaf).max(), start.params, end.params
    )
    assert min(jax.tree.leaves(changes)) > 1e-5
    for count in counts:
        trainer, progress = trained(tmp_path / str(count), count, recipe)
        assert_close(single, trainer, **tolerance)
        np.testing.assert_allclose(progress.validations, progress_alone.validations, rtol=1e-5)


@pytest.mark.slow
def test_a_run_goes_on_with_another_number_of_devices(tmp_path, monkeypatch):
    recipe = small.experiment(**FEW_SENTENCES)
    uninterrupted, _ = trained(tmp_path / "whole", 1, recipe)
    first = small.trainer(small.with_settings(recipe, "training.epochs=1"), tmp_path / "run", 4)
    first.train()
    # What ended after one epoch goes on as if it had been interrupted there.
    manager = small.Checkpoints(tmp_path / "run" / "checkpoints")
    step, state, progress = manager.restore("last", first.initial_state())
    manager.save("last", step, state, progress | {"finished": False})
    manager.close()
    second, _ = trained(tmp_path / "run", 2, recipe)
    assert_close(uninterrupted, second)


def state_of(carry):
    """A state of two parameters and a carry."""
    params = {"a": np.arange(6.0, dtype=np.float32).reshape(2, 3), "b": np.float32(3)}
    return TrainState(params, (), carry, np.int32(7))


def test_rows_go_to_the_devices_and_back():
    devices = PmapDevices(4, batch=8)
    carry = np.arange(24.0, dtype=np.float32).reshape(8, 3)
    split = devices.split({"a": carry, "b": np.arange(8)})
    assert split["a"].shape == (4, 2, 3) and split["b"].shape == (4, 2)
    assert [shard.data.shape for shard in split["a"].addressable_shards] == 4 * [(1, 2, 3)]
    np.testing.assert_array_equal(np.asarray(split["a"]).reshape(8, 3), carry)
    state = small.on_devices(state_of(carry), devices)
    assert state.carry.shape == (4, 2, 3) and state.params["a"].shape == (2, 3)
    jax.tree.map(np.testing.assert_array_equal, small.on_host(state, devices), state_of(carry))
    tables = {"a": np.arange(3.0)}
    np.testing.assert_array_equal(devices.to_host(devices.place(tables))["a"], tables["a"])


def test_a_state_is_seen_by_checkpoints_without_a_copy():
    devices = PmapDevices(2, batch=4)
    state = small.on_devices(state_of(np.zeros((4, 3), np.float32)), devices)
    mesh_state = devices.state_to_mesh(state)
    for mesh_leaf, leaf in zip(
        jax.tree.leaves(mesh_state.params), jax.tree.leaves(state.params), strict=True
    ):
        assert [shard.data.unsafe_buffer_pointer() for shard in mesh_leaf.addressable_shards] == [
            shard.data.unsafe_buffer_pointer() for shard in leaf.addressable_shards
        ]


@pytest.mark.parametrize("kind", [Devices, PmapDevices])
def test_what_comes_and_goes_at_every_step_needs_no_program(kind):
    """Results are read, and batches and the next epoch's carry are placed, without compiling."""
    devices = kind(1 if kind is Devices else 4, batch=8)
    carry = np.arange(24.0, dtype=np.float32).reshape(8, 3)
    results = devices.place({"loss": np.float32(2.5), "tokens": np.float32(7)})
    empty = devices.carry_function(lambda: jax.numpy.ones((8, 3)))
    first = empty()
    with small.compilations() as compiled:
        assert devices.to_host(results) == {"loss": 2.5, "tokens": 7}
        second, batch = empty(), devices.split(carry)
    assert not compiled
    assert second.sharding.is_equivalent_to(batch.sharding, batch.ndim)
    np.testing.assert_array_equal(np.asarray(second), np.asarray(first))
    np.testing.assert_array_equal(np.asarray(batch).reshape(8, 3), carry)
    assert devices.split(()) == ()  # a core that carries nothing


def test_no_number_takes_all_devices():
    assert PmapDevices(0, batch=8).count == 4


def test_one_module_names_pmap():
    """JAX calls it the old way: whoever takes its place changes one module."""
    root = pathlib.Path(__file__).parents[3]
    modules = {
        path.relative_to(root).as_posix()
        for folder in ("zoo", "benchmarks", "launch", "examples", "configs")
        for path in root.glob(f"{folder}/**/*.py")
        if re.search(r"jax\.pmap|PmapDevices|import pmap", path.read_text())
    }
    assert modules == {"zoo/lab/training/devices.py"}
