"""What all processes of a run must have in common, and how one learns that another has ended.

Runs of several are in lab/training/test_train_processes.py.
"""

import os
import subprocess
import sys
import threading

import jax
import numpy as np
import pytest
from jax.experimental import multihost_utils

from tests.lab.training import processes
from zoo.base import distributed
from zoo.errors import ProcessLost, UserError


@pytest.mark.parametrize("options", [(None, None, None), (None, 1, None), ("h:1", 1, 0)])
def test_one_process_joins_nobody(monkeypatch, options):
    monkeypatch.setattr(jax.distributed, "initialize", None)
    with distributed.connect(*options):
        pass


def test_a_cluster_that_is_not_there_is_named(monkeypatch):
    def initialize(coordinator, count, index, **options):
        assert (coordinator, count, index) == (None, None, None)
        assert options["cluster_detection_method"] is None
        raise ValueError("coordinator_address should be defined.")

    monkeypatch.setattr(jax.distributed, "initialize", initialize)
    sentence = r"--processes auto: JAX finds no cluster here \(coordinator_address should"
    with pytest.raises(UserError, match=sentence), distributed.connect(None, "auto", None):
        pass


@pytest.fixture
def joined(monkeypatch):
    """A run of two processes, the other of which is not there."""
    monkeypatch.setattr(jax.distributed, "initialize", lambda *places, **options: None)
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    return lambda: distributed.connect("h:1", 2, 1)


@pytest.mark.parametrize("kind", [ValueError, jax.errors.JaxRuntimeError])
def test_a_collective_that_breaks_off_is_a_lost_process(joined, kind):
    with pytest.raises(ProcessLost, match=r"\(UNKNOWN: Gloo AllGather failed\)"), joined():
        try:
            raise kind("UNKNOWN: Gloo AllGather failed\nand more")
        except kind as error:
            raise OSError("a checkpoint") from error


@pytest.mark.parametrize(
    "error",
    [
        KeyError("UNKNOWN"),
        ValueError("a value that is UNKNOWN"),
        jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: out of memory"),
        UserError("a sentence."),
    ],
)
def test_other_errors_stay_as_they_are(joined, error):
    with pytest.raises(type(error)) as failure, joined():
        raise error
    assert failure.value is error


def gathering(monkeypatch, change):
    """Two processes, of which the other has the array that `change` makes of this one's."""
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    monkeypatch.setattr(
        multihost_utils, "process_allgather", lambda mine: np.stack([mine, change(mine)])
    )


def test_processes_that_agree_go_on(monkeypatch):
    gathering(monkeypatch, lambda mine: mine)
    distributed.check_same_texts(recipe="{}", folder="runs/a")


def test_the_first_text_that_differs_is_named(monkeypatch):
    gathering(monkeypatch, lambda mine: mine + np.array([[0], [1]], np.uint8))
    with pytest.raises(UserError, match=r"process 1 has another version of the code than process"):
        distributed.check_same_texts(recipe="{}", version_of_the_code="1")


def test_the_code_has_one_hash_in_all_processes(tmp_path, monkeypatch):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "version.py").write_text("1")
        (tmp_path / name / "more.py").write_text("2")
    messages = []
    for name in ("a", "b"):
        monkeypatch.setattr(distributed.version, "__file__", str(tmp_path / name / "version.py"))
        messages.append(distributed.code_digest())
    (tmp_path / "b" / "more.py").write_text("3")
    assert messages[0] == messages[1] != distributed.code_digest()


@pytest.mark.parametrize("late", [False, True])
def test_a_process_is_ended_by_force_only_while_it_waits_for_the_others(monkeypatch, late):
    ended = threading.Event()
    monkeypatch.setattr(distributed, "LEAVING", 2.05)
    monkeypatch.setattr(os, "_exit", lambda code: ended.set())
    monkeypatch.setattr(jax.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(jax.distributed, "shutdown", lambda: late and ended.wait(20))
    distributed.leave(3)
    assert ended.wait(0.3) == late


LATE = """
import sys, time
from zoo.base import distributed
from zoo.errors import Interrupted
from zoo.lab.commands import program

distributed.LEAVING = 3  # seconds
index, port, late = map(int, sys.argv[1:4])

def main():
    with distributed.connect(f"127.0.0.1:{port}", 2, index):
        distributed.wait()
        if index == late:
            time.sleep(6)
        if sys.argv[4]:
            raise Interrupted("SIGTERM", 15)

program.program(main)
"""


@pytest.mark.slow
@pytest.mark.parametrize("late", [0, 1])
@pytest.mark.parametrize(("stop", "code"), [("", 0), ("yes", 143)])
def test_a_process_that_ends_late_is_waited_for(late, stop, code):
    port = processes.free_port()
    words = [[sys.executable, "-c", LATE, str(i), str(port), str(late), stop] for i in range(2)]
    started = [subprocess.Popen(arguments) for arguments in words]
    assert [process.wait(100) for process in started] == [code, code]
