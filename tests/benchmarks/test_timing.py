"""Benchmarks tell the machine on which they time."""

import itertools
import os
import re
import sys
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks import timing

# The part of PyTorch that is measured beside XLA.
TORCH = types.SimpleNamespace(randn=np.ones, matmul=np.matmul, float32=np.float32)


@pytest.fixture
def half_seconds(monkeypatch):
    """A clock that moves by half a second when it is read."""
    clock = itertools.count(0, 0.5).__next__
    for name in ("perf_counter", "process_time"):  # the latter is read where there is one core
        monkeypatch.setattr(timing.time, name, clock)
    monkeypatch.setattr(timing, "PRODUCT", 1000)  # rows and columns
    caches = timing.machine, timing._print_machine, timing._product_seconds
    for function in caches:
        function.cache_clear()
    yield
    for function in caches:
        function.cache_clear()


@pytest.mark.parametrize("with_torch", [False, True])
def test_the_machine_is_told_with_the_rate_of_a_product(monkeypatch, half_seconds, with_torch):
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    if with_torch:
        monkeypatch.setitem(sys.modules, "torch", TORCH)
    description = timing.machine()
    # 2 * 1,000^3 operations in half a second
    assert re.findall(r"(\w+) 4 GF/s", description) == ["XLA", *["PyTorch"] * with_torch]
    assert f"{len(os.sched_getaffinity(0))} core" in description


def test_the_machine_is_printed_once(capsys, half_seconds):
    for _ in range(2):
        timing.medians({"nothing": lambda: None}, rounds=1)
    assert capsys.readouterr().out.count("a product: ") == 1


def test_the_products_of_a_side_are_measured_alone(monkeypatch, half_seconds, capsys):
    """As many as there are, in each library; products with a vector are left out."""
    monkeypatch.setitem(sys.modules, "torch", TORCH)

    def function(steps, matrix, vector):
        return jax.lax.map(lambda rows: rows @ matrix, steps).sum() + (matrix @ vector).sum()

    side = timing.compiled_side(function, jnp.ones((40, 3, 5)), jnp.ones((5, 7)), jnp.ones(7))
    # 20 of the 40 products take half a second.
    assert timing.measure_products(side.products()) == {"XLA": 1, "PyTorch": 1}
    times = timing.compare("a title", {"zoo": side, "other": lambda: None}, 1, "zoo", "other")
    assert times == {"zoo": 0.5, "other": 0.5}
    rows = re.findall(
        r"^  zoo: its products in (\w+) +1000\.00 +2\.000$", capsys.readouterr().out, re.M
    )
    assert rows == ["XLA", "PyTorch"]
