"""Runs of two and four processes: the same end as one process, or a clear end of all."""

import contextlib
import json
import os
import pathlib
import re
import resource
import signal
import socket
import time

import jax
import numpy as np
import pytest

from tests.lab.training import processes
from tests.lab.training import test_train_interruption as interruption
from zoo.lab.commands import command_table

pytestmark = pytest.mark.usefixtures("signals")
LOST = re.compile(
    r"error: another process of this run has ended, or cannot be reached any more \(.*\): give the "
    r"same command to all processes again; the run resumes from its last checkpoint\.\n"
)


def check_lost(code, stderr):
    """The end of a process that has lost another one: one sentence, and 75."""
    assert code == 75 and LOST.fullmatch(stderr), (code, stderr)


def running(workdir, count=2):
    """The folder of a run, and its processes after its seventh step."""
    started = processes.start_all(processes.command(workdir), count)
    processes.wait_for(workdir, 7, started)
    return workdir, started


def check_trained(workdir, uninterrupted_end):
    """Two processes train, or resume, to the bit of one process."""
    processes.train(processes.command(workdir))
    interruption.assert_same_end(uninterrupted_end, interruption.end_of(workdir))


def child_of(process):
    """The process that trains, of which the started one is the parent."""
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    return int(children.split()[0])


@pytest.fixture(scope="module")
def uninterrupted_end(tmp_path_factory):
    """The end of a run of this process with two devices."""
    workdir = tmp_path_factory.mktemp("whole") / "run"
    command_table.run("train", [*processes.command(workdir), "--devices", "2"])
    return interruption.end_of(workdir)


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """The folder of a run of two processes, and their ends after the second was killed."""
    workdir, started = running(tmp_path_factory.mktemp("killed") / "run")
    started[1].send_signal(signal.SIGKILL)
    return workdir, processes.ends(started, 20)


@pytest.mark.slow
def test_a_killed_process_ends_the_other(killed):
    (code, _, stderr), (killed_code, *_) = killed[1]
    assert killed_code == -signal.SIGKILL
    check_lost(code, stderr)


@pytest.mark.slow
def test_a_run_that_lost_a_process_resumes_to_the_bit_of_one_process(uninterrupted_end, killed):
    check_trained(killed[0], uninterrupted_end)


@pytest.fixture(scope="module")
def on_a_mesh(tmp_path_factory):
    """The end of a run of one process with a mesh of two by two devices."""
    workdir = tmp_path_factory.mktemp("mesh") / "run"
    arguments = [*processes.command(workdir), *processes.SHORT, "--set", "parallel.model=2"]
    processes.train_alone(arguments, 4)
    return processes.end_apart_from_devices(workdir)


@pytest.mark.slow
@pytest.mark.parametrize(("count", "devices", "model"), [(2, 2, 4), (4, 1, 2), (4, 1, 4)])
def test_words_are_shared_out_across_processes(on_a_mesh, tmp_path, count, devices, model):
    workdir = tmp_path / "run"
    shares = ["--set", f"parallel.model={model}"]
    arguments = [*processes.command(workdir), *processes.SHORT, *shares]
    processes.train(arguments, count, devices)
    step, arrays, progress = processes.end_apart_from_devices(workdir)
    assert step == on_a_mesh[0]
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5, rtol=0), arrays, on_a_mesh[1]
    )
    close = {name: pytest.approx(on_a_mesh[2][name], abs=1e-5) for name in ("best", "validations")}
    assert progress == on_a_mesh[2] | close


@pytest.mark.slow
def test_a_killed_first_process_ends_the_other_and_both_resume_bit_for_bit(
    uninterrupted_end, tmp_path
):
    """The one that the others meet at."""
    workdir, started = running(tmp_path / "run")
    started[0].send_signal(signal.SIGKILL)
    (killed_code, *_), (code, _, stderr) = processes.ends(started, 20)
    assert killed_code == -signal.SIGKILL
    check_lost(code, stderr)
    check_trained(workdir, uninterrupted_end)


@pytest.mark.slow
def test_a_killed_child_ends_its_parent_and_the_other_three(tmp_path):
    """As a machine does that runs out of memory."""
    _, started = running(tmp_path / "run", 4)
    os.kill(child_of(started[2]), signal.SIGKILL)
    outcomes = processes.ends(started, 20)
    assert outcomes[2][0] == 128 + signal.SIGKILL
    for index in (0, 1, 3):
        check_lost(outcomes[index][0], outcomes[index][2])


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 4])
def test_a_process_that_stands_still_ends_the_others(tmp_path, count):
    _, started = running(tmp_path / "run", count)
    child = child_of(started[-1])
    os.kill(child, signal.SIGSTOP)
    try:
        for code, _, stderr in processes.ends(started[:-1], 90):
            check_lost(code, stderr)
    finally:
        os.kill(child, signal.SIGKILL)
        processes.ends(started[-1:])


