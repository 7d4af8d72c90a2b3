"""Checkpoints: whole or not at all, and what happens when they are damaged after all."""

import contextlib
import errno
import logging
import os
import pathlib
import shutil

import jax
import numpy as np
import pytest

from tests.lab.training import small
from zoo.errors import UserError
from zoo.lab.runs.checkpoints import Checkpoints

STATE = {"weights": np.arange(6, dtype=np.float32).reshape(2, 3), "step": np.int32(4)}


@pytest.fixture
def checkpoints(tmp_path):
    checkpoints_opened = Checkpoints(tmp_path / "checkpoints")
    yield checkpoints_opened
    checkpoints_opened.close()


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


def test_what_a_kill_leaves_is_no_checkpoint_and_is_removed(tmp_path, monkeypatch):
    class Killed(BaseException):
        pass

    def half(folder, **_):
        """Deletes some of a folder, and no more."""
        if "checkpoints" in str(folder) and pathlib.Path(folder).exists():
            next(path for path in pathlib.Path(folder).rglob("*") if path.is_file()).unlink()
            raise Killed

    folder = tmp_path / "checkpoints"
    killed = Checkpoints(folder)
    for step in (1, 2):
        killed.save("last", step, state_of(step), {})
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", half)
        with pytest.raises(Killed):
            killed.save("last", 3, state_of(3), {})
    (folder / "best/4.orbax-checkpoint-tmp/arrays").mkdir(parents=True)
    names = lambda kind: sorted(path.name for path in (folder / kind).iterdir())  # noqa: E731
    assert names("last") == ["2", "3", "deleted"]
    reading = Checkpoints(folder, read_only=True)
    assert (reading.steps("last"), reading.steps("best")) == ([3, 2], [])
    assert names("last") == ["2", "3", "deleted"]  # it may be another process that deletes it
    Checkpoints(folder).close()
    assert (names("last"), names("best")) == (["2", "3"], [])


@pytest.mark.parametrize("part", ["arrays", "progress", "."])
@pytest.mark.parametrize("size", [0, 20])
def test_one_that_is_cut_short_is_passed_over_and_said_so(checkpoints, part, size):
    for step in (1, 2):
        checkpoints.save("last", step, state_of(step), {"epoch": step, "long": "x" * 100})
    truncate(checkpoints.folder / "last" / "2" / part, size)
    log = []
    step, arrays, progress = checkpoints.restore("last", STATE, log.append)
    assert (step, progress["epoch"]) == (1, 1)
    jax.tree.map(np.testing.assert_array_equal, arrays, state_of(1))
    assert len(log) == 1
    assert "the checkpoint of step 2 in" in log[0]
    assert "damaged and passed over" in log[0]
    assert "\n" not in log[0]
    checkpoints.save("last", 2, state_of(7), {"epoch": 7})
    jax.tree.map(np.testing.assert_array_equal, checkpoints.restore("last", STATE)[1], state_of(7))


BYTES = np.random.default_rng(3).integers(0, 256, size=(3, 4001), dtype=np.uint8)


def flip_a_bit(folder: pathlib.Path, array=BYTES):
    """Changes one bit of an array of random bytes, which lie in a file as they are.

    orbax keeps a checksum of no more than the indices of its files.
    """
    flips = 0
    for path in folder.rglob("*"):
        if path.is_file() and (position := path.read_bytes().find(array.tobytes()[:99])) >= 0:
            raw = bytearray(path.read_bytes())
            raw[position + 50] ^= 4
            path.write_bytes(raw)
            flips += 1
    assert flips == 1


def test_a_flipped_bit_is_found(checkpoints):
    state = {**STATE, "bytes": BYTES}
    for step in (1, 2):
        checkpoints.save("last", step, state, {"epoch": step})
    flip_a_bit(checkpoints.folder / "last" / "2")
    log = []
    step, arrays, progress = checkpoints.restore("last", state, log.append)
    assert (step, progress) == (1, {"epoch": 1})
    np.testing.assert_array_equal(arrays["bytes"], BYTES)
    (line,) = log
    assert "step 2" in line and line.endswith("passed over (bytes is not as it was saved).")


def test_a_changed_number_of_the_progress_is_found(checkpoints):
    for step in (1, 2):
        checkpoints.save("last", step, STATE, {"epoch": step, "best": 3.25})
    path = checkpoints.folder / "last" / "2" / "progress" / "metadata"
    path.write_text(path.read_text().replace("3.25", "3.75"))
    log = []
    assert checkpoints.restore("last", STATE, log.append)[2] == {"epoch": 1, "best": 3.25}
    assert "its progress is not as it was saved" in log[0]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (
            {"weights": np.zeros((13, 3), np.float32)},
            r"weights is float32\[2, 3\] there, and float32\[13, 3\] in the model",
        ),
        (
            {"weights": np.zeros((2, 3), np.float16)},
            r"weights is float32\[2, 3\] there, and float16\[2, 3\] in the model",
        ),
    ],
)
def test_arrays_of_another_model_are_refused(checkpoints, arrays, message):
    checkpoints.save("last", 1, STATE, {})
    with pytest.raises(UserError, match=f"none .* can be read .step 1: {message}"):
        checkpoints.restore("last", STATE | arrays, [].append)


