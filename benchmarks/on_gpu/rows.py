"""Cases of an item: sides built one by one, timed in turns, and written as lines of JSON."""

import contextlib
import functools
import gc
import importlib
import importlib.util
import json
import math
import sys
import time
from collections.abc import Callable
from concurrent import futures
from typing import NamedTuple

import jax

from benchmarks import same_device, timing
from records.cells import grid

ROUNDS, SMALL_ROUNDS = (5, 25), (1, 1)  # the fewest and the most rounds of a case
SECONDS_OF_A_CASE = 1.5
# A side is not begun with less time left for the item: a case is written when all are measured.
TO_MEASURE, TO_COMPILE = 3.0, 15.0
EAGER, COMPILED = "PyTorch, eager", "PyTorch, compiled"
OURS = ("zoo", "XLA")  # the names of our own sides begin with one of them


class Absent(Exception):
    """A side that cannot be built here, with the reason as a sentence."""


class Work(NamedTuple):
    """What one call of a side computes, for rates.

    Attributes:
      amount: of it.
      unit: its name for a second, such as "TFLOP/s".
      scale: units of `amount` in one of `unit`.
    """

    amount: float
    unit: str
    scale: float = 1.0


class Rows:
    """Writes the rows of an item, until its time is over.

    Attributes:
      item: the item's name.
      small: whether sizes are tiny, to try the script out.
    """

    def __init__(self, item: str, file, seconds: float, small: bool):
        self.item, self.small = item, small
        self._file, self._end = file, time.perf_counter() + seconds
        self.on_gpu = jax.default_backend() != "cpu"
        self._torch, self._absent = None, "PyTorch is not installed"
        if importlib.util.find_spec("torch"):
            import torch

            try:
                self.device_name = same_device.share_device(torch)
                self._torch = torch
            except SystemExit as error:
                self._absent = str(error)
        if self._torch is None:
            self.device_name = same_device.share_device()

    def pytorch(self):
        """Returns PyTorch, or raises `Absent`."""
        if self._torch is None:
            raise Absent(self._absent)
        return self._torch

    def opponent(self, name: str):
        """Returns the module benchmarks.NAME, which imports PyTorch, or raises `Absent`."""
        self.pytorch()
        return importlib.import_module(f"benchmarks.{name}")

    def eager_and_compiled(self, name: str, build: Callable) -> dict:
        """Returns builders of PyTorch's sides, eager and compiled.

        Args:
          name: of the module; see `opponent`.
          build: returns a side; takes the module, and a function that compiles another, or not.
        """

        def build_side(compiles: bool):
            module = self.opponent(name)
            return build(module, self.pytorch().compile if compiles else lambda function: function)

        return {EAGER: lambda: build_side(False), COMPILED: lambda: build_side(True)}

    def cuda(self):
        """Returns PyTorch if it computes on a GPU, else None."""
        return self._torch if self.on_gpu else None

    @property
    def seconds_left(self) -> float:
        """Seconds that are left for the item."""
        return self._end - time.perf_counter()

    def write(self, **values):
        """Writes and prints one row."""
        row = {"item": self.item, **values}
        self._file.write(json.dumps(row) + "\n")
        self._file.flush()
        print(as_text(row), flush=True)

    def case(
        self,
        name: str,
        builders: dict,
        precision: str = "tf32",
        work: Work | None = None,
        calls: int = 1,
        kernels: bool = False,
    ):
        """Builds sides, times them in turns, and writes a row for each.

        A side that fails is a row with its error, and the others go on. PyTorch's compiled side,
        which takes long, comes last.

        Args:
          name: sizes, for the row.
          builders: {name: function that returns a side, a function without arguments that returns
            when its work is done; its `memory()` is in bytes}.
          precision: of products of float32 matrices on a GPU, one of `same_device.PRECISIONS`.
          work: of a call.
          calls: how often a side computes in one call; times are divided by it.
          kernels: whether the kernels that a call launches are counted.
        """
        gc.collect()  # the case before
        if "torch._dynamo" in sys.modules:
            self._torch._dynamo.reset()  # which soon compiles a function of new shapes no more
        if self.cuda():
            self.cuda().cuda.empty_cache()
        same_device.multiply_in(precision, self._torch)
        builders = dict(sorted(builders.items(), key=lambda item: item[0] == COMPILED))
        rows = {side: {"case": name, "precision": precision, "side": side} for side in builders}
        sides = {}
        for side, build in builders.items():
            if run := self._try(rows[side], build):
                sides[side] = run
        # XLA compiles several programs at a time, without Python. One that fails does so again
        # when it is called.
        with futures.ThreadPoolExecutor() as threads:
            for run in sides.values():
                if hasattr(run, "compiled"):
                    threads.submit(run.compiled)
        del run
        for side in [*sides]:
            first = functools.partial(self._first, rows[side], sides[side])
            if not self._try(rows[side], first):
                del first, sides[side]
        times = timing.medians(sides, self._rounds(sides)) if sides else {}
        opponents = [seconds for side, seconds in times.items() if not side.startswith(OURS)]
        baseline = min(opponents, default=next(iter(times.values()), math.nan))
        for side, row in rows.items():
            if side in times:
                row["ms"] = round(times[side] / calls * 1e3, 4)
                row["ratio"] = round(times[side] / baseline, 3)
                if work:
                    rate = work.amount * calls / times[side] / work.scale
                    row["rate"] = f"{rate:.4g} {work.unit}"
                if kernels:
                    row["kernels"] = self._kernels(sides[side])
            self.write(**{key: value for key, value in row.items() if value is not None})

    def _try(self, row, function):
        """Returns a function's result, or None and notes the error in the row."""
        slow = row["side"] == COMPILED and not self.small
        if self.seconds_left < (TO_COMPILE if slow else TO_MEASURE):
            row["error"] = "left out: the item's time was over"
            return None
        try:
            return function()
        except (Exception, SystemExit) as error:  # also what the opponents' libraries raise
            row["error"] = describe_error(error)
            return None

    def _first(self, row, side) -> bool:
        """Calls a side for the first time and notes its results."""
        value = side()
        row["memory_mb"] = self._memory(side)
        row["value"] = value if isinstance(value, float) else None
        return True

    def _kernels(self, side) -> int | None:
        """Counts the kernels that a call launches, where PyTorch's profiler can."""
        module = self.cuda()
        if module is None:
            return None
        profiler = module.profiler
        with contextlib.suppress(RuntimeError):
            with profiler.profile(activities=[profiler.ProfilerActivity.CUDA]) as profile:
                side()
                module.cuda.synchronize()
            names = [event.name for event in profile.events() if event.device_type.name == "CUDA"]
            return sum(not name.startswith(("Memcpy", "Memset")) for name in names)
        return None

    def _rounds(self, sides) -> int:
        """Chooses the rounds of a case by the seconds of one round, and of those left."""
        minimum, maximum = SMALL_ROUNDS if self.small else ROUNDS
        begun = time.perf_counter()
        for side in sides.values():
            side()
        round_ = time.perf_counter() - begun + timing.SECONDS_BETWEEN * len(sides)
        return int(min(max(SECONDS_OF_A_CASE / round_, minimum), maximum))

    def _memory(self, side) -> float | None:
        """Returns the MB that a side takes beside its arguments, where that is known."""
        if hasattr(side, "memory"):
            return round(side.memory() / 1e6, 1)
        if not self.cuda():
            return None
        cuda = self.cuda().cuda
        cuda.synchronize()
        cuda.reset_peak_memory_stats()
        before = cuda.memory_allocated()
        side()
        cuda.synchronize()
        peak = cuda.max_memory_allocated() - before
        return round(peak / 1e6, 1) if peak else None


