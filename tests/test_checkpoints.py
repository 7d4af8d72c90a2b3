"""Checkpoints: whole or not at all, and what happens when they are damaged after all."""

import errno
import os
import pathlib
import shutil

import jax
import numpy as np
import pytest

from tests.training import small
from zoo.checkpoints import Checkpoints
from zoo.errors import UserError

STATE = {"weights": np.arange(6, dtype=np.float32).reshape(2, 3), "step": np.int32(4)}


@pytest.fixture
def checkpoints(tmp_path):
    opened = Checkpoints(tmp_path / "checkpoints")
    yield opened
    opened.close()


def state_of(step):
    return jax.tree.map(lambda x: x + np.asarray(step, x.dtype), STATE)


def truncate(folder: pathlib.Path, size=0):
    """Cuts every file below a folder short."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    for path in files:
        with path.open("r+b") as file:
            file.truncate(min(size, path.stat().st_size))


def test_what_is_saved_is_restored(checkpoints):
    assert checkpoints.restore("last", STATE) is None
    for step in (1, 2, 3):
        checkpoints.save("last", step, state_of(step), {"best": float("inf"), "epoch": step})
    assert checkpoints.steps("last") == [3, 2]
    step, arrays, progress = checkpoints.restore("last", STATE)
    assert (step, progress) == (3, {"best": float("inf"), "epoch": 3})
    jax.tree.map(np.testing.assert_array_equal, arrays, state_of(3))
    assert arrays["step"].dtype == np.int32


def test_a_checkpoint_of_the_same_step_is_replaced(checkpoints):
    checkpoints.save("best", 1, state_of(1), {})
    checkpoints.save("best", 1, state_of(5), {"again": True})
    step, arrays, progress = checkpoints.restore("best", STATE)
    assert (step, progress) == (1, {"again": True})
    jax.tree.map(np.testing.assert_array_equal, arrays, state_of(5))


@pytest.mark.parametrize("part", ["arrays", "progress", "."])
@pytest.mark.parametrize("size", [0, 20])
def test_one_that_is_cut_short_is_passed_over_and_said_so(checkpoints, part, size):
    for step in (1, 2):
        checkpoints.save("last", step, state_of(step), {"epoch": step, "long": "x" * 100})
    truncate(checkpoints.folder / "last" / "2" / part, size)
    said = []
    step, arrays, progress = checkpoints.restore("last", STATE, said.append)
    assert (step, progress["epoch"]) == (1, 1)
    jax.tree.map(np.testing.assert_array_equal, arrays, state_of(1))
    assert len(said) == 1
    assert "the checkpoint of step 2 in" in said[0]
    assert "damaged and passed over" in said[0]
    assert "\n" not in said[0]
    checkpoints.save("last", 2, state_of(7), {"epoch": 7})
    jax.tree.map(np.testing.assert_array_equal, checkpoints.restore("last", STATE)[1], state_of(7))


def test_where_none_can_be_read_nothing_is_overwritten(checkpoints):
    for step in (1, 2):
        checkpoints.save("last", step, state_of(step), {})
        truncate(checkpoints.folder / "last" / str(step))
    said = []
    with pytest.raises(UserError, match=r"none of the checkpoints in .*/last can be read"):
        checkpoints.restore("last", STATE, said.append)
    assert len(said) == 2


def test_a_run_goes_on_from_the_checkpoint_before_a_damaged_one(tmp_path):
    recipe = small.experiment(epochs=2, checkpoint_every=2)
    whole = small.trainer(recipe, tmp_path / "whole")
    whole.train()
    shutil.copytree(tmp_path / "whole", tmp_path / "damaged")
    last, before = Checkpoints(tmp_path / "damaged" / "checkpoints").steps("last")
    truncate(tmp_path / "damaged" / "checkpoints" / "last" / str(last))
    said = []
    resumed = small.trainer(recipe, tmp_path / "damaged", said=said)
    resumed.train()
    assert f"step {last}" in said[0] and "passed over" in said[0]
    assert f"resuming after step {before}" in said[1]
    expected, found = small.last_state(whole), small.last_state(resumed)
    assert expected[0] == found[0]
    jax.tree.map(np.testing.assert_array_equal, expected[1], found[1])


def fill_the_disk(monkeypatch, checkpoints, kind, message):
    def save(*arguments, **options):
        raise OSError(errno.ENOSPC, message)

    monkeypatch.setattr(checkpoints._managers[kind], "save", save)


def test_a_full_disk_is_said_in_one_sentence(checkpoints, monkeypatch):
    checkpoints.save("last", 1, state_of(1), {})
    fill_the_disk(monkeypatch, checkpoints, "last", os.strerror(errno.ENOSPC))
    with pytest.raises(UserError, match="the disk is full: the checkpoint of step 2") as caught:
        checkpoints.save("last", 2, state_of(2), {})
    assert "\n" not in str(caught.value)
    jax.tree.map(np.testing.assert_array_equal, checkpoints.restore("last", STATE)[1], state_of(1))


def test_any_other_error_of_the_system_keeps_its_traceback(checkpoints, monkeypatch):
    def save(*arguments, **options):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(checkpoints._managers["last"], "save", save)
    with pytest.raises(OSError, match="Input/output"):
        checkpoints.save("last", 2, state_of(2), {})


def test_a_run_goes_on_once_there_is_room(tmp_path, monkeypatch):
    recipe = small.experiment(epochs=2, checkpoint_every=2)
    whole = small.trainer(recipe, tmp_path / "whole")
    whole.train()
    full = small.trainer(recipe, tmp_path / "full")
    save_of = Checkpoints.save

    def save(self, kind, step, arrays, progress):
        if step == 4:
            fill_the_disk(monkeypatch, self, kind, os.strerror(errno.ENOSPC))
        save_of(self, kind, step, arrays, progress)

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "save", save)
        with pytest.raises(UserError, match="the checkpoint of step 4 could not be written"):
            full.train()
    assert small.last_state(full)[0] == 2
    resumed = small.trainer(recipe, tmp_path / "full")
    resumed.train()
    jax.tree.map(
        np.testing.assert_array_equal, small.last_state(whole)[1], small.last_state(resumed)[1]
    )


# TensorBoard's own thread fails too; zoo.cli keeps its traceback from the user.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_disk_that_really_is_full(small_disk):
    recipe = small.experiment(epochs=2, checkpoint_every=2)
    filler = small_disk / "filler"
    trainer = small.trainer(recipe, small_disk / "run")
    said_of = Checkpoints.save

    def save(self, kind, step, arrays, progress):
        if step == 4 and not filler.exists():
            with filler.open("wb", buffering=0) as file:
                try:
                    while file.write(b"x" * 512):
                        pass
                except OSError:
                    pass
        said_of(self, kind, step, arrays, progress)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoints, "save", save)
        with pytest.raises(UserError, match="the disk is full: the checkpoint of step 4") as caught:
            trainer.train()
    assert "\n" not in str(caught.value)
    filler.unlink()
    assert small.last_state(trainer)[0] == 2
    resumed = small.trainer(recipe, small_disk / "run")
    assert resumed.train().finished
