"""The script for a GPU runs at small sizes, and loses nothing but what fails or hangs."""

import json
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import rnn

from benchmarks import cores, on_gpu, timing
from zoo.cores import LSTM


def read_rows(path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_side_that_fails_is_a_row_and_the_others_are_timed(monkeypatch):
    """The ratio is to the fastest opponent that there is; rates are of the work of a call."""
    seconds = [0.0]  # a clock that sides alone move

    def build_side(duration):
        def side():
            seconds[0] += duration
            return 2.5

        side.work = 3, "TFLOP/s"
        return side

    def broken():
        raise MemoryError("too large")

    sides = {
        "zoo": build_side(0.2),
        "optax": build_side(0.4),
        "PyTorch, compiled": build_side(0.1),
        "broken": broken,
        "estimate": lambda: {"ms": 7},
    }
    monkeypatch.setattr(on_gpu.time, "perf_counter", lambda: seconds[0])
    monkeypatch.setattr(timing, "clock", lambda: time.perf_counter)
    monkeypatch.setattr(timing, "machine", lambda: "a machine")
    item = on_gpu.Item(9, "", {})
    rows = on_gpu.measure({"case": "sizes"}, sides, time.time() + 99, item, rounds=3)
    row_by_side = {row.pop("side"): row for row in rows}
    assert [*row_by_side] == ["zoo", "optax", "broken", "estimate", "PyTorch, compiled"]
    assert row_by_side["broken"] == {"case": "sizes", "error": "MemoryError('too large')"}
    assert row_by_side["estimate"] == {"case": "sizes", "ms": 7}
    for name, ratio in {"zoo": 2, "optax": 4, "PyTorch, compiled": 1}.items():
        assert row_by_side[name]["ratio"] == pytest.approx(ratio)
        assert row_by_side[name]["ms"] == pytest.approx(100 * ratio)
        assert row_by_side[name]["result"] == f"{30 / ratio:.4g} TFLOP/s"
        assert row_by_side[name]["value"] == 2.5


def test_a_side_is_left_out_when_the_time_of_its_item_is_over():
    def side():
        raise AssertionError("it was begun")

    rows = on_gpu.measure({}, {"zoo": side}, time.time() + 1, on_gpu.Item(9, "", {}), rounds=1)
    assert [row["error"] for row in rows] == [
        'TimeoutError("left out, as the item\'s time was over")'
    ]


def hang(seconds):
    return {"zoo": lambda: time.sleep(seconds)}


def stop(code):
    return {"zoo": lambda: on_gpu.os._exit(code)}


def values(number):
    return {"zoo": lambda: {"ms": number}}


@pytest.mark.slow
def test_an_item_that_hangs_is_ended_and_the_next_one_is_measured(monkeypatch, tmp_path):
    """Rows written before stay, as does a case of which no side can be built."""
    items = {
        "hangs": on_gpu.Item(20, hang, {"seconds": [1000]}),
        "stops": on_gpu.Item(99, stop, {"code": [3]}),
        "runs": on_gpu.Item(99, values, {"number": [5, 7]}),
        "absent": on_gpu.Item(99, "no_such_module", {"number": [5]}),
    }
    monkeypatch.setattr(on_gpu, "ITEMS", items)
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    path = tmp_path / "results.jsonl"
    on_gpu.run(str(path), [*items], small=False)
    versions, hung, stopped, *measured, absent = read_rows(path)
    assert versions["item"] == "versions" and versions["jax"] == jax.__version__
    ending = "exit code {} (None: ended at its limit of {} s)"
    assert hung == {"item": "hangs", "error": ending.format(None, 20)}
    assert stopped == {"item": "stops", "error": ending.format(3, 99)}
    assert measured == [
        {"item": "runs", "case": f"number {number}", "side": "zoo", "ms": number}
        for number in (5, 7)
    ]
    assert absent["case"] == "number 5" and "no_such_module" in absent["error"]


@pytest.mark.slow
def test_the_lstm_of_cudnn_is_zoos(monkeypatch):
    """Hidden states, the carry and gradients, by JAX's reference of what cuDNN computes."""

    def reference(inputs, hidden, cell, flat, lengths, *sizes):
        weights = rnn.unpack_lstm_weights(flat, *sizes[:3], sizes[4])
        return rnn.lstm_ref(inputs, hidden, cell, *weights, lengths, *sizes)

    monkeypatch.setattr(rnn, "lstm", reference)
    zoo_core, cudnn = LSTM(5, layers=2), cores.CuDNN(5, layers=2)
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


def run_small(path, *names) -> list[dict]:
    """Runs items at small sizes as the command does, and returns the rows; none of zoo's fails."""
    command = [sys.executable, "-m", "benchmarks.on_gpu"]
    only = ["--only", *names] if names else []
    subprocess.run([*command, "run", path, "--small", *only], check=True, capture_output=True)
    tables = subprocess.run([*command, "table", path], check=True, capture_output=True, text=True)
    rows = read_rows(path)
    assert tables.stdout.count("### ") == 1 + len(names or on_gpu.ITEMS)
    assert not [row for row in rows if row.get("side", "").startswith("zoo") and "error" in row]
    assert not [row for row in rows if "exit code" in row.get("error", "")]
    return rows


@pytest.mark.slow
def test_items_run_at_small_sizes(tmp_path):
    rows = run_small(tmp_path / "results.jsonl", "memory", "recurrence")
    ours = [row for row in rows if row.get("side", "").startswith(("XLA", "by hand"))]
    assert [row["item"] for row in ours] == ["memory", *["recurrence"] * 2]
    assert all(row["ms"] > 0 and row["memory, MB"] > 0 for row in ours)


@pytest.mark.slow
def test_every_item_runs_at_small_sizes(tmp_path):
    """On whatever device there is; opponents may be absent. Sides of a head have equal losses."""
    rows = run_small(tmp_path / "results.jsonl")
    assert {row["item"] for row in rows} == {"versions", *on_gpu.ITEMS}
    for name, tolerance in {"head": 1e-5, "head in bfloat16": 1e-2}.items():
        losses = [row["value"] for row in rows if row["item"] == name and row["side"] != "tokamax"]
        assert len(losses) >= 7
        np.testing.assert_allclose(losses, losses[0], rtol=tolerance)
    (tested,) = (row for row in rows if row["item"] == "tests")
    assert " passed" in tested["result"] and tested["error"] == ""
