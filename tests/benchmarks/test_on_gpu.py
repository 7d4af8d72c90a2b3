"""The script for a GPU runs whole at small sizes, and loses nothing but what fails or hangs."""

import collections
import io
import json
import pathlib
import re
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks import timing
from benchmarks.on_gpu import __main__ as on_gpu
from benchmarks.on_gpu import recurrent, rows
from zoo.cores import LSTM


@pytest.fixture
def rows_and_file():
    """Rows of an item with time, and the file that they are written to."""
    file = io.StringIO()
    return rows.Rows("an item", file, 1000.0, small=True), file


def read_rows(file) -> list[dict]:
    return [json.loads(line) for line in file.getvalue().splitlines()]


def test_a_side_that_fails_is_a_row_and_the_others_are_timed(rows_and_file, monkeypatch):
    """The ratio is to the fastest opponent that there is; rates are of the work of a call."""
    case, file = rows_and_file

    def absent():
        raise rows.Absent("it is not installed")

    def broken():
        raise MemoryError("too large")

    seconds = [0.0]  # a clock that sides alone move

    def builder(duration):
        def side():
            seconds[0] += duration
            return 2.5

        return lambda: side

    monkeypatch.setattr(rows.time, "perf_counter", lambda: seconds[0])
    monkeypatch.setattr(timing, "clock", lambda: time.perf_counter)
    monkeypatch.setattr(timing, "machine", lambda: "a machine")

    work = rows.Work(6e12, "TFLOP/s", 1e12)
    sides = {
        "zoo": builder(0.2),
        "slow": builder(0.4),
        "quick": builder(0.1),
        "absent": absent,
        "broken": broken,
    }
    case.case("sizes", sides, work=work, calls=2)
    row_by_side = {row["side"]: row for row in read_rows(file)}
    assert row_by_side["absent"]["error"] == "it is not installed"
    assert row_by_side["broken"]["error"] == "MemoryError: too large"
    assert row_by_side["zoo"]["ratio"] == 2
    assert row_by_side["slow"]["ratio"] == 4
    assert row_by_side["quick"]["ratio"] == 1
    assert row_by_side["quick"]["ms"] == 50
    assert row_by_side["quick"]["rate"] == "120 TFLOP/s"
    assert row_by_side["zoo"]["value"] == 2.5


def test_an_item_that_hangs_is_ended_and_its_rows_stay(monkeypatch, tmp_path, capsys):
    """The next item is measured."""
    started = subprocess.Popen

    def rows_of(path):
        return pathlib.Path(path).read_text().count("\n")

    endings = {"head": "time.sleep(1000)", "letters": "sys.exit(3)", "tests": "pass"}
    writes = "import sys, time; open(sys.argv[1], 'a').write(sys.argv[2] + chr(10));"

    def start(command, **options):
        name = command[command.index("--only") + 1]
        path, row = command[command.index("item") + 1], json.dumps({"item": name})
        lines = rows_of(path)
        process = started([sys.executable, "-c", writes + endings[name], path, row], **options)
        # Its time begins with its row, however slowly Python starts.
        while rows_of(path) == lines and process.poll() is None:
            time.sleep(0.01)
        return process

    monkeypatch.setattr(on_gpu.subprocess, "Popen", start)
    monkeypatch.setattr(on_gpu, "versions", lambda: {"card": "none"})
    monkeypatch.setitem(on_gpu.ITEMS, "head", (1, None))
    path = tmp_path / "results.jsonl"
    on_gpu.run(str(path), ["head", "letters", "tests"], small=False)
    result_rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [row.get("error") for row in result_rows] == [
        None,  # the versions
        None,  # the row that the first one wrote
        "ended at its limit of 1 s",
        None,
        "ended with the code 3",
        None,
    ]


@pytest.mark.slow
def test_the_lstm_of_cudnn_is_zoos():
    """Hidden states, the carry and gradients; away from a GPU by JAX's reference."""
    zoo_core, cudnn = LSTM(5, layers=2), recurrent.CuDNN(5, layers=2)
    params = zoo_core.init(jax.random.key(0), 3)
    inputs = jax.random.normal(jax.random.key(1), (2, 7, 3))
    _, carry = zoo_core.apply(params, inputs[:, :2], zoo_core.initial_carry(2))

    def gradients(core):
        def loss(params):
            hidden, last = core.apply(params, inputs, carry)
            return jnp.sum(hidden * jnp.cos(jnp.arange(hidden.size)).reshape(hidden.shape)), last

        return jax.value_and_grad(loss, has_aux=True)(params)

    results = zip(*(jax.tree.leaves(gradients(core)) for core in (zoo_core, cudnn)), strict=True)
    for zoo_leaf, cudnn_leaf in results:
        np.testing.assert_allclose(zoo_leaf, cudnn_leaf, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_every_item_runs_at_small_sizes(tmp_path):
    """Zoo's sides of all items, on whatever device there is; opponents may be absent."""
    path = tmp_path / "results.jsonl"
    command = [sys.executable, "-m", "benchmarks.on_gpu"]
    subprocess.run([*command, "run", str(path), "--small"], check=True, stdout=subprocess.DEVNULL)
    result_rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert {row["item"] for row in result_rows} == set(on_gpu.ITEMS)
    for row in result_rows:
        is_zoo = row.get("side", "").startswith(rows.OURS)
        assert not (is_zoo and "error" in row), row
        assert not row.get("error", "").startswith("ended"), row
    values_by_case = collections.defaultdict(list)
    for row in result_rows:
        is_compared = row["item"] in ("training step", "head") and "tokamax" not in row.get(
            "side", ""
        )
        if is_compared and "value" in row:
            values_by_case[row["case"], row["precision"]].append(row["value"])
    assert len(values_by_case) == 4
    for (_, precision), losses in values_by_case.items():
        assert len(losses) > 1 or precision == "bfloat16"
        np.testing.assert_allclose(losses, losses[0], rtol=1e-5 if precision == "tf32" else 1e-2)
    (tested,) = (row["case"] for row in result_rows if row["item"] == "tests")
    assert re.search(r"[1-9]\d* passed, 0 failed, 0 error", tested)
    table = subprocess.run([*command, "table", str(path)], check=True, capture_output=True)
    assert table.stdout.decode().count("### ") == len(on_gpu.ITEMS)
