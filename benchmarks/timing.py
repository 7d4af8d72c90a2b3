"""Interleaved timing: both sides in one process, A B A B ..., medians and their ratio.

A busy or warm machine slows both sides alike, so that the ratio is stable even if the times are
not. The effect of the C library's handling of freed memory differs between sides, as it depends on
their allocations. Sides are therefore compared with freed memory kept for both
(`zoo.lab.commands.program`, as in the programs), and without.
"""

import argparse
import functools
import multiprocessing
import os
import pathlib
import platform
import re
import signal
import statistics
import subprocess
import sys
import time
from concurrent import futures
from unittest import mock

import jax
import jax.numpy as jnp

from zoo.lab.commands import program

ROOT = pathlib.Path(__file__).parents[1]
# Thread pools (Eigen's, OpenMP's) spin for a while after their work; the pause keeps one side's
# spinning out of the next side's time.
SECONDS_BETWEEN = 0.02


# Additions to the environment. With any glibc setting present, zoo.lab.commands.program changes
# nothing; this setting has no effect of its own here.
MEMORY = {"memory kept": {}, "glibc's own way": {"MALLOC_ARENA_MAX": "64"}}


def in_own_process(function, *arguments, environment: dict[str, str] | None = None):
    """Calls a function of a module in a fresh process, and returns its result.

    Args:
      function: is imported there.
      *arguments: of the function.
      environment: of the process; None for this one's.
    """
    with (
        mock.patch.dict(os.environ, environment or os.environ, clear=True),
        futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process,
    ):
        return process.submit(function, *arguments).result()


def run_process(command: list[str], until: str | None = None, **environment: str):
    """Runs a command on the CPU to its end, or until it prints a line.

    Returns:
      Seconds by the clock, and the resources that the process has used; its CPU time is less
      disturbed by other work.
    """
    begun = time.perf_counter()
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, "JAX_PLATFORMS": "cpu", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    lines = []
    for line in process.stdout:
        lines.append(line)
        if until and until in line:
            process.kill()
            break
    elapsed = time.perf_counter() - begun
    process.stdout.close()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != (-signal.SIGKILL if until else 0):
        sys.exit(f"{' '.join(command)} failed: {''.join(lines)[-2000:]}")
    return elapsed, usage


def in_each_memory(main):
    """Runs a benchmark's main() in a process for each treatment of memory, and prints its name.

    The C library's behaviour is fixed when a process starts to allocate. On a GPU, whose memory it
    does not manage, main() runs once.

    Args:
      main: its main function.
    """
    if jax.default_backend() != "cpu":
        _keeping_memory(main)
        return
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    for memory, settings in MEMORY.items():
        print(f"{memory}, on both sides:", flush=True)
        in_own_process(_keeping_memory, main, environment=clean | settings)


def _keeping_memory(main):
    program.keep_memory()
    main()


def parser(about: str, **numbers: int) -> argparse.ArgumentParser:
    """Returns a parser of a benchmark's options.

    Args:
      about: the module's docstring, whose first line describes the program.
      **numbers: the default of each option that takes a whole number, such as rounds=9.
    """
    options = argparse.ArgumentParser(description=about.partition("\n")[0])
    for name, default in numbers.items():
        options.add_argument(f"--{name.replace('_', '-')}", type=int, default=default)
    return options


def clock():
    """Returns the clock of all sides: on one core of a CPU, of what this process computes.

    Then other work on the machine counts only by the caches and the memory that it shares.
    """
    single_core = jax.default_backend() == "cpu" and len(os.sched_getaffinity(0)) == 1
    return time.process_time if single_core else time.perf_counter


# Rows and columns of the matrices whose product tells how fast a machine is.
PRODUCT = 2048


