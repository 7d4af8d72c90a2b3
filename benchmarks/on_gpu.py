"""Zoo's hot paths on a GPU beside their opponents: one command, nine minutes, all sizes.

    python -m benchmarks.on_gpu run results.jsonl
    python -m benchmarks.on_gpu run tried.jsonl --small       # tiny sizes, also on a CPU
    python -m benchmarks.on_gpu run results.jsonl --only head decoding
    python -m benchmarks.on_gpu table results.jsonl           # Markdown, for BENCHMARKS.md

Each of `ITEMS` is a process of its own, which is ended at the item's limit: one that hangs or takes
all memory loses only its rows not yet written. A row is a line of JSON, written when its case is
measured. The sides of a case are timed in turns in one process; times are medians, memory is the
bytes of a call beside its arguments, and the ratio is to the fastest opponent, or to the first side
without one. Items that need PyTorch, where it is absent, have a row with the reason.
"""

import argparse
import contextlib
import gc
import importlib
import importlib.metadata
import itertools
import json
import multiprocessing
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np

import configs
from benchmarks import same_device, steps, timing
from benchmarks.cores import torch
from zoo import changed
from zoo.lab.table import Column, Table
from zoo.lab.training import step_shapes

ROUNDS, SECONDS_OF_A_CASE = (5, 25), 1.5  # the fewest and the most rounds
# A side is not begun with less time left for the item: a case is written when all are measured.
TO_MEASURE, TO_COMPILE = 3.0, 15.0
CUDA = torch.cuda if torch and torch.cuda.is_available() else None
MARGIN = 3  # seconds of an item's limit kept for its end
OPPONENTS = "PyTorch", "Liger", "jax.experimental", "optax", "plain", "tokamax", "checkpointed"
QUERY = "nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader"
LIBRARIES = "jax", "torch", "optax", "tokamax", "liger", "nvidia-cudnn"  # as they begin
FORMATS = {"ms": ",.4g", "ratio": ".3f", "memory, MB": ",.1f", "kernels": ",", "value": ".5f"}


def product(size, precision):
    """Returns products of square matrices, in both libraries."""
    if precision == "float32":
        same_device.multiply_in(precision, torch)
    dtype, work = precision.replace("tf32", "float32"), (2e-12 * size**3, "TFLOP/s")
    return in_both_libraries(lambda x: x @ x, (size, size), work, dtype)


def addition(numbers):
    """Returns additions of 1: to many numbers for the memory's rate, to one for the start."""
    return in_both_libraries(lambda x: x + 1, (numbers,), (8e-9 * numbers, "GB/s"))


def in_both_libraries(function, shape, work, dtype="float32"):
    """Returns sides of a function of an array; `work`: the amount of a call, and its unit."""
    array = jax.random.normal(jax.random.key(0), shape, dtype)
    array_sides = {"XLA": timing.compiled_side(function, array)}
    if torch:
        tensor = torch.randn(*shape, dtype=getattr(torch, dtype))
        array_sides["PyTorch"] = lambda: function(tensor).flatten()[-1].item()
    for side in array_sides.values():
        side.work = work
    return array_sides


def log_linear(vocabulary):
    """Returns the log-linear head beside its opponents."""
    module = importlib.import_module("benchmarks.log_linear")
    return module.sides(module.synthetic_lexicon(np.random.default_rng(0), vocabulary))


def recipe_step(name, vocabulary, changes):
    """Returns a recipe's whole step."""
    lexicon, step_sides = step_shapes.ranked_lexicon(vocabulary), {}
    for compute in ("float32", "bfloat16"):
        recipe = changed(configs.load(name), {**changes, "training.compute": compute})
        step_sides[f"zoo, {compute}"] = steps.zipf_step(recipe.model, lexicon, recipe.training)
        step_sides[f"zoo, {compute}, peak with arguments"] = peak_memory
    return step_sides


def peak_memory():
    """Returns a row of the most memory that this process had on the device."""
    statistics = jax.devices()[0].memory_stats() or {}
    return {"memory, MB": statistics.get("peak_bytes_in_use", 0) / 1e6}


def tests(paths):
    """Returns a run of the fast tests in folders, as far as it gets in 45 seconds."""
    options = "-v", "-n", "auto", "--tb=no", "--no-summary", "-pno:cacheprovider", *paths.split()

    def run_tests():
        command = ["timeout", "45", sys.executable, "-m", "pytest", *options]
        output = subprocess.run(command, stdout=subprocess.PIPE, text=True).stdout.strip()
        failed = re.findall(r"(?:FAILED|ERROR) (tests/.+)", output)
        return {"result": output.rpartition("\n")[2].strip("= "), "error": ", ".join(failed)}

    return {"pytest": run_tests}


