"""One process trains in a folder; the system ends its lock with it."""

import concurrent.futures
import errno
import json
import os
import signal
import subprocess
import sys
import threading

import pytest

from tests import object_store
from zoo.errors import ProcessLost, UserError
from zoo.lab.runs import location, training_lock
from zoo.lab.runs.training_lock import BUCKET_FILE, FILE, Ownership, check_free

# Holds the lock of a folder until it is killed.
HOLDER = """
import pathlib, sys, time
from zoo.lab.runs.training_lock import Ownership
with Ownership(pathlib.Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(3600)
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that trains in the folder."""
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def elsewhere(folder):
    """Has the lock's file name a process of another machine."""
    (folder / FILE).write_text(json.dumps({"process": 7, "host": "elsewhere", "token": "other"}))


def test_a_folder_has_one_owner_until_it_ends(tmp_path):
    with Ownership(tmp_path) as first:
        with first.guard():
            pass
        with pytest.raises(UserError, match=f"is being trained by process {os.getpid()} on "):
            Ownership(tmp_path).__enter__()
        with pytest.raises(UserError, match="wait until it has ended, stop it, or give another"):
            check_free(tmp_path)
        with first.guard():
            pass
    check_free(tmp_path)
    with Ownership(tmp_path):
        pass


def test_a_killed_owner_owns_nothing(tmp_path, holder):
    with pytest.raises(UserError, match=f"by process {holder.pid} on "):
        Ownership(tmp_path).__enter__()
    holder.kill()
    holder.wait()
    check_free(tmp_path)
    with Ownership(tmp_path, pytest.fail):
        pass


def test_a_stopped_owner_owns(tmp_path, holder):
    holder.send_signal(signal.SIGSTOP)
    with pytest.raises(UserError, match=f"by process {holder.pid} on "):
        Ownership(tmp_path).__enter__()


def test_the_lock_of_another_machine_is_waited_for(tmp_path, holder, monkeypatch):
    elsewhere(tmp_path)
    lines = []

    def log(line):
        lines.append(line)
        holder.kill()  # the server of the folder takes the lock from a lost machine

    check = pytest.raises(UserError, match="by process 7 on elsewhere")
    with check:
        check_free(tmp_path)  # which waits for nobody
    with Ownership(tmp_path, log):
        pass
    assert "is locked by process 7 on elsewhere: waiting up to 120 s" in lines[0]


def test_the_wait_for_another_machine_ends(tmp_path, holder, monkeypatch):
    monkeypatch.setattr(training_lock, "SILENCE", 0.2)
    elsewhere(tmp_path)
    with pytest.raises(UserError, match="is being trained by process 7 on elsewhere: wait"):
        Ownership(tmp_path, lambda line: None).__enter__()


def test_a_task_that_slurm_started_again_may_find_its_orphan_and_is_tried_later(
    tmp_path, holder, monkeypatch
):
    monkeypatch.setenv("SLURM_RESTART_COUNT", "1")
    with pytest.raises(ProcessLost, match=f"is being trained by process {holder.pid} on "):
        Ownership(tmp_path).__enter__()


@pytest.mark.parametrize("content", [b"", b"[1]", b"\xff", b'{"process": "x"}'])
def test_a_lock_that_says_nothing_is_another_process(tmp_path, holder, content):
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(UserError, match="is being trained by another process: wait"):
        Ownership(tmp_path).__enter__()


def test_a_folder_that_was_moved_is_named(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    with Ownership(folder) as first:
        message = "run was deleted or moved, .* nothing more is saved"
        with pytest.raises(UserError, match=message), first.guard():
            folder.rename(tmp_path / "moved")
            raise FileNotFoundError(errno.ENOENT, "of what was to be saved")
        with pytest.raises(UserError, match="was deleted or moved"), first.guard():
            pytest.fail("it saves")


def test_one_of_many_gets_the_folder(tmp_path):
    for attempt in range(5):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        owners = [Ownership(folder) for _ in range(8)]
        together = threading.Barrier(len(owners))

        def take(owner, together=together):
            together.wait()
            try:
                return owner.__enter__()
            except UserError:
                return None

        with concurrent.futures.ThreadPoolExecutor(len(owners)) as pool:
            (owner,) = filter(None, pool.map(take, owners))
        with owner.guard():
            pass


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.ENOLCK])
def test_a_folder_that_cannot_be_locked_is_named(tmp_path, monkeypatch, number):
    def refuse(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(training_lock, "_acquire", refuse)
    with pytest.raises(UserError, match=rf"cannot be locked \({os.strerror(number)}\): make it"):
        Ownership(tmp_path).__enter__()


def test_in_a_bucket_the_last_one_goes_on(monkeypatch):
    object_store.stand_in(monkeypatch, objects := {})
    run = location.to_path("gs://b/run")
    with Ownership(run) as first:
        with first.guard():
            pass
        with Ownership(run) as second:
            with second.guard():
                pass
            message = f"was taken over by process {os.getpid()} on .*: wait until it has ended"
            with pytest.raises(UserError, match=message), first.guard():
                pytest.fail("it saves")
        assert not objects  # the second has ended
        with pytest.raises(UserError, match=f"or {BUCKET_FILE} in it was"), first.guard():
            pytest.fail("it saves")
    assert not objects
