"""Peak memory of each of four processes with four CPU devices that train the largest recipe.

`lm1b_big` over all of its 793,471 words, at two widths of its vectors: three steps, validation, a
checkpoint, and three steps more after resuming. The peak of a process, as Linux keeps it
(VmHWM), has libraries, programs and text in it; the difference between the two widths is of the
state alone, and is compared with a process's share of it.

    python -m benchmarks.process_memory [--model 16] [--widths 32 96]
"""

import argparse
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).parents[1]
WORDS, PROCESSES, DEVICES = 793_471, 4, 4
SENTENCE = 20


def write_texts(folder: pathlib.Path):
    """Writes a text with every word once, and a short one to validate on."""
    words = [f"w{number}" for number in range(WORDS - 2)]  # and <unk> and </s>
    rows = [words[start : start + SENTENCE] for start in range(0, len(words), SENTENCE)]
    for name, some in (("train.txt", rows), ("validation.txt", rows[:64])):
        (folder / name).write_text("".join(" ".join(row) + "\n" for row in some))


def settings(width: int, model: int) -> list[str]:
    """The recipe at a width of its vectors, validated and saved after every third step."""
    changed = {
        "data.train": "train.txt",
        "data.validation": "validation.txt",
        "data.tests": "()",
        "vocabulary.minimum_count": 1,
        "model.embedding.size": width,
        "model.core.size": 2 * width,
        "model.core.projection": width,
        "model.head.samples": 64,
        "training.batch": 32,
        "training.validate_every": 3,
        "training.checkpoint_every": 3,
        "evaluation.lanes": 16,
        "parallel.model": model,
    }
    return [part for name, value in changed.items() for part in ("--set", f"{name}={value}")]


def run(folder: pathlib.Path, width: int, model: int, until: int) -> list[int]:
    """Trains until a checkpoint of a step, stops all processes, and gives their peaks in bytes."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    command = [sys.executable, str(ROOT / "train.py"), "--config", "lm1b_big", f"run-{width}"]
    command += [*settings(width, model), "--processes", str(PROCESSES)]
    command += ["--coordinator", f"127.0.0.1:{port}", "--process"]
    flags = f"--xla_force_host_platform_device_count={DEVICES}"
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags}
    running = [
        subprocess.Popen(
            [*command, str(index)],
            cwd=folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for index in range(PROCESSES)
    ]
    last = folder / f"run-{width}" / "checkpoints" / "last"
    peaks = [0] * PROCESSES
    stopped = False
    while any(process.poll() is None for process in running):
        for index, process in enumerate(running):
            peaks[index] = max(peaks[index], peak(process))
        steps = [int(path.name) for path in last.glob("*") if path.name.isdecimal()]
        if max(steps, default=0) >= until and not stopped:
            running[0].send_signal(signal.SIGTERM)
            stopped = True
        time.sleep(0.05)
    for process in running:
        assert process.stderr is not None
        errors = process.stderr.read()
        if process.returncode != 128 + signal.SIGTERM:
            raise SystemExit(f"a process ended with {process.returncode}: {errors}")
    return peaks


def peak(process: subprocess.Popen) -> int:
    """VmHWM of the process that trains, in bytes; 0 before it is there."""
    try:
        listed = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
        status = pathlib.Path(f"/proc/{listed.split()[0]}/status").read_text()
    except (OSError, IndexError):
        return 0
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return 1024 * int(found[1]) if found else 0


def main():
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", type=int, default=16, help="devices that share the words")
    parser.add_argument("--widths", type=int, nargs=2, default=(32, 96), help="of the vectors")
    arguments = parser.parse_args()
    print(f"V = {WORDS:,}, {PROCESSES} processes x {DEVICES} devices, model axis {arguments.model}")
    table = {}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_texts(folder)
        for width in arguments.widths:
            for what, until in (("begun", 3), ("resumed", 6)):
                peaks = run(folder, width, arguments.model, until)
                table[width, what] = peaks
                shown = ", ".join(f"{size / 1e6:,.0f}" for size in peaks)
                print(f"width {width:4}, {what:8} peak of each process, MB: {shown}", flush=True)
    low, high = arguments.widths
    whole = 4 * WORDS * (high - low) * 4  # two tables and their sums of squares, float32
    print(f"what the wider tables add: {whole / 1e6:,.0f} MB, {whole / 4e6:,.0f} MB a process")
    for what in ("begun", "resumed"):
        added = max(b - a for a, b in zip(table[low, what], table[high, what], strict=True))
        print(f"{what:8} most that a process has more: {added / 1e6:,.0f} MB")


if __name__ == "__main__":
    main()
