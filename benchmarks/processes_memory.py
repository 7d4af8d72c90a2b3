"""Peak memory of each process when several train the largest recipe of the 1 Billion Words.

`lm1b_lstm_8192_2048` with all of its 793,471 words, at small vector widths: three steps, validation
and checkpoints, then the same again after resuming. The words are generated. Linux's peak of a
process (VmHWM) is reset at the beginning of each phase. It includes libraries, compiled programs,
the text, and freed memory that `train` keeps. The difference between two widths includes only the
state; it is compared with a process's share of the state and with one whole table.

    python -m benchmarks.processes_memory                              # 4 processes x 4 devices
    python -m benchmarks.processes_memory --processes 1 --widths 32    # 1 x 16: the same figures
"""

import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

from benchmarks import timing

WORDS, DEVICES, SENTENCE, STEPS = 793_471, 16, 20, 3
PHASES = "text", "start", "steps, validation", "saving"


def write_texts(folder: pathlib.Path):
    """Writes a text with `WORDS` distinct words, each once, and a short validation text."""
    words = [f"w{number}" for number in range(WORDS - 2)]  # besides <unk> and </s>
    rows = [words[start : start + SENTENCE] for start in range(0, len(words), SENTENCE)]
    for name, lines in (("train.txt", rows), ("validation.txt", rows[:64])):
        (folder / name).write_text("".join(" ".join(row) + "\n" for row in lines))


def settings(width: int, model: int) -> list[str]:
    """Returns options for a vector width, with validation and a checkpoint every third step."""
    overrides = {
        "data.train": "train.txt",
        "data.validation": "validation.txt",
        "data.tests": "()",
        "vocabulary.minimum_count": 1,
        "model.embedding.size": width,
        "model.core.size": 2 * width,
        "model.core.projection": width,
        "model.head.samples": 64,
        "training.batch": 32,
        "training.validate_every": STEPS,
        "training.checkpoint_every": STEPS,
        "evaluation.batch": 16,
        "parallel.model": model,
    }
    return [part for name, value in overrides.items() for part in ("--set", f"{name}={value}")]


class Run:
    """The processes of a run, from their start to the step after a checkpoint."""

    def __init__(self, folder: pathlib.Path, width: int, model: int, processes: int, until: int):
        """Starts the processes.

        Args:
          folder: folder of the texts and the run.
          width: size of the word vectors.
          model: number of devices that the vocabulary is sharded over.
          processes: number of processes.
          until: step of the checkpoint after which the run is stopped.
        """
        self.folder, self.until = folder / f"run-{width}-{processes}", until
        self.log = folder / "log"
        command = [sys.executable, str(timing.ROOT / "train.py"), "--config", "lm1b_lstm_8192_2048"]
        command += [self.folder.name, *settings(width, model)]
        flags = f"--xla_force_host_platform_device_count={DEVICES // processes}"
        environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags}
        with self.log.open("w") as log:
            self.processes = [
                subprocess.Popen(
                    [*command, *meeting],
                    cwd=folder,
                    env=environment,
                    stdout=subprocess.DEVNULL if index else log,
                    stderr=subprocess.PIPE,
                    text=True,
                )
                for index, meeting in enumerate(meetings(processes))
            ]

    def peaks(self) -> dict[str, int]:
        """Returns {phase: highest peak of a process, bytes}; stops the processes."""
        peaks = dict.fromkeys(PHASES, 0)
        phase, stopped = PHASES[0], False
        while any(process.poll() is None for process in self.processes):
            pids = [pid for process in self.processes if (pid := self._trains(process))]
            peaks[phase] = max(peaks[phase], *map(_peak, pids), 0)
            if phase != (now := self._phase()):
                phase = now
                for pid in pids:
                    _reset_peak(pid)
            if not stopped and phase == PHASES[3]:  # they stop some steps later
                self.processes[0].send_signal(signal.SIGTERM)
                stopped = True
            time.sleep(0.02)
        for process in self.processes:
            assert process.stderr is not None
            errors = process.stderr.read()
            if process.returncode != 128 + signal.SIGTERM:
                raise SystemExit(f"a process ended with {process.returncode}: {errors}")
        return peaks

    def _phase(self) -> str:
        log = self.log.read_text()
        saved = (self.folder / "checkpoints").glob(f"*/{self.until}*")  # also half a checkpoint
        if any(saved):
            return PHASES[3]
        if "first step, with compilation" in log:
            return PHASES[2]
        return PHASES[1] if f"{DEVICES} device(s)" in log else PHASES[0]

    def _trains(self, process: subprocess.Popen) -> int | None:
        """Returns the id of the process that trains: with several, a child of the started one."""
        if len(self.processes) == 1:
            return process.pid
        try:
            children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
        except OSError:
            return None
        return int(children.split()[0]) if children.strip() else None

    def validated(self) -> list[float]:
        """Reads the log-perplexities of the run's validations, nats."""
        lines = (self.folder / "metrics.jsonl").read_text().splitlines()
        return [json.loads(line)["validation_log_perplexity"] for line in lines]


