"""Items of whole things: the step of a large recipe, and the project's tests."""

import dataclasses
import importlib.util
import os
import re
import subprocess
import sys

import jax

import configs
from benchmarks import scaling, step_shapes, steps
from benchmarks.on_gpu.rows import Rows, Work
from zoo import changed

NAME = "lm1b_lstm_2048_512"
SMALL = {
    "model.embedding.size": 6,
    "model.core.size": 8,
    "model.core.projection": 6,
    "model.head.samples": 16,
    "training.batch": 3,
}
TESTED = ("tests/heads", "tests/losses", "tests/lab/training")
# Lines of pytest, of one process and of several.
OUTCOMES = (
    re.compile(r"(?P<test>tests/.+?) (?P<outcome>PASSED|FAILED|ERROR) +\["),
    re.compile(r"\[gw\d+\] \[ *\d+%\] (?P<outcome>PASSED|FAILED|ERROR) (?P<test>tests/.+)"),
)


def outcome(line: str) -> tuple[str, str] | None:
    """Returns (test, outcome) of a line of pytest's output that has one."""
    match = next(filter(None, (form.match(line) for form in OUTCOMES)), None)
    return match and (match["test"].strip(), match["outcome"])


def lm1b(rows: Rows):
    """Measures a whole step of `lm1b_lstm_2048_512`, beside the estimate of docs/scaling.md."""
    recipe = configs.load(NAME)
    recipe = changed(recipe, SMALL) if rows.small else recipe
    vocabulary = 300 if rows.small else scaling.SIZE
    lexicon = step_shapes.ranked_lexicon(vocabulary)
    batch, length = recipe.training.batch, recipe.training.length
    data = steps.zipf_batch(vocabulary, batch, length)
    work = Work(batch * length, "tokens/s")
    name = f"{NAME}, B = {batch}, T = {length}, V = {vocabulary:,}"
    if not rows.small:
        counts = scaling.count(NAME, 1)
        seconds, _ = scaling.step_seconds(counts, scaling.H100, 1)
        memory, _ = scaling.memory(counts, 1)
        rows.write(
            case=name,
            side="docs/scaling.md, an H100",
            ms=round(seconds * 1e3, 2),
            memory_mb=round(memory / 1e6, 1),
            rate=f"{work.amount / seconds:.4g} {work.unit}",
        )
    for precision, compute in (("tf32", "float32"), ("bfloat16", "bfloat16")):

        def build(compute=compute):
            params = recipe.language_model.init(jax.random.key(0), lexicon)
            training = dataclasses.replace(recipe.training, compute=compute)
            return steps.step_of(recipe.language_model, params, lexicon, data, training)

        rows.case(name, {"zoo": build}, precision, work)
        peak = (jax.devices()[0].memory_stats() or {}).get("peak_bytes_in_use")
        if peak:
            rows.write(case=name, precision=precision, side="peak memory", memory_mb=peak / 1e6)


def tests(rows: Rows):
    """Runs the fast tests of heads, losses and training; rows name the ones that fail."""
    chosen = ["tests/losses/test_softmax.py"] if rows.small else [*TESTED]
    command = [sys.executable, "-m", "pytest", "-vv", "--tb=line", "-pno:cacheprovider", *chosen]
    if importlib.util.find_spec("xdist") and rows.on_gpu:
        command += ["-n", "8"]
    count = {"PASSED": 0, "FAILED": 0, "ERROR": 0}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=os.environ
    )
    tail = ""
    for line in process.stdout:
        tail = line.strip() or tail
        if test_outcome := outcome(line):
            test, ending = test_outcome
            count[ending] += 1
            if ending != "PASSED":
                rows.write(case=test, side="test", error=ending)
        if rows.seconds_left < 0:
            process.kill()
            tail = "not all were run: the item's time was over"
            break
    process.wait()
    summary = ", ".join(f"{number} {name.lower()}" for name, number in count.items())
    rows.write(case=f"tests of {', '.join(chosen)}: {summary}", side=tail)
