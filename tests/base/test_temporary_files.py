"""What is on its way to being whole: by whom it is made, and what becomes of it after a kill."""

import errno
import fcntl
import os
import subprocess
import sys
import time

import pytest

from zoo.base import temporary_files
from zoo.errors import UserError

# A process that is killed in the middle of its work, or lives on with it.
MAKES = """
import os, pathlib, sys, time
from zoo.base import temporary_files as unfinished
with unfinished.folder(pathlib.Path(sys.argv[1])) as folder:
    (folder / "part").write_text("1")
    print(folder.name, flush=True)
    time.sleep(3600)
"""


@pytest.fixture
def maker(tmp_path):
    """A process at work on tmp_path/"out", and the folder that it writes to."""
    process = subprocess.Popen(
        [sys.executable, "-c", MAKES, str(tmp_path / "out")], stdout=subprocess.PIPE, text=True
    )
    yield process, tmp_path / process.stdout.readline().strip()
    process.kill()
    process.communicate()


def test_a_killed_process_leaves_nothing_for_long(maker, tmp_path):
    process, leftover = maker
    unrelated = [tmp_path / f".out2.{'0' * 32}.partial", tmp_path / ".out.mine.partial"]
    for path in unrelated:
        path.mkdir()
    with temporary_files.folder(tmp_path / "out") as folder:
        assert (leftover / "part").exists()  # of a process that lives
        (folder / "whole").write_text("2")
    process.kill()
    process.wait()
    assert (leftover / "part").exists()
    (tmp_path / "out/whole").unlink()
    with temporary_files.folder(tmp_path / "out"):
        assert not leftover.exists()
    assert {*tmp_path.iterdir()} == {tmp_path / "out", *unrelated}  # nobody else's


def test_a_file_is_cleared_as_a_folder_is(tmp_path):
    leftover = tmp_path / f".file.{'0' * 32}.partial"
    leftover.write_text("half")
    with temporary_files.new_path(tmp_path / "file") as temporary:
        assert [*tmp_path.iterdir()] == [temporary]
        temporary_files.clear(tmp_path / "file")
        assert temporary.exists()


@pytest.mark.parametrize("suffix", ["partial", "unlocked"])
def test_work_whose_lock_nobody_can_tell_is_left_for_a_day(tmp_path, monkeypatch, suffix):
    """On a file system without locks, or of a process that was killed before it locked it."""

    def refuse(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    if suffix == "partial":
        monkeypatch.setattr(fcntl, "flock", refuse)
    leftover = tmp_path / f".out.{'0' * 32}.{suffix}"
    (leftover / "shards").mkdir(parents=True)
    (leftover / "shards/0").write_text("0")
    days_ago = time.time() - 2 * temporary_files.FORGOTTEN
    for path in (leftover, leftover / "shards"):
        os.utime(path, (days_ago, days_ago))
    temporary_files.clear(tmp_path / "out")
    assert leftover.exists()  # a file in it was written just now
    os.utime(leftover / "shards/0", (days_ago, days_ago))
    temporary_files.clear(tmp_path / "out")
    assert not leftover.exists()


def test_of_two_that_make_a_folder_the_second_is_told(tmp_path):
    with (
        pytest.raises(UserError, match="out has just been made by another process: look at it"),
        temporary_files.folder(tmp_path / "out") as second,
    ):
        with temporary_files.folder(tmp_path / "out") as first:
            (first / "file").write_text("first")
        (second / "file").write_text("second")
    assert (tmp_path / "out/file").read_text() == "first"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_what_fails_leaves_nothing(tmp_path):
    with pytest.raises(KeyError), temporary_files.folder(tmp_path / "new/folders/out"):
        raise KeyError
    assert not [*tmp_path.iterdir()]
    umask = os.umask(0o027)
    try:
        with temporary_files.folder(tmp_path / "out") as folder:
            (folder / "file").touch()
    finally:
        os.umask(umask)
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o750  # the user's own choice
