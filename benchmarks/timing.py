"""Interleaved timing: both sides in one process, A B A B ..., medians and their ratio.

A busy or warm machine slows both sides alike, so that the ratio is stable even if the times are
not. The effect of the C library's handling of freed memory differs between sides, as it depends on
their allocations. Sides are therefore compared with freed memory kept for both
(`zoo.lab.commands.program`, as in the programs), and without.
"""

import argparse
import collections
import functools
import math
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

from zoo.base.arrays import products
from zoo.lab.commands import program
from zoo.lab.training import product_counts

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
    seconds = _product_seconds(1, PRODUCT, PRODUCT, PRODUCT, "float32")
    rates = [f"{name} {2e-9 * PRODUCT**3 / best:.0f} GF/s" for name, best in seconds.items()]
    note = ", ".join(rates)
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


def best_seconds(side) -> float:
    """Returns the seconds of the best of five calls of a side, after a warm-up call."""
    side()
    times = []
    for _ in range(5):
        begun = clock()()
        side()
        times.append(clock()() - begun)
    return min(times)


# ---- products of matrices alone: what a side takes beyond them is its own work, and where they
# differ, so do the libraries

MOST_REPEATS = 20  # of a product, by which the time of as many as there are is measured
# {form: what multiplies a matrix [rows, summed] with weights in JAX, and in PyTorch}. Weights are
# transposed but by rows, and by columns the matrix is, too.
FORMS = {
    "rows": (products.matmul, lambda matrix, weights: matrix @ weights),
    "columns": (
        lambda matrix, weights: products.matmul(weights, matrix),
        lambda matrix, weights: weights @ matrix,
    ),
    "transpose": (products.matmul_transposed, lambda matrix, weights: matrix @ weights.T),
}


def measure_products(counts: collections.Counter) -> dict[str, float]:
    """Measures the products of matrices of `product_counts` alone, those with vectors left out.

    Returns the seconds in XLA, and in PyTorch where a benchmark imported it: at the best rate of
    products by rows, x W, by columns, W^T x^T, and by a transpose, x V^T. The products of a
    `while` loop count once.
    """
    seconds: dict[str, float] = collections.defaultdict(float)
    for product, times in counts.items():
        if product.shape and 1 not in product.shape[1::2]:
            count, *sizes = product.shape
            repeats = min(math.ceil(count * times), MOST_REPEATS)
            forms = [_product_seconds(repeats, *sizes, product.dtype, form) for form in FORMS]
            for library in forms[0]:
                best = min(form[library] for form in forms)
                seconds[library] += best * count * times / repeats
    return seconds


@functools.cache
def _product_seconds(repeats, rows, summed, columns, dtype, form="rows") -> dict[str, float]:
    """Measures products of several matrices with one, [rows, summed] and [summed, columns]."""
    matrix = (summed, rows) if form == "columns" else (rows, summed)
    shapes = (repeats, *matrix), (summed, columns) if form == "rows" else (columns, summed)
    multiply, torch_multiply = FORMS[form]

    def loop(matrices, weights):
        return jax.lax.map(lambda matrix: multiply(matrix, weights), matrices)

    operands = [jax.random.normal(jax.random.key(0), shape, dtype) for shape in shapes]
    sides = {"XLA": compiled_side(loop, *operands)}
    if (torch := sys.modules.get("torch")) is not None:
        tensors, tensor = (torch.randn(shape, dtype=getattr(torch, dtype)) for shape in shapes)
        sides["PyTorch"] = lambda: [torch_multiply(x, tensor) for x in tensors][-1][0, 0].item()
    return {library: best_seconds(side) for library, side in sides.items()}


def compiled_side(function, *arguments):
    """Returns a side that calls a function, which its first call compiles.

    Its `memory()` is `extra_memory`, and `product_counts` counts its `products()`.
    """

    @functools.cache
    def program():
        return jax.jit(function).lower(*arguments).compile()

    def side():
        return jax.block_until_ready(program()(*arguments))

    side.memory = lambda: extra_memory(program())
    side.products = lambda: product_counts.count_products(function, *arguments)
    return side


def extra_memory(compiled) -> int:
    """Returns the bytes that a call of a compiled function takes beside its arguments."""
    memory = compiled.memory_analysis()
    return memory.temp_size_in_bytes + memory.output_size_in_bytes - memory.alias_size_in_bytes


def traced_with(side, module, **values):
    """Returns a side that is compiled, by its first call, with other values of a module's names."""

    @functools.cache
    def compile_side():
        jax.clear_caches()  # a traced function would be taken again
        with mock.patch.multiple(module, **values):
            side()

    def traced_side():
        compile_side()
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


def compare(title: str, sides: dict, rounds: int, *baselines: str) -> dict[str, float]:
    """Prints the table of the `medians` of sides, which are returned, and of their products alone.

    The baseline is the fastest side of those named.
    """
    times = medians(sides, rounds)
    alone = {
        f"{name}: its products in {library}": seconds
        for name, side in sides.items()
        if hasattr(side, "products")
        for library, seconds in measure_products(side.products()).items()
    }
    baseline = min(baselines, key=times.__getitem__)
    print_table(f"{title}; medians of {rounds}", times | alone, baseline)
    return times
