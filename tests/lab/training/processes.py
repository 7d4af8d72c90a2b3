"""Several processes on this machine that train one run: train.py, as one command each."""

import os
import pathlib
import socket
import subprocess
import sys
import time

from tests.lab.training import small
from tests.lab.training import test_train_interruption as interruption
from zoo.lab.runs.workdir import Workdir
from zoo.lab.training import tasks

TRAIN = pathlib.Path(__file__).parents[3] / "train.py"
# Of 150 words, and so sizes that divide by two, and words that do not divide by four.
SHORT = ["--set", "training.epochs=1", "--set", "training.validate_every=10"]


def command(workdir):
    """The arguments of a tiny run of 115 steps, whose devices are given elsewhere."""
    words = [word for word in interruption.command(workdir)[1:] if word not in ("--devices", "1")]
    return [*words, "--set", "training.epochs=5"]


def start(arguments, devices=1, folder=None, environment=os.environ):
    """A command with so many devices of its own."""
    flags = f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count={devices}"
    environment = {**environment, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags}
    return subprocess.Popen(
        [sys.executable, str(TRAIN), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=folder,
    )


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def start_all(
    arguments,
    count=2,
    further_arguments=(),
    devices=1,
    folders=None,
    port=None,
    environment=os.environ,
):
    """So many processes of one run; those after the first with the `further_arguments` as well."""
    port = port or free_port()
    meeting = ["--coordinator", f"127.0.0.1:{port}", "--processes", str(count), "--process"]
    return [
        start(
            [*arguments, *meeting, str(index), *(further_arguments if index else ())],
            devices,
            folders[index] if folders else None,
            environment,
        )
        for index in range(count)
    ]


def ends(processes, seconds=300):
    """[(exit code, stdout, stderr)] of each, all of which end in so many seconds."""
    until = time.monotonic() + seconds
    try:
        outputs = [
            process.communicate(timeout=max(0.1, until - time.monotonic())) for process in processes
        ]
    finally:
        for process in processes:
            process.kill()
    return [
        (process.returncode, *output) for process, output in zip(processes, outputs, strict=True)
    ]


def train(arguments, count=2, devices=1):
    """What process 0 prints of a run that ends well in all processes."""
    outcomes = ends(start_all(arguments, count, devices=devices))
    assert [code for code, *_ in outcomes] == [0] * count, outcomes
    return outcomes[0][1]


def train_alone(arguments, devices):
    """What a run of one process prints that ends well."""
    ((code, stdout, stderr),) = ends([start(arguments, devices)])
    assert code == 0, stderr
    return stdout


def wait_for(workdir, step, processes):
    """Waits for a checkpoint of a step or a later one, while all processes run."""
    while interruption.newest_step(workdir) < step:
        assert all(process.poll() is None for process in processes), ends(processes, 60)
        time.sleep(0.002)


def end_apart_from_devices(workdir):
    """(step, arrays, progress) of the last checkpoint of a run on whatever devices."""
    recipe = small.with_settings(Workdir(workdir).experiment(), "parallel.model=1")
    trainer = small.trainer_of(tasks.prepare(recipe, 1), recipe, workdir)
    step, arrays, progress = small.last_state(trainer)
    return step, arrays, small.timeless(progress)