def meetings(processes: int) -> list[list[str]]:
    """Returns the options of each process of a run by which the processes meet."""
    if processes == 1:
        return [[]]
    with socket.create_server(("127.0.0.1", 0)) as server:
        meeting = ["--coordinator", f"127.0.0.1:{server.getsockname()[1]}"]
    meeting += ["--processes", str(processes), "--process"]
    return [[*meeting, str(index)] for index in range(processes)]


def _peak(pid: int) -> int:
    """Reads VmHWM of a process, in bytes; returns 0 if it has ended."""
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    match = re.search(r"VmHWM:\s+(\d+) kB", status)
    return 1024 * int(match[1]) if match else 0


def _reset_peak(pid: int):
    with contextlib.suppress(OSError):  # it has just ended
        pathlib.Path(f"/proc/{pid}/clear_refs").write_text("5")


def main():
    """Prints a table."""
    parser = timing.parser(__doc__, processes=4, model=DEVICES)  # of DEVICES devices in all
    parser.add_argument("--widths", type=int, nargs="+", default=(32, 96), help="vector widths")
    arguments = parser.parse_args()
    count, widths = arguments.processes, arguments.widths
    print(f"V = {WORDS:,}, {count} processes x {DEVICES // count} devices, ", end="")
    print(f"{DEVICES // arguments.model} (data) x {arguments.model} (model)")
    print(f"{'':28}{'  '.join(f'{phase:>17}' for phase in PHASES)}")
    table: dict[tuple[int, str], dict[str, int]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_texts(folder)
        for width in widths:
            for mode, until in (("begun", STEPS), ("resumed", 2 * STEPS)):
                run = Run(folder, width, arguments.model, count, until)
                table[width, mode] = run.peaks()
                _print(f"width {width:3} {mode:8} peak, MB", table[width, mode])
            figures = ", ".join(f"{figure:.9f}" for figure in run.validated())
            print(f"width {width:3} validation log-perplexities {figures}", flush=True)
    if len(widths) == 2:
        low, high = widths
        growth = 4 * WORDS * (high - low)
        for mode in ("begun", "resumed"):
            added = {phase: table[high, mode][phase] - table[low, mode][phase] for phase in PHASES}
            _print(f"added     {mode:8} MB", added)
        print(
            f"the state's share of a process has {4 * growth / count / 1e6:,.0f} MB more, a whole "
            f"table {growth / 1e6:,.0f}, the state {4 * growth / 1e6:,.0f}"
        )


def _print(name: str, sizes: dict[str, int]):
    print(f"{name:28}{'  '.join(f'{sizes[phase] / 1e6:17,.0f}' for phase in PHASES)}", flush=True)


if __name__ == "__main__":
    main()