class Item(NamedTuple):
    """Cases that are measured in a process of their own.

    Attributes:
      limit: seconds.
      sides: returns {name: side} for the sizes of a case; or the module of benchmarks whose `sides`
        does. A side is a function without arguments that returns when its work is done, perhaps
        with its loss, or that returns the values of its row.
      sizes: {argument of `sides`: values}, of which every combination is a case.
      counts_kernels: whether the kernels that a call launches are counted.
    """

    limit: int
    sides: Callable | str
    sizes: dict[str, list]
    counts_kernels: bool = False

    def cases(self, small: bool) -> list[dict]:
        """Returns the sizes of each case."""
        smaller = {name: [SMALL[name]] for name in self.sizes if small and name in SMALL}
        sizes = self.sizes | smaller
        return [dict(zip(sizes, case, strict=True)) for case in itertools.product(*sizes.values())]


# The value of an argument of any item, to try the script out.
SMALL = {"numbers": 9, "batch": 3, "length": 5, "tokens": 64, "vocabulary": 50_000, "size": 8}
SMALL |= {"lstm": (2, 8), "unroll": (5,), "blocks": (512,), "count": 2, "texts": 3}
SMALL |= {"changes": {"model.core.size": 8}, "paths": "tests/losses/test_softmax.py"}
LSTMS = [(2, 256), (3, 1150), (2, 650)]  # layers and cells
HEADS, TESTED = ["NCE", "importance sampling"], "tests/heads tests/losses tests/lab/training"
SPELLED = {"name": ["char_lstm", "char_cnn", "CNN softmax"], "blocks": [(512, 2048)]}
RECIPE = {"name": ["lm1b_lstm_2048_512"], "vocabulary": [793_471], "changes": [{}]}
COMPUTE, TABLES = ["float32", "bfloat16"], [100_000, 1_000_000]
CELLS, LENGTHS, TOKENS = [256, 2048, 1024, 512], [35, 70], [1120, 8192]
NARROW_HEAD = {"vocabulary": [128_256], "tokens": [8192], "dtype": ["bfloat16"]}
LARGE_HEAD = {"vocabulary": [800_000], "tokens": TOKENS, "in_blocks": [True, False]}
# The most important first, 540 s in all.
ITEMS = {
    "products": Item(15, product, {"size": [4096, 8192], "precision": ["tf32", *COMPUTE]}),
    "memory": Item(10, addition, {"numbers": [1 << 28, 1]}),
    "training step": Item(
        85, "training_step", {"batch": [32, 128], "lstm": LSTMS, "compute": COMPUTE}
    ),
    "recurrence": Item(
        60, "cores", {"length": LENGTHS, "size": CELLS, "batch": [32], "unroll": [(5, 35)]}, True
    ),
    "head": Item(50, "softmax_losses", {"vocabulary": [10_000, 128_256], "tokens": TOKENS}),
    "head in bfloat16": Item(20, "softmax_losses", NARROW_HEAD),
    "large head": Item(30, "softmax_losses", LARGE_HEAD),
    "adaptive": Item(25, "adaptive_pytorch", {"vocabulary": TABLES, "dense": [False]}),
    "sampled": Item(35, "sampled_pytorch", {"vocabulary": TABLES, "name": HEADS}),
    "letters": Item(40, "pytorch_steps", SPELLED),
    "beam search": Item(30, "pytorch_beam", {"count": [96], "rows": [384]}),
    "texts": Item(25, "generation", {"texts": [32, 256], "temperature": [0.8, 0.0]}),
    "log-linear": Item(25, log_linear, {"vocabulary": [42_894, 800_000]}),
    "recipe": Item(40, recipe_step, RECIPE),
    "tests": Item(50, tests, {"paths": [TESTED]}),
}


def measure(case: dict, sides: dict, end: float, item: Item, rounds: int | None):
    """Times sides in turns, and yields a row for each; one that fails has its error instead."""
    rows, timed, round_seconds = {}, {}, 0.0
    for name in sorted(sides, key=lambda name: "compiled" in name):  # takes long, and comes last
        row = rows[name] = {**case, "side": name}
        try:
            if time.time() + (TO_COMPILE if "compiled" in name else TO_MEASURE) > end:
                raise TimeoutError("left out, as the item's time was over")
            values, seconds = first_calls(sides[name])
        except (Exception, SystemExit) as error:  # also what the opponents' libraries raise
            row["error"] = repr(error)[:300]
            continue
        row |= values
        if seconds:
            timed[name], round_seconds = sides[name], round_seconds + seconds
    fitting = int(np.clip(SECONDS_OF_A_CASE / (round_seconds or 1), *ROUNDS))
    times = timing.medians(timed, rounds or fitting)
    opponents = [seconds for name, seconds in times.items() if name.startswith(OPPONENTS)]
    for name, seconds in times.items():
        row, baseline = rows[name], min(opponents, default=next(iter(times.values())))
        row |= {"ms": seconds * 1e3, "ratio": seconds / baseline}
        if hasattr(timed[name], "work"):
            amount, unit = timed[name].work
            row["result"] = f"{amount / seconds:.4g} {unit}"
        if CUDA and item.counts_kernels:
            with contextlib.suppress(RuntimeError):  # as where another profiler runs
                row["kernels"] = count_kernels(timed[name])
    yield from rows.values()


