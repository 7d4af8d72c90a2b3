"""1, 2 and 4 devices give the same numbers; with SGD, for Adam hides wrong scales."""

import jax
import numpy as np
import pytest

from tests.training import small
from tests.training.test_resume import RECIPES
from zoo.errors import UserError
from zoo.training import tasks
from zoo.training.devices import Devices
from zoo.training.step import TrainState


def recipe_of(state, model="softmax"):
    """Nine short sentences."""
    return small.experiment(
        **small.MODELS[model], sentences=9, state=state, length=4, epochs=3, shuffle=True
    )


def trained(folder, devices, state, model="softmax"):
    """(trainer, progress) of nine short sentences: some batch rows end early, with dropout on."""
    recipe = recipe_of(state, model)
    trainer = small.trainer(recipe, folder, devices)
    batches = trainer.task.batches(0)
    real = (batches[len(batches) - 1].positions >= 0).sum(axis=1)
    assert real.min() == 0 < real.max()  # the last batch has a batch row without words
    return trainer, trainer.train()


@pytest.mark.parametrize(
    ("model", "state", "counts"),
    [
        pytest.param("softmax", "carried", (2, 4), marks=pytest.mark.slow),
        ("softmax", "sentences", (4,)),
        pytest.param("log-linear", "carried", (2, 4), marks=pytest.mark.slow),
    ],
)
def test_the_number_of_devices_changes_nothing_but_rounding(tmp_path, model, state, counts):
    alone, progress_alone = trained(tmp_path / "1", 1, state, model)
    _, expected, _ = small.last_state(alone)
    start = alone.initial_state()
    moved = jax.tree.map(lambda old, new: np.abs(old - new).max(), start.params, expected.params)
    assert min(jax.tree.leaves(moved)) > 1e-3
    for count in counts:
        several, progress = trained(tmp_path / str(count), count, state, model)
        _, found, _ = small.last_state(several)
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, atol=3e-6), expected.params, found.params
        )
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, atol=3e-6), expected.carry, found.carry
        )
        assert progress.best == pytest.approx(progress_alone.best, abs=1e-5)


@pytest.mark.slow
def test_a_run_goes_on_with_another_number_of_devices(tmp_path, monkeypatch):
    whole, _ = trained(tmp_path / "whole", 1, "carried")
    recipe = recipe_of("carried")
    first = small.trainer(small.with_settings(recipe, "training.epochs=1"), tmp_path / "run", 4)
    first.train()
    # What ended after one epoch goes on as if it had been interrupted there.
    manager = small.Checkpoints(tmp_path / "run" / "checkpoints")
    step, state, progress = manager.restore("last", first.initial_state())
    manager.save("last", step, state, progress | {"finished": False})
    manager.close()
    second = small.trainer(recipe, tmp_path / "run", 2)
    second.train()
    expected, found = small.last_state(whole)[1], small.last_state(second)[1]
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, atol=3e-6), expected.params, found.params
    )


def state_of(carry):
    """A state of two parameters and a carry."""
    params = {"a": np.arange(6.0, dtype=np.float32).reshape(2, 3), "b": np.float32(3)}
    return TrainState(params, (), carry, np.int32(7))


def test_rows_go_to_the_devices_and_back():
    devices = Devices(4, batch=8)
    carry = np.arange(24.0, dtype=np.float32).reshape(8, 3)
    split = devices.split({"a": carry, "b": np.arange(8)})
    assert [shard.data.shape for shard in split["a"].addressable_shards] == 4 * [(2, 3)]
    np.testing.assert_array_equal(split["a"], carry)
    state = small.on_devices(state_of(carry), devices)
    assert [shard.data.shape for shard in state.carry.addressable_shards] == 4 * [(2, 3)]
    jax.tree.map(np.testing.assert_array_equal, jax.device_get(state), state_of(carry))
    tables = {"a": np.arange(3.0)}
    np.testing.assert_array_equal(devices.first(devices.place(tables))["a"], tables["a"])


@pytest.mark.parametrize("count", [1, 4])
def test_what_comes_and_goes_at_every_step_needs_no_program(count):
    """Results are read, and batches and the next epoch's carry are placed, without compiling."""
    devices = Devices(count, batch=8)
    carry = np.arange(24.0, dtype=np.float32).reshape(8, 3)
    results = devices.place({"loss": np.float32(2.5), "tokens": np.float32(7)})
    empty = devices.empty(lambda: jax.numpy.ones((8, 3)))
    first = empty()
    with small.compilations() as compiled:
        assert devices.first(results) == {"loss": 2.5, "tokens": 7}
        again, batch = empty(), devices.split(carry)
    assert not compiled
    assert again.sharding.is_equivalent_to(batch.sharding, batch.ndim)
    np.testing.assert_array_equal(np.asarray(again), np.asarray(first))
    np.testing.assert_array_equal(batch, carry)
    assert devices.split(()) == ()  # a core that carries nothing


def test_a_batch_that_does_not_divide_is_refused():
    with pytest.raises(UserError, match=r"training.batch=6 does not divide by 4 .*batch=8"):
        Devices(4, batch=6)


@pytest.mark.parametrize("count", [5, -1])
def test_devices_that_are_not_there_are_refused(count):
    with pytest.raises(UserError, match=f"--devices {count}: this machine has 4"):
        Devices(count, batch=8)


def test_no_number_takes_all_devices():
    assert Devices(0, batch=8).count == 4


@pytest.mark.parametrize("count", [-1, 9])
def test_a_number_of_devices_that_are_not_there_is_found_before_the_data_are_read(count):
    recipe = small.with_settings(small.experiment(), "model.head=Softmax")
    with pytest.raises(UserError, match=f"--devices {count}: this machine has 4; 0 takes all"):
        tasks.prepare(recipe, count)


# ---- masks of words and states, windows and averages on several devices: the same but for rounding


@pytest.mark.slow
@pytest.mark.parametrize("devices", [2, 4])
def test_neither_it_does_for_masks_windows_and_averages(tmp_path, devices):
    ends = []
    for count in (1, devices):
        trainer = small.trainer(RECIPES["regularised"], tmp_path / str(count), count)
        progress = trainer.train()
        ends.append((small.last_state(trainer)[1].params, progress.validations))
    jax.tree.map(
        lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-3, atol=2e-5),
        ends[0][0],
        ends[1][0],
    )
    np.testing.assert_allclose(ends[0][1], ends[1][1], rtol=1e-5)
