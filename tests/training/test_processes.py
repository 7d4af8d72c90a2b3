"""Two processes on this machine that train one run: train.py, as two commands at a time."""

import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time

import pytest

from tests.training import test_interruption as interruption

TRAIN = pathlib.Path(__file__).parents[2] / "train.py"
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


def start(arguments, devices=1, folder=None):
    """A command with so many devices of its own."""
    flags = f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count={devices}"
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags}
    return subprocess.Popen(
        [sys.executable, str(TRAIN), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=folder,
    )


def start_two(arguments, other=(), folders=(None, None)):
    """Two processes of a device each, the second with arguments of its `other`."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    place = ["--coordinator", f"127.0.0.1:{port}", "--processes", "2", "--process"]
    first = start([*arguments, *place, "0"], 1, folders[0])
    return [first, start([*arguments, *place, "1", *other], 1, folders[1])]


def ends(processes, seconds=300):
    """[(exit code, stdout, stderr)] of each."""
    outputs = [process.communicate(timeout=seconds) for process in processes]
    return [
        (process.returncode, *output) for process, output in zip(processes, outputs, strict=True)
    ]


def command(workdir):
    """Of a run whose devices are said elsewhere."""
    return [word for word in interruption.command(workdir)[1:] if word not in ("--devices", "1")]


def train_two(workdir):
    (code, _, stderr), (other, _, errors) = ends(start_two(command(workdir)))
    assert (code, other) == (0, 0), (stderr, errors)


def stopped(workdir, who, number, step):
    """Ends of two processes of which one gets a signal at a checkpoint of `step` or later."""
    processes = start_two(command(workdir))
    while all(process.poll() is None for process in processes):
        if interruption.newest_step(workdir) >= step:
            break
        time.sleep(0.002)
    processes[who].send_signal(number)
    begun = time.monotonic()
    found = ends(processes, 60)
    assert time.monotonic() - begun < 60
    return found


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The end of a run of one process with two devices."""
    workdir = tmp_path_factory.mktemp("whole") / "run"
    ((code, _, stderr),) = ends([start(command(workdir), 2)])
    assert code == 0, stderr
    return interruption.end_of(workdir)


@pytest.mark.slow
def test_a_killed_process_ends_the_other_and_both_resume_bit_for_bit(whole, tmp_path):
    """Uninterrupted, two processes with a device each train to the bit what one with two does."""
    train_two(tmp_path / "two")
    interruption.assert_same_end(whole, interruption.end_of(tmp_path / "two"))
    (code, _, stderr), (killed, _, _) = stopped(tmp_path / "run", 1, signal.SIGKILL, 30)
    assert (code, killed) == (75, -signal.SIGKILL), stderr
    assert stderr.startswith("error: process 1 of 2 has ended, or cannot be reached any more: ")
    assert stderr.count("\n") == 1
    train_two(tmp_path / "run")
    interruption.assert_same_end(whole, interruption.end_of(tmp_path / "run"))


@pytest.mark.slow
def test_a_signal_to_one_saves_once_and_another_number_of_processes_goes_on(whole, tmp_path):
    workdir = tmp_path / "run"
    sentences = []
    for code, _, stderr in stopped(workdir, 1, signal.SIGTERM, 20):
        assert code == 128 + signal.SIGTERM, stderr
        sentences.append(stderr.partition(" To resume: ")[0])
    match = re.fullmatch(r"SIGTERM after step (\d+): the state is saved\.", sentences[0])
    assert match and sentences[0] == sentences[1]
    assert interruption.newest_step(workdir) == int(match[1])
    # The one with JAX's coordinator, whose end JAX answers by abort().
    (killed, _, _), (code, _, stderr) = stopped(workdir, 0, signal.SIGKILL, 100)
    assert (killed, code) == (-signal.SIGKILL, 75), stderr
    assert stderr.startswith("error: process 0 of 2 has ended")
    ((code, stdout, stderr),) = ends([start(command(workdir), 2)])
    assert code == 0 and "resuming after step" in stdout, stderr
    interruption.assert_same_end(whole, interruption.end_of(workdir))


@pytest.mark.slow
def test_processes_of_other_recipes_or_texts_all_leave(tmp_path):
    workdir = tmp_path / "run"
    processes = start_two(command(workdir), other=["--set", "training.seed=3"])
    for code, stdout, stderr in ends(processes):
        assert code == 2, stderr
        assert re.fullmatch(r"error: process 1 has another recipe than process 0 \(.*\n", stderr)
        assert not stdout
    (tmp_path / "config.py").write_text(CONFIG)
    folders = tmp_path / "a", tmp_path / "b"
    for folder, text in zip(folders, ("a b c d\n" * 20, "a b d c\n" * 20), strict=True):
        folder.mkdir()
        (folder / "text.txt").write_text(text)
    run = ["--config", str(tmp_path / "config.py"), "run"]
    for code, _, stderr in ends(start_two(run, folders=folders)):
        assert code == 2, stderr
        assert "process 1 has another training or validation text than process 0 (" in stderr
        assert stderr.count("\n") == 1
    assert not (folders[0] / "run").exists()
    # What one of them alone cannot read.
    (folders[1] / "text.txt").unlink()
    for code, _, stderr in ends(start_two(run, folders=folders)):
        assert code == 2 and stderr.count("\n") == 1
        assert stderr.startswith("error: ") and "text.txt" in stderr
