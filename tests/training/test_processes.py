"""Two processes on this machine that train one run: train.py, as two commands at a time."""

import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time

import jax
import numpy as np
import pytest

from tests.training import small
from tests.training import test_interruption as interruption
from zoo.runs.workdir import Workdir
from zoo.training import tasks

pytestmark = pytest.mark.usefixtures("signals")
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


def start_two(arguments, other=(), folders=(None, None), devices=1):
    """Two processes of so many devices each, the second with arguments of its `other`."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    place = ["--coordinator", f"127.0.0.1:{port}", "--processes", "2", "--process"]
    first = start([*arguments, *place, "0"], devices, folders[0])
    return [first, start([*arguments, *place, "1", *other], devices, folders[1])]


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


# Of 150 words, and so sizes that divide by two, and words that do not divide by four.
SHORT = ["--set", "training.epochs=1", "--set", "training.validate_every=10"]


def end_apart_from_devices(workdir):
    """(step, arrays, progress) of the last checkpoint of a run on whatever mesh."""
    recipe = small.with_settings(Workdir(workdir).experiment(), "parallel.model=1")
    trainer = small.trainer_of(tasks.prepare(recipe, 1), recipe, workdir)
    step, arrays, progress = small.last_state(trainer)
    return step, arrays, small.timeless(progress)


@pytest.fixture(scope="module")
def on_a_mesh(tmp_path_factory):
    """The end of a run of one process with a mesh of two by two devices."""
    workdir = tmp_path_factory.mktemp("mesh") / "run"
    arguments = [*command(workdir), *SHORT, "--set", "parallel.model=2"]
    ((code, _, stderr),) = ends([start(arguments, 4)])
    assert code == 0, stderr
    return end_apart_from_devices(workdir)


def check_close(expected, found):
    assert expected[0] == found[0]
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5, rtol=0), expected[1], found[1]
    )
    best = pytest.approx(expected[2]["best"], abs=1e-5)
    assert found[2] == expected[2] | {"best": best}


@pytest.mark.parametrize("model", [2, 4])
@pytest.mark.slow
def test_words_are_shared_out_within_and_across_processes(on_a_mesh, tmp_path, model):
    """The state is kept once, and one process with one device goes on from there."""
    shares = ["--set", f"parallel.model={model}"]
    workdir = tmp_path / "run"
    first = [*command(workdir), *SHORT, *shares]
    processes = start_two(first, devices=2)
    while all(process.poll() is None for process in processes):
        if interruption.newest_step(workdir) >= 7:
            processes[1].send_signal(signal.SIGTERM)
            break
        time.sleep(0.002)
    for code, _, stderr in ends(processes):
        assert code == 128 + signal.SIGTERM, stderr
    if model == 2:  # two processes go on with another mesh, of one device each
        last = start_two(first, devices=1)
    else:
        last = [start([*command(workdir), *SHORT, "--set", "parallel.model=1"])]
    found = ends(last)
    assert [code for code, *_ in found] == [0] * len(last), found
    assert "resuming after step" in found[0][1]
    check_close(on_a_mesh, end_apart_from_devices(workdir))


@pytest.mark.slow
def test_two_processes_train_to_the_bit_what_one_with_the_same_mesh_does(on_a_mesh, tmp_path):
    workdir = tmp_path / "run"
    arguments = [*command(workdir), *SHORT, "--set", "parallel.model=2"]
    for code, _, stderr in ends(start_two(arguments, devices=2)):
        assert code == 0, stderr
    step, arrays, progress = end_apart_from_devices(workdir)
    assert (step, progress) == (on_a_mesh[0], on_a_mesh[2])
    jax.tree.map(np.testing.assert_array_equal, arrays, on_a_mesh[1])