def check_stopped(workdir, started, number):
    """The end of all processes of a run after a signal to the last: one state, and one sentence."""
    started[-1].send_signal(number)
    sentences = set()
    for code, _, stderr in processes.ends(started, 60):
        assert code == 128 + number, stderr
        sentences.add(stderr.partition(" To resume: ")[0])
    (sentence,) = sentences
    match = re.fullmatch(rf"{number.name} after step (\d+): the state is saved\.", sentence)
    assert match and interruption.newest_step(workdir) == int(match[1])


@pytest.mark.slow
@pytest.mark.parametrize(("count", "number"), [(2, signal.SIGINT), (4, signal.SIGTERM)])
def test_a_signal_to_one_saves_once_and_stops_all(tmp_path, count, number):
    workdir, started = running(tmp_path / "run", count)
    check_stopped(workdir, started, number)


@pytest.mark.slow
def test_another_number_of_processes_resumes_after_a_signal(uninterrupted_end, tmp_path):
    workdir, started = running(tmp_path / "run")
    check_stopped(workdir, started, signal.SIGTERM)
    stdout = processes.train_alone(processes.command(workdir), 2)
    assert "resuming after step" in stdout
    interruption.assert_same_end(uninterrupted_end, interruption.end_of(workdir))


@pytest.mark.slow
@pytest.mark.parametrize("small_disk", ["4m"], indirect=True)
def test_a_full_disk_ends_all_and_they_resume_once_there_is_room(uninterrupted_end, small_disk):
    filling = small_disk / "filling"
    workdir, started = running(small_disk / "run")
    with contextlib.suppress(OSError), filling.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    outcomes = processes.ends(started, 60)
    assert 2 in [code for code, *_ in outcomes], outcomes
    for code, _, stderr in outcomes:
        if code == 2:
            assert stderr.startswith("error: the disk is full") and stderr.count("\n") == 1, stderr
        else:
            check_lost(code, stderr)
    filling.unlink()
    check_trained(workdir, uninterrupted_end)


@pytest.mark.slow
@pytest.mark.parametrize("limited", [0, 1])
def test_a_process_that_may_not_write_ends_both(uninterrupted_end, tmp_path, limited):
    workdir, started = running(tmp_path / "run")
    _, hard_limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.prlimit(child_of(started[limited]), resource.RLIMIT_FSIZE, (100, hard_limit))
    outcomes = processes.ends(started, 60)
    code, _, stderr = outcomes[limited]
    assert code == 2 and stderr.startswith("error: a file would be larger than is allowed"), stderr
    assert stderr.count("\n") == 1
    check_lost(outcomes[1 - limited][0], outcomes[1 - limited][2])
    check_trained(workdir, uninterrupted_end)


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 4])
def test_processes_of_other_recipes_all_leave(tmp_path, count):
    run = processes.command(tmp_path / "run")
    started = processes.start_all(run, count, further_arguments=["--set", "training.seed=3"])
    for code, _, stderr in processes.ends(started, 120):
        assert code == 2, stderr
        assert re.fullmatch(r"error: process 1 has another recipe than process 0 \(.*\n", stderr)
    assert not (tmp_path / "run").exists()


CONFIG = '''
"""A text beside the run."""
from zoo import Experiment, Training
from zoo.cores import LSTM
from zoo.data import Text
from zoo.embeddings import Lookup
from zoo.models import LanguageModel

def get_config():
    return Experiment(
        data=Text(train="text.txt", validation="text.txt"),
        model=LanguageModel(embedding=Lookup(size=3), core=LSTM(size=3)),
        training=Training(batch=4, length=3, epochs=1),
    )
'''


@pytest.fixture
def two_folders(tmp_path):
    """Folders of two processes, each with a text of its own, and the arguments of a run in both."""
    (tmp_path / "config.py").write_text(CONFIG)
    folders = tmp_path / "a", tmp_path / "b"
    for folder, text in zip(folders, ("a b c d\n" * 20, "a b d c\n" * 20), strict=True):
        folder.mkdir()
        (folder / "text.txt").write_text(text)
    return folders, ["--config", str(tmp_path / "config.py"), "run"]


@pytest.mark.slow
def test_processes_of_other_texts_all_leave(two_folders):
    folders, run = two_folders
    for code, _, stderr in processes.ends(processes.start_all(run, folders=folders), 120):
        assert code == 2 and stderr.count("\n") == 1, stderr
        assert "process 1 has another training or validation text than process 0 (" in stderr
    assert not (folders[0] / "run").exists()


@pytest.mark.slow
def test_processes_whose_folder_is_not_shared_all_leave(two_folders):
    folders, run = two_folders
    (folders[1] / "text.txt").write_text((folders[0] / "text.txt").read_text())
    for code, _, stderr in processes.ends(processes.start_all(run, folders=folders), 120):
        assert code == 2 and stderr.count("\n") == 1, stderr
        assert "process 1 has another content of the folder than process 0 (" in stderr
        assert stderr.endswith("in a shared folder.\n")