@functools.cache
def machine() -> str:
    """Describes the machine: the CPU's model, cores of this process, and products in each library.

    A product is of two float32 matrices of `PRODUCT` rows and columns, the best of five, in 10^9
    operations a second; PyTorch's is measured where the benchmark has imported it.
    """
    if jax.default_backend() != "cpu":
        return f"{jax.devices()[0].device_kind}, jax {jax.__version__}"
    cores = len(os.sched_getaffinity(0))
    matrix = jnp.ones((PRODUCT, PRODUCT))
    multiply = jax.jit(jnp.matmul)
    rates = {"XLA": _rate(lambda: multiply(matrix, matrix).block_until_ready())}
    if (torch := sys.modules.get("torch")) is not None:
        tensor = torch.ones(PRODUCT, PRODUCT, device="cpu")
        rates["PyTorch"] = _rate(lambda: tensor @ tensor)
    note = ", ".join(f"{name} {rate:.0f} GF/s" for name, rate in rates.items())
    note += "; times of the process" * (clock() is time.process_time)
    return f"{_cpu()}, {cores} core{'s' * (cores > 1)}, jax {jax.__version__}; a product: {note}"


def _cpu() -> str:
    """Returns the name of the CPU's model, and with AVX-512 its flag."""
    try:
        cpuinfo = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or platform.machine()
    fields = dict(re.findall(r"^(model name|cpu family|model|flags)\s*: (.*)$", cpuinfo, re.M))
    number = f" (family {fields.get('cpu family', '?')}, model {fields.get('model', '?')})"
    wide = ", AVX-512" * ("avx512f" in fields.get("flags", ""))
    return fields.get("model name", platform.machine()) + number + wide


def _rate(multiply) -> float:
    multiply()
    times = []
    for _ in range(5):
        begun = clock()()
        multiply()
        times.append(clock()() - begun)
    return 2e-9 * PRODUCT**3 / min(times)


def compiled_side(function, *arguments):
    """Returns a side that calls a function, which its first call compiles.

    Its `memory()` is `extra_memory`.
    """

    @functools.cache
    def program():
        return jax.jit(function).lower(*arguments).compile()

    def side():
        return jax.block_until_ready(program()(*arguments))

    side.memory = lambda: extra_memory(program())
    return side


def extra_memory(compiled) -> int:
    """Returns the bytes that a call of a compiled function takes beside its arguments."""
    memory = compiled.memory_analysis()
    return memory.temp_size_in_bytes + memory.output_size_in_bytes - memory.alias_size_in_bytes


def traced_with(side, module, **values):
    """Returns a side that is compiled, by its first call, with other values of a module's names."""

    is_compiled = False

    def traced_side():
        nonlocal is_compiled
        if is_compiled:
            return side()
        is_compiled = True
        jax.clear_caches()  # a traced function would be taken again
        with mock.patch.multiple(module, **values):
            return side()

    traced_side.memory = side.memory
    return traced_side


def medians(sides: dict, rounds: int) -> dict[str, float]:
    """Returns the median seconds of one call of each side.

    The first call prints the `machine`.

    Args:
      sides: {name: function without arguments that returns when its work is done}.
      rounds: how often each side is timed, after two warm-up calls; at least 9 for reports.
    """
    _print_machine()
    for side in sides.values():
        side()
        side()
    times = {name: [] for name in sides}
    for _ in range(rounds):
        for name, side in sides.items():
            time.sleep(SECONDS_BETWEEN)
            begun = clock()()
            side()
            times[name].append(clock()() - begun)
    return {name: statistics.median(values) for name, values in times.items()}


@functools.cache
def _print_machine():
    print(machine(), flush=True)


def print_table(title: str, rows: dict[str, float], baseline: str, unit: str = "ms"):
    """Prints a table with each row's value and its ratio to the baseline's value.

    Args:
      title: the title.
      rows: {name: value}, seconds for "ms" and bytes for "MB".
      baseline: the name of the baseline row.
      unit: "ms" or "MB".
    """
    scale = {"ms": 1e3, "MB": 1e-6}[unit]
    width = max(map(len, rows))
    print(title)
    print(f"  {'':{width}}  {unit:>10}  {'/ ' + baseline:>12}")
    for name, value in rows.items():
        print(f"  {name:{width}}  {value * scale:10.2f}  {value / rows[baseline]:12.3f}")


def compare(title: str, sides: dict, rounds: int, baseline: str):
    """Prints the table of the `medians` of sides."""
    print_table(f"{title}; medians of {rounds}", medians(sides, rounds), baseline)