def first_calls(side) -> tuple[dict, float]:
    """Returns (loss and memory of a side, seconds of a later call), or (values of its row, 0)."""
    result = side()
    if isinstance(result, dict):
        return result, 0.0
    loss, *_ = [*jax.tree.leaves(result), None]
    is_loss = isinstance(loss, float | jax.Array) and np.size(loss) == 1
    row = {"value": float(loss)} if is_loss else {}
    del result, loss
    if CUDA:
        CUDA.reset_peak_memory_stats()
        before = CUDA.memory_allocated()
    begun = time.perf_counter()
    side()
    seconds = time.perf_counter() - begun
    if hasattr(side, "memory"):
        row["memory, MB"] = side.memory() / 1e6
    elif CUDA:
        row["memory, MB"] = (CUDA.max_memory_allocated() - before) / 1e6
    return row, seconds


def count_kernels(side) -> int:
    """Counts the kernels that a call launches, by PyTorch's profiler."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        side()
        CUDA.synchronize()
    names = [event.name for event in profile.events() if event.device_type.name == "CUDA"]
    return sum(not name.startswith(("Memcpy", "Memset")) for name in names)


def run_item(path: str, name: str, item: Item, end: float, small: bool):
    """Measures the cases of an item until a time of the clock."""
    same_device.share_device(torch)
    for sizes in item.cases(small):
        case = {"case": ", ".join(f"{size} {value}" for size, value in sizes.items())}
        gc.collect()  # the case before
        if CUDA:
            torch._dynamo.reset()  # which soon compiles a function of new shapes no more
            CUDA.empty_cache()
        same_device.multiply_in("tf32", torch)
        try:
            sides = item.sides
            if isinstance(sides, str):
                sides = importlib.import_module(f"benchmarks.{sides}").sides
            for row in measure(case, sides(**sizes), end, item, rounds=1 if small else None):
                write_row(path, name, row)
        except (Exception, SystemExit) as error:
            write_row(path, name, {**case, "error": repr(error)[:300]})


def write_row(path: str, item: str, row: dict):
    """Appends a row of an item to a file, and prints it."""
    line = json.dumps({"item": item, **row})
    with open(path, "a", encoding="utf-8") as file:
        file.write(line + "\n")
    print(line, flush=True)


def run(path: str, names: list[str], small: bool):
    """Runs items, each as a process that is ended at its limit."""
    distributions = [(each.name, each.version) for each in importlib.metadata.distributions()]
    versions = {name: version for name, version in distributions if name.startswith(LIBRARIES)}
    write_row(path, "versions", {"card": subprocess.getoutput(QUERY), **versions})
    # The libraries share the card's memory: none takes all of it at the start.
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    for name in names:
        limit = 600 if small else ITEMS[name].limit
        arguments = path, name, ITEMS[name], time.time() + limit - MARGIN, small
        process = multiprocessing.get_context("spawn").Process(target=run_item, args=arguments)
        process.start()
        process.join(limit)
        if process.exitcode != 0:
            ending = f"exit code {process.exitcode} (None: ended at its limit of {limit} s)"
            write_row(path, name, {"error": ending})
        process.kill()
        process.join()


def tables(path: str) -> str:
    """Renders the rows of a run as Markdown: a table for each item."""
    rows_by_item: dict[str, list[dict]] = {}
    with open(path, encoding="utf-8") as file:
        for row in map(json.loads, file):
            rows_by_item.setdefault(row.pop("item"), []).append(row)
    parts = []
    for item, rows in rows_by_item.items():
        names = dict.fromkeys(itertools.chain(*rows))
        columns = [Column(name, FORMATS.get(name, "")) for name in names]
        cells = [[row.get(name) for name in names] for row in rows]
        parts.append(f"### {item}\n\n{Table(columns, cells).markdown()}")
    return "\n".join(parts)


def main():
    """Runs the items, or prints the tables of a run."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("action", choices=("run", "table"))
    parser.add_argument("path", help="lines of JSON, to which rows are added")
    parser.add_argument("--only", nargs="*", choices=ITEMS, default=[*ITEMS], help="items")
    parser.add_argument("--small", action="store_true", help="tiny sizes, also on a CPU")
    options = parser.parse_args()
    if options.action == "table":
        print(tables(options.path))
    else:
        run(options.path, options.only, options.small)


if __name__ == "__main__":
    main()
