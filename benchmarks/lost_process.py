"""Seconds from a kill -9 of one process of a run to the exit of the others.

Each run trains the micro language on this machine's CPU, a device for each process. After its first
checkpoint one process is killed, a different one in each round; the others must exit with code 75.

    python -m benchmarks.lost_process
"""

import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from benchmarks import processes_memory, timing
from zoo.errors import LOST

RECIPE = ["--config", "micro_softmax", "--set", "training.checkpoint_every=20"]


def start(folder: pathlib.Path, count: int) -> list[subprocess.Popen]:
    """Starts the processes of a run."""
    command = [sys.executable, "train.py", *RECIPE, str(folder), "--devices", "1"]
    options = {"env": {**os.environ, "JAX_PLATFORMS": "cpu"}, "stdout": subprocess.DEVNULL}
    return [
        subprocess.Popen([*command, *meeting], stderr=subprocess.DEVNULL, **options)
        for meeting in processes_memory.meetings(count)
    ]


def seconds(count: int, killed: int) -> float:
    """Returns the seconds from a kill until all other processes have ended."""
    with tempfile.TemporaryDirectory() as parent:
        folder = pathlib.Path(parent) / "run"
        started = start(folder, count)
        while not [*folder.glob("checkpoints/last/[0-9]*")]:
            if any(process.poll() is not None for process in started):
                raise RuntimeError("a process ended before it was killed")
            time.sleep(0.01)
        started[killed].send_signal(signal.SIGKILL)
        begun = time.perf_counter()
        codes = [process.wait() for process in started]
        passed = time.perf_counter() - begun
        assert codes == [-signal.SIGKILL if i == killed else LOST for i in range(count)], codes
        return passed


def main():
    """Prints a line for each number of processes."""
    arguments = timing.parser(__doc__, rounds=5).parse_args()
    for count in (2, 4):
        waits = [seconds(count, number % count) for number in range(arguments.rounds)]
        rounds = ", ".join(f"{wait:.2f}" for wait in waits)
        print(f"{count} processes: {rounds} s; median {statistics.median(waits):.2f} s", flush=True)


if __name__ == "__main__":
    main()
