"""Interleaved timing: both sides in one process, A B A B ..., medians and their ratio.

A machine that is busy or warm slows both sides alike, so the ratio holds where the times do not.
What the C library does with freed memory does not: it depends on how a side allocates. A comparison
is made with the memory kept for both (`zoo.commands.allocator`, as the programs keep it), and
without.
"""

import os
import statistics
import subprocess
import sys
import time

from zoo.commands import allocator

# Thread pools (Eigen's, OpenMP's) spin for a while after their work; a side must not pay for the
# spinning of the one before it.
SECONDS_BETWEEN = 0.02


# What is added to the environment. Any setting of glibc's makes zoo.commands.allocator leave the
# memory alone; this one changes nothing here.
MEMORY = {"memory kept": {}, "glibc's own way": {"MALLOC_ARENA_MAX": "64"}}
_INSIDE = "ZOO_BENCHMARK_INSIDE"


def environment(memory: str) -> dict[str, str]:
    """That of a process whose memory is treated as MEMORY names it."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    return clean | MEMORY[memory]


def in_each_memory(module: str, main):
    """Runs main() of a benchmark in a process for each treatment of memory, which it prints.

    What the C library does is fixed when a process starts to allocate.

    Args:
      module: the benchmark's name, as for `python -m`; it calls this with its `main`.
    """
    if os.environ.get(_INSIDE):
        allocator.keep_memory()
        main()
        return
    for memory in MEMORY:
        print(f"{memory}, on both sides:", flush=True)
        command = [sys.executable, "-m", module, *sys.argv[1:]]
        subprocess.run(command, env=environment(memory) | {_INSIDE: "1"}, check=True)


def medians(sides: dict, rounds: int) -> dict[str, float]:
    """The median seconds of one call of each side.

    Args:
      sides: {name: function without arguments that returns when its work is done}.
      rounds: how often each side is timed, after two calls that are not; at least 9 to report.
    """
    for side in sides.values():
        side()
        side()
    times = {name: [] for name in sides}
    for _ in range(rounds):
        for name, side in sides.items():
            time.sleep(SECONDS_BETWEEN)
            begun = time.perf_counter()
            side()
            times[name].append(time.perf_counter() - begun)
    return {name: statistics.median(values) for name, values in times.items()}


def print_table(title: str, rows: dict[str, float], baseline: str, unit: str = "ms"):
    """A line a row: its value, and its value divided by the baseline's.

    Args:
      rows: {name: value}, seconds for "ms" and bytes for "MB". baseline: a row's name.
    """
    scale = {"ms": 1e3, "MB": 1e-6}[unit]
    width = max(map(len, rows))
    print(title)
    print(f"  {'':{width}}  {unit:>10}  {'/ ' + baseline:>12}")
    for name, value in rows.items():
        print(f"  {name:{width}}  {value * scale:10.2f}  {value / rows[baseline]:12.3f}")