@pytest.mark.slow
def test_what_one_process_cannot_read_is_its_sentence_and_ends_the_other(two_folders):
    folders, run = two_folders
    (folders[1] / "text.txt").unlink()
    (other_code, _, lost), (code, _, stderr) = processes.ends(
        processes.start_all(run, folders=folders), 120
    )
    assert code == 2 and stderr.startswith("error: ") and "text.txt" in stderr
    assert stderr.count("\n") == 1
    check_lost(other_code, lost)


@pytest.mark.slow
def test_a_process_of_another_number_is_sent_away(tmp_path):
    port = processes.free_port()
    run = processes.command(tmp_path / "run")
    first = processes.start_all(run, 1, port=port)  # alone: it waits for nobody
    processes.ends(first, 120)
    meeting = ["--coordinator", f"127.0.0.1:{port}"]
    told_two = processes.start([*run, *meeting, "--processes", "2", "--process", "0"])
    told_three = processes.start([*run, *meeting, "--processes", "3", "--process", "2"])
    ((code, _, stderr),) = processes.ends([told_three], 60)
    assert code == 2, stderr
    assert re.fullmatch(
        r"error: the processes of this run do not meet \(.*\): start all of them with the same "
        r"--coordinator and --processes, each with its own --process\.\n",
        stderr,
    )
    told_two.terminate()
    processes.ends([told_two], 30)


@pytest.mark.slow
def test_processes_of_other_numbers_of_devices_all_leave(tmp_path):
    meeting = ["--coordinator", f"127.0.0.1:{processes.free_port()}", "--processes", "2"]
    run = [*processes.command(tmp_path / "run"), *meeting, "--process"]
    started = [processes.start([*run, str(index)], devices=index + 1) for index in range(2)]
    for end in processes.ends(started, 120):
        assert (end[0], end[2]) == (
            2,
            "error: process 1 finds 2 device(s) and process 0 finds 1: give every process "
            "the same number of devices.\n",
        )
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_number_that_is_taken_ends_all_who_have_met(tmp_path):
    """The second with that number waits for a run of its own, for five minutes."""
    workdir, port = tmp_path / "run", processes.free_port()
    long = [*processes.command(workdir), "--set", "training.epochs=200"]
    started = processes.start_all(long, port=port)
    processes.wait_for(workdir, 7, started)
    meeting = ["--coordinator", f"127.0.0.1:{port}", "--processes", "2", "--process", "1"]
    second = processes.start([*long, *meeting])
    try:
        for code, _, stderr in processes.ends(started, 90):
            check_lost(code, stderr)
    finally:
        second.terminate()
        processes.ends([second], 30)
    step, *_ = processes.end_apart_from_devices(workdir)
    assert step >= 7


@pytest.mark.slow
def test_a_port_that_is_taken_is_named(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        run = processes.command(tmp_path / "run")
        meeting = ["--coordinator", f"127.0.0.1:{port}", "--processes", "2", "--process", "0"]
        ((code, _, stderr),) = processes.ends([processes.start([*run, *meeting])], 60)
    assert (code, stderr) == (
        2,
        f"error: process 0 cannot listen at port {port} (Address already in use): give "
        "--coordinator with a free port of its machine.\n",
    )


def ports_of(number):
    """The ports of this machine at which a process listens."""
    inodes = set()
    for path in pathlib.Path(f"/proc/{number}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed since the folder was read
            match = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(path))
            inodes |= {match[1]} if match else set()
    ports = set()
    for table in ("tcp", "tcp6"):
        for line in pathlib.Path(f"/proc/{number}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                ports.add(int(fields[1].rpartition(":")[2], 16))
    return ports


STRANGERS = {
    "a line of JSON": json.dumps({"index": 7, "count": 2}).encode() + b"\n",
    "garbage": bytes(range(256)) * 40,
    "ten megabytes": b"\0" * 10_000_000,
    "nothing": b"",
}


@pytest.mark.slow
@pytest.mark.parametrize("message", STRANGERS.values(), ids=STRANGERS)
def test_a_stranger_at_every_port_changes_nothing_or_ends_all(tmp_path, uninterrupted_end, message):
    """At the coordinator's while the processes meet, and at all of them while they train."""
    workdir, port, connections = tmp_path / "run", processes.free_port(), []

    def call(port):
        connection = socket.create_connection(("127.0.0.1", port), timeout=60)
        connections.append(connection)  # half open, to the end
        with contextlib.suppress(OSError):  # sent away
            connection.sendall(message)

    started = processes.start_all(processes.command(workdir), port=port)
    until = time.monotonic() + 600
    while time.monotonic() < until:
        try:
            call(port)
            break
        except OSError:
            time.sleep(0.05)
    processes.wait_for(workdir, 7, started)
    for open_port in [
        open_port for process in started for open_port in ports_of(child_of(process))
    ]:
        with contextlib.suppress(ConnectionRefusedError):  # all have ended of an earlier call
            call(open_port)
    outcomes = processes.ends(started, 120)
    for connection in connections:
        connection.close()
    if any(code for code, *_ in outcomes):  # devices' own collectives take no strangers
        for code, _, stderr in outcomes:
            check_lost(code, stderr)
        check_trained(workdir, uninterrupted_end)