def test_reading_changes_nothing(checkpoints):
    checkpoints.save("best", 1, STATE, {})
    before = sorted(checkpoints.folder.rglob("*"))
    reading = Checkpoints(checkpoints.folder, ("best",), read_only=True)
    jax.tree.map(np.testing.assert_array_equal, reading.restore("best", STATE)[1], STATE)
    reading.close()
    assert sorted(checkpoints.folder.rglob("*")) == before


def test_reading_is_silent(checkpoints, caplog):
    checkpoints.save("best", 1, STATE, {})
    caplog.clear()
    absl = logging.getLogger("absl")  # the programs silence it; who loads a run elsewhere does not
    absl.addHandler(caplog.handler)
    try:
        reading = Checkpoints(checkpoints.folder, ("best",), read_only=True)
        assert reading.restore("best", STATE)[0] == 1
        reading.close()
    finally:
        absl.removeHandler(caplog.handler)
    assert [line for line in caplog.records if line.levelno >= logging.WARNING] == []


def test_where_none_can_be_read_nothing_is_overwritten(checkpoints):
    for step in (1, 2):
        checkpoints.save("last", step, state_of(step), {})
        truncate(checkpoints.folder / "last" / str(step))
    log = []
    with pytest.raises(UserError, match=r"none of the checkpoints in .*/last can be read"):
        checkpoints.restore("last", STATE, log.append)
    assert len(log) == 2


@pytest.mark.slow
def test_a_run_goes_on_from_the_checkpoint_before_a_damaged_one(tmp_path):
    recipe = small.experiment(epochs=2, checkpoint_every=2)
    uninterrupted = small.trainer(recipe, tmp_path / "whole")
    uninterrupted.train()
    shutil.copytree(tmp_path / "whole", tmp_path / "damaged")
    last, before = Checkpoints(tmp_path / "damaged" / "checkpoints").steps("last")
    truncate(tmp_path / "damaged" / "checkpoints" / "last" / str(last))
    log = []
    resumed = small.trainer(recipe, tmp_path / "damaged", log=log)
    resumed.train()
    assert f"step {last}" in log[0] and "passed over" in log[0]
    assert f"resuming after step {before}" in log[1]
    expected, state = small.last_state(uninterrupted), small.last_state(resumed)
    assert expected[0] == state[0]
    jax.tree.map(np.testing.assert_array_equal, expected[1], state[1])


def fail_to_save(monkeypatch, checkpoints, *error):
    def save(*arguments, **options):
        raise OSError(*error)

    monkeypatch.setattr(checkpoints._managers["last"], "save", save)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EDQUOT, "the user's share of the disk is used up"),
        (errno.EFBIG, "a file would be larger than is allowed"),
    ],
)
def test_a_full_disk_is_said_in_one_sentence(checkpoints, monkeypatch, code, reason):
    checkpoints.save("last", 1, state_of(1), {})
    message = f"[{os.strerror(code)}; source: tensorstore]"
    fail_to_save(monkeypatch, checkpoints, errno.ENOSPC, message)
    with pytest.raises(UserError, match=f"{reason}: the checkpoint of step 2 could") as caught:
        checkpoints.save("last", 2, state_of(2), {})
    assert "\n" not in str(caught.value)
    jax.tree.map(np.testing.assert_array_equal, checkpoints.restore("last", STATE)[1], state_of(1))


def test_any_other_error_of_the_system_keeps_its_traceback(checkpoints, monkeypatch):
    fail_to_save(monkeypatch, checkpoints, errno.EIO, os.strerror(errno.EIO))
    with pytest.raises(OSError, match="Input/output"):
        checkpoints.save("last", 2, state_of(2), {})


# TensorBoard's own thread fails too; zoo.lab.commands.program keeps its traceback from the user.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_disk_that_really_is_full(small_disk):
    recipe = small.experiment(epochs=2, checkpoint_every=2)
    filler = small_disk / "filler"
    trainer = small.trainer(recipe, small_disk / "run")
    save_checkpoint = Checkpoints.save

    def save(self, kind, step, arrays, progress):
        if step == 4 and not filler.exists():
            with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
                while file.write(b"x" * 512):
                    pass
        save_checkpoint(self, kind, step, arrays, progress)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoints, "save", save)
        with pytest.raises(UserError, match="the disk is full: the checkpoint of step 4") as caught:
            trainer.train()
    assert "\n" not in str(caught.value)
    filler.unlink()
    assert small.last_state(trainer)[0] == 2
    resumed = small.trainer(recipe, small_disk / "run")
    assert resumed.train().finished
