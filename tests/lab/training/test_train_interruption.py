"""Runs that are stopped from outside: train.py as a process, against one that was left alone."""

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time

import jax
import numpy as np
import pytest

from tests.lab.training import small
from tests.repository.test_configs import LEMMAS
from zoo.lab.runs.workdir import Workdir
from zoo.lab.training.tasks import LanguageModelling

pytestmark = pytest.mark.usefixtures("signals")
SETTINGS = [
    *(f"data.{name}=2" for name in LEMMAS),
    *("data.train_sentences=40", "data.validation_sentences=5", "data.test_sentences=5"),
    *("model.embedding.size=4", "model.core.size=4", "training.batch=4", "training.length=5"),
    *("training.epochs=12", "training.checkpoint_every=7", "training.validate_every=50"),
    *("training.patience=0", "training.optimizer.schedule.warmup=5"),
]


def command(workdir):
    return [
        *("train.py", "--config", "micro_softmax", str(workdir), "--devices", "1"),
        *(part for setting in SETTINGS for part in ("--set", setting)),
    ]


def start(arguments):
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, *arguments], stdout=pipe, stderr=pipe, text=True, env=environment
    )


def finish(arguments):
    """(stdout, stderr) of a run that ends well."""
    process = start(arguments)
    stdout, stderr = process.communicate(timeout=300)
    assert process.returncode == 0, stderr
    return stdout, stderr


def newest_step(workdir):
    """The step of the newest checkpoint, perhaps not yet whole; -1 without any."""
    folder = workdir / "checkpoints" / "last"
    try:
        matches = [re.match(r"\d+", path.name) for path in folder.iterdir()]
    except FileNotFoundError:
        return -1
    return max((int(match[0]) for match in matches if match), default=-1)


def stop_at(workdir, step, number):
    """(exit code, stderr) of a run that is sent a signal once it has begun a new checkpoint, of
    that step or a later one.

    A run does not wait for its signal. One that has ended well before the signal came, because this
    process got no turn, is put back to where it stood and tried again.
    """
    before = workdir.with_name(f"{workdir.name}, before")
    step_before = newest_step(workdir)
    for _ in range(5):
        if workdir.exists():
            shutil.copytree(workdir, before)
        process = start(command(workdir))
        while process.poll() is None and newest_step(workdir) < max(step, step_before + 1):
            time.sleep(0.002)
        process.send_signal(number)
        if number == signal.SIGTERM:  # twice, as where a script passes on what all processes get
            time.sleep(0.2)
            process.send_signal(number)
        _, stderr = process.communicate(timeout=300)
        if process.returncode:
            shutil.rmtree(before, ignore_errors=True)
            return process.returncode, stderr
        shutil.rmtree(workdir)
        if before.exists():
            before.rename(workdir)
    raise AssertionError(f"no run lasted until a signal at step {step}")


def end_of(workdir):
    """(step, arrays, progress) of the last and the best checkpoint, the metrics, and the names of
    all checkpoints."""
    run = Workdir(workdir)
    recipe = run.experiment()
    _, corpora = recipe.vocabulary.build(recipe.data)
    task = LanguageModelling(recipe, run.lexicon(), corpora)
    trainer = small.trainer_of(task, recipe, workdir)
    ends = [small.last_state(trainer, kind) for kind in ("last", "best")]
    names = sorted(str(path.relative_to(workdir)) for path in workdir.glob("checkpoints/*/*"))
    return [(*end[:2], small.timeless(end[2])) for end in ends], small.metrics(workdir), names


def assert_same_end(expected, end):
    assert expected[1:] == end[1:]
    for (step, arrays, progress), (other_step, other_arrays, other_progress) in zip(
        expected[0], end[0], strict=True
    ):
        assert (step, progress) == (other_step, other_progress)
        jax.tree.map(np.testing.assert_array_equal, arrays, other_arrays)


@pytest.fixture(scope="module")
def uninterrupted_end(tmp_path_factory):
    workdir = tmp_path_factory.mktemp("whole") / "run"
    stdout, stderr = finish(command(workdir))
    assert "\r" not in stderr and "step/s" not in stderr  # no bar where there is no terminal
    assert "\r" not in stdout
    assert re.search(r"first step, with compilation: \d+\.\d s\.", stdout)
    end = end_of(workdir)
    assert end[0][0][2]["finished"]
    assert end[0][0][0] > 200
    return end


@pytest.mark.slow
@pytest.mark.parametrize("steps", [[1], [30], [7, 14], [57, 63, 110], [100, 150]])
def test_a_run_killed_once_or_again_and_again_ends_as_one_that_was_not(
    uninterrupted_end, tmp_path, steps
):
    for step in steps:
        code, stderr = stop_at(tmp_path / "run", step, signal.SIGKILL)
        assert code == -signal.SIGKILL, stderr
    stdout, _ = finish(command(tmp_path / "run"))
    assert steps == [1] or re.search(r"resuming after step \d+ \(epoch \d+\)", stdout)
    assert_same_end(uninterrupted_end, end_of(tmp_path / "run"))


@pytest.mark.slow
def test_a_run_killed_at_any_moment(uninterrupted_end, tmp_path):
    """Also while it starts, writes its first files, compiles or validates."""
    for seconds in (0.5, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0):
        process = start(command(tmp_path / "run"))
        time.sleep(seconds)
        process.kill()
        process.communicate()
    finish(command(tmp_path / "run"))
    assert_same_end(uninterrupted_end, end_of(tmp_path / "run"))


def interrupt(workdir, number):
    """The command that the message of an interrupted run gives."""
    code, stderr = stop_at(workdir, 20, number)
    assert code == 128 + number, stderr
    match = re.fullmatch(
        r"(SIG\w+) after step (\d+): the state is saved. To resume: (.*)\n", stderr
    )
    assert match, stderr
    assert match[1] == signal.Signals(number).name
    progress = workdir / "checkpoints" / "last" / match[2] / "progress" / "metadata"
    assert not json.loads(progress.read_text())["finished"]
    python, *arguments = shlex.split(match[3])
    assert python == "python"
    return arguments


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_says_how_to_resume(uninterrupted_end, tmp_path, number):
    workdir = tmp_path / "a run, (again)"
    arguments = interrupt(workdir, number)
    assert arguments == command(workdir)
    finish(arguments)
    assert_same_end(uninterrupted_end, end_of(workdir))


@pytest.mark.slow
def test_a_terminal_that_is_closed_loses_nothing(uninterrupted_end, tmp_path):
    """SIGHUP comes, and nothing can be written to the terminal any more."""
    workdir = tmp_path / "run"
    terminal, end = os.openpty()
    source = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY); "
    source += "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    arguments = [sys.executable, "-c", source, *command(workdir)]
    process = subprocess.Popen(arguments, stdin=end, stdout=end, stderr=end, start_new_session=True)
    os.close(end)
    os.set_blocking(terminal, False)
    while newest_step(workdir) < 20:
        with contextlib.suppress(BlockingIOError):
            os.read(terminal, 1 << 16)  # a terminal that nobody reads stops who writes to it
        time.sleep(0.002)
    os.close(terminal)
    assert process.wait(timeout=600) == 128 + signal.SIGHUP
    assert newest_step(workdir) % 7  # of the moment, not of checkpoint_every
    finish(command(workdir))
    assert_same_end(uninterrupted_end, end_of(workdir))
