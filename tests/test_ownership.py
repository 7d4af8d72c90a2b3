"""One process trains in a folder; what is dead owns nothing."""

import concurrent.futures
import errno
import json
import os
import signal
import subprocess
import threading
import time

import pytest

from zoo import alive
from zoo.errors import UserError
from zoo.runs import ownership
from zoo.runs.ownership import FILE, Ownership, check_free


@pytest.fixture
def fast(monkeypatch):
    """An owner elsewhere is dead after half a second."""
    monkeypatch.setattr(ownership, "BEAT", 0.1)
    monkeypatch.setattr(ownership, "SILENCE", 0.5)


def owner_elsewhere(folder, **changed):
    """The lock of a process on another machine, whose time is now."""
    record = {"host": "elsewhere", "pid": 7, "began": "1", "boot": "b", "namespace": "n"}
    (folder / FILE).write_text(json.dumps(record | {"token": "theirs"} | changed))


def process(folder):
    """A process that the folder's lock names as its owner."""
    started = subprocess.Popen(["sleep", "60"])
    record = alive.this_process() | {
        "pid": started.pid,
        "began": alive.began(started.pid),
    }
    (folder / FILE).write_text(json.dumps(record | {"token": "theirs"}))
    return started


def test_a_folder_has_one_owner_until_it_ends(tmp_path):
    with Ownership(tmp_path) as first:
        with first.kept():
            pass
        with pytest.raises(UserError, match=f"is being trained by process {os.getpid()} on "):
            Ownership(tmp_path).__enter__()
        with pytest.raises(UserError, match="wait until it has ended, stop it, or give another"):
            check_free(tmp_path)
        with first.kept():
            pass
    assert list(tmp_path.iterdir()) == []
    with Ownership(tmp_path):
        pass


def test_a_killed_owner_owns_nothing(tmp_path):
    other = process(tmp_path)
    with pytest.raises(UserError, match=f"by process {other.pid} on "):
        Ownership(tmp_path).__enter__()
    other.kill()
    while alive.began(other.pid):  # until it is a zombie, which nobody has waited for yet
        time.sleep(0.01)
    check_free(tmp_path)
    with Ownership(tmp_path, pytest.fail):
        pass
    other.communicate()
    assert list(tmp_path.iterdir()) == []


def test_a_stopped_owner_owns(tmp_path):
    other = process(tmp_path)
    other.send_signal(signal.SIGSTOP)
    with pytest.raises(UserError, match=f"by process {other.pid} on "):
        Ownership(tmp_path).__enter__()
    other.kill()
    other.communicate()


def test_a_number_that_was_given_again_is_another_process(tmp_path):
    record = alive.this_process() | {"began": "1", "token": "theirs"}
    (tmp_path / FILE).write_text(json.dumps(record))
    check_free(tmp_path)
    with Ownership(tmp_path, pytest.fail):
        assert json.loads((tmp_path / FILE).read_text())["began"] != "1"


@pytest.mark.parametrize("name", ["boot", "namespace"])
def test_the_same_number_in_another_container_says_nothing(tmp_path, fast, name):
    record = alive.this_process() | {name: "other", "token": "theirs"}
    (tmp_path / FILE).write_text(json.dumps(record))
    check_free(tmp_path)  # which waits for nobody
    said = []
    with Ownership(tmp_path, said.append):
        pass
    assert f"process {os.getpid()} on " in said[0] and "for a sign of life" in said[0]


def test_an_owner_elsewhere_lives_as_long_as_its_times_go_on(tmp_path, fast):
    owner_elsewhere(tmp_path)
    beats = []

    def beat(_):
        beats.append(os.utime(tmp_path / FILE, (time.time() + 3600,) * 2))  # a clock ahead of ours

    with pytest.raises(UserError, match="by process 7 on elsewhere"):
        Ownership(tmp_path, beat).__enter__()
    assert len(beats) == 1
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


def test_an_owner_elsewhere_that_is_silent_for_long_is_dead(tmp_path):
    owner_elsewhere(tmp_path)
    before = time.time() - ownership.SILENCE - 5
    os.utime(tmp_path / FILE, (before, before))
    with Ownership(tmp_path, pytest.fail):
        pass


@pytest.mark.parametrize("content", [b"", b"[1]", b"\xff", b'{"pid": "x"}'])
def test_a_lock_that_cannot_be_read_is_held_until_it_is_silent(tmp_path, fast, content):
    (tmp_path / FILE).write_bytes(content)
    said = []
    with Ownership(tmp_path, said.append):
        pass
    assert "a process that training.lock does not name" in said[0]


def test_an_owner_shows_signs_of_life(tmp_path, fast):
    with Ownership(tmp_path):
        os.utime(tmp_path / FILE, (1, 1))
        end = time.monotonic() + 10
        while (tmp_path / FILE).stat().st_mtime == 1 and time.monotonic() < end:
            time.sleep(0.02)
        assert (tmp_path / FILE).stat().st_mtime > 1


def test_an_owner_that_was_taken_for_dead_saves_no_more(tmp_path):
    with Ownership(tmp_path) as first:
        owner_elsewhere(tmp_path)
        with (
            pytest.raises(UserError, match="was taken over by process 7 on elsewhere"),
            first.kept(),
        ):
            pytest.fail("it saves")
    assert json.loads((tmp_path / FILE).read_text())["token"] == "theirs"


def test_a_folder_that_is_gone_is_said(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    with Ownership(folder) as first:
        gone = "run was deleted or moved, .* nothing more is saved"
        with pytest.raises(UserError, match=gone), first.kept():
            folder.rename(tmp_path / "moved")
            raise FileNotFoundError(errno.ENOENT, "of what was to be saved")
        with pytest.raises(UserError, match="was deleted or moved"), first.kept():
            pytest.fail("it saves")


@pytest.mark.parametrize("dead", [False, True])
def test_one_of_many_gets_the_folder(tmp_path, dead):
    """Whether it is free or its owner is dead."""
    for attempt in range(5):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        if dead:
            record = alive.this_process() | {"began": "1", "token": "dead"}
            (folder / FILE).write_text(json.dumps(record))
        owners = [Ownership(folder) for _ in range(8)]
        together = threading.Barrier(len(owners))

        def take(owner, together=together):
            together.wait()
            try:
                return owner.__enter__()
            except UserError:
                return None

        with concurrent.futures.ThreadPoolExecutor(len(owners)) as pool:
            (one,) = filter(None, pool.map(take, owners))
        with one.kept():
            pass
        one.__exit__()
        assert list(folder.iterdir()) == []


def test_without_hard_links(tmp_path, monkeypatch):
    def link(*_):
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", link)
    with Ownership(tmp_path), pytest.raises(UserError, match=f"by process {os.getpid()}"):
        Ownership(tmp_path).__enter__()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_to(tmp_path, monkeypatch):
    def write(*_):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(ownership, "_write", write)
    with pytest.raises(UserError, match=r"cannot be written to \(Read-only file system\)"):
        Ownership(tmp_path).__enter__()
