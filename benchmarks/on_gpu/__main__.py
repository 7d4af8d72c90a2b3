"""Zoo's hot paths on a GPU beside their opponents: one command, nine minutes, all sizes.

    python -m benchmarks.on_gpu run results.jsonl
    python -m benchmarks.on_gpu run tried.jsonl --small       # tiny sizes, also on a CPU
    python -m benchmarks.on_gpu run results.jsonl --only head decoding
    python -m benchmarks.on_gpu table results.jsonl           # Markdown, for BENCHMARKS.md

Each item of `ITEMS` is a process of its own, which is ended at the item's limit: one that hangs or
takes all memory loses only its rows not yet written. A row is a line of JSON, written when its case
is measured. The sides of a case are timed in turns in one process; times are medians, memory is the
bytes of a call beside its arguments, and the ratio is to the fastest opponent, or to the first side
where all are zoo's. An opponent that is absent (PyTorch, tokamax, Liger) has a row with the reason.
"""

import argparse
import contextlib
import importlib.metadata
import json
import math
import os
import pathlib
import platform
import signal
import subprocess
import sys
import time

from benchmarks.on_gpu import heads, others, recurrent, rows, whole

# {name: (seconds, function of `rows.Rows`)}, the most important first, 540 s in all.
ITEMS = {
    "machine": (20, others.machine),
    "training step": (90, recurrent.training_step),
    "recurrence": (70, recurrent.recurrence),
    "head": (70, heads.exact),
    "adaptive and sampled": (60, heads.adaptive_and_sampled),
    "letters": (40, heads.letters),
    "decoding": (50, others.decoding),
    "log-linear": (30, heads.log_linear_head),
    "lm1b_lstm_2048_512": (50, whole.lm1b),
    "tests": (60, whole.tests),
}
MARGIN = 3  # seconds of an item's limit kept for its end
SMALL_TIMES = 4  # small sizes compile as long as large ones, on fewer cores
LIBRARIES = ("jax", "jaxlib", "jax-cuda13-plugin", "jax-cuda12-plugin", "torch", "optax")
OPPONENTS = ("tokamax", "liger-kernel", "nvidia-cudnn-cu13", "nvidia-cudnn-cu12")
ROOT = pathlib.Path(__file__).parents[2]


def versions() -> dict[str, str]:
    """Returns the card, its driver, the versions of libraries, and Python's."""
    by_name = {}
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    try:
        process = subprocess.run(query, capture_output=True, text=True, timeout=10, check=True)
        by_name["card, driver, memory"] = process.stdout.strip().splitlines()[0]
    except (OSError, subprocess.SubprocessError, IndexError):
        by_name["card"] = f"none: {platform.processor() or platform.machine()}"
    for name in LIBRARIES + OPPONENTS:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            by_name[name] = importlib.metadata.version(name)
    return by_name | {"Python": platform.python_version()}


def run(path: str, names: list[str], small: bool):
    """Runs items, each as a process that is ended at its limit."""
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps({"item": "machine", "versions": versions()}) + "\n")
    print(versions(), flush=True)
    for name in names:
        limit = ITEMS[name][0] * (SMALL_TIMES if small else 1)
        command = [sys.executable, "-m", "benchmarks.on_gpu", "item", path, "--only", name]
        command += ["--end", f"{time.time() + limit - MARGIN}"]
        # The libraries share the card's memory: none takes all of it at the start.
        environment = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
        process = subprocess.Popen(
            [*command, *["--small"] * small], cwd=ROOT, env=environment, start_new_session=True
        )
        try:
            code = process.wait(limit)
            ending = f"ended with the code {code}" if code else ""
        except subprocess.TimeoutExpired:
            ending = f"ended at its limit of {limit} s"
        finally:
            _end(process)
        if ending:
            with open(path, "a", encoding="utf-8") as file:
                file.write(json.dumps({"item": name, "error": ending}) + "\n")
            print(f"{name}: {ending}", flush=True)


def _end(process):
    """Ends a process and all that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def item(path: str, name: str, end: float, small: bool):
    """Measures one item in this process, until a time of the clock."""
    _, measure = ITEMS[name]
    with open(path, "a", encoding="utf-8") as file:
        measure(rows.Rows(name, file, end - time.time(), small))


def main():
    """Runs the items, one of them, or prints the table of a run."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("action", choices=("run", "item", "table"))
    parser.add_argument("path", help="lines of JSON, to which rows are added")
    parser.add_argument("--only", nargs="*", choices=ITEMS, default=[*ITEMS], help="items")
    parser.add_argument("--end", type=float, default=math.inf, help=argparse.SUPPRESS)
    parser.add_argument("--small", action="store_true", help="tiny sizes, also on a CPU")
    options = parser.parse_args()
    path = str(pathlib.Path(options.path).resolve())
    if options.action == "table":
        with open(path, encoding="utf-8") as file:
            print(rows.as_markdown([json.loads(line) for line in file]))
    elif options.action == "item":
        item(path, options.only[0], options.end, options.small)
    else:
        run(path, options.only, options.small)


if __name__ == "__main__":
    main()