def describe_error(error: BaseException) -> str:
    """Returns an error in one short line."""
    text = " ".join(str(error).split())
    return (
        text if isinstance(error, Absent | SystemExit) else f"{type(error).__name__}: {text[:300]}"
    )


def as_text(row: dict) -> str:
    """Returns a row as one line for a person."""
    values = (f"{key} {value}" for key, value in row.items() if key not in ("item", "case", "side"))
    labels = (row[key] for key in ("item", "case", "side") if key in row)
    return f"{' | '.join(labels)}: {', '.join(values)}"


COLUMNS = (
    "case",
    "precision",
    "side",
    "ms",
    "ratio",
    "memory_mb",
    "rate",
    "kernels",
    "value",
    "error",
)


def as_markdown(rows: list[dict]) -> str:
    """Renders the rows of a run as Markdown: the machine, then a table for each item."""
    items: dict[str, list[dict]] = {}
    for row in rows:
        items.setdefault(row["item"], []).append(row)
    lines = [", ".join(f"{key} {value}" for key, value in _machine(items).items()), ""]
    for item, item_rows in items.items():
        item_rows = [row for row in item_rows if "versions" not in row]
        columns = [name for name in COLUMNS if any(name in row for row in item_rows)]
        if not columns:
            continue
        cells = [[_cell(name, row.get(name, "")) for name in columns] for row in item_rows]
        lines += [f"### {item}", "", grid(columns, cells)]
    return "\n".join(lines).rstrip()


def _machine(items) -> dict:
    return next(
        (row["versions"] for rows in items.values() for row in rows if "versions" in row), {}
    )


def _cell(name: str, value) -> str:
    form = {"value": ".5f", "memory_mb": ",.1f"}.get(name, ",.4g")
    text = format(value, form) if isinstance(value, float) else f"{value}"
    return text.replace("|", "\\|")
