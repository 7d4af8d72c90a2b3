"""Benchmarks tell the machine on which they time."""

import itertools
import os
import re
import sys
import types

import numpy as np
import pytest

from benchmarks import timing


@pytest.fixture
def half_seconds(monkeypatch):
    """A clock that moves by half a second when it is read."""
    clock = itertools.count(0, 0.5).__next__
    for name in ("perf_counter", "process_time"):  # the latter is read where there is one core
        monkeypatch.setattr(timing.time, name, clock)
    monkeypatch.setattr(timing, "PRODUCT", 1000)  # rows and columns
    for function in (timing.machine, timing._print_machine):
        function.cache_clear()
    yield
    timing.machine.cache_clear()


@pytest.mark.parametrize("with_torch", [False, True])
def test_the_machine_is_told_with_the_rate_of_a_product(monkeypatch, half_seconds, with_torch):
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    if with_torch:
        torch = types.SimpleNamespace(ones=lambda *shape, device: np.ones(shape, np.float32))
        monkeypatch.setitem(sys.modules, "torch", torch)
    description = timing.machine()
    # 2 * 1,000^3 operations in half a second
    assert re.findall(r"(\w+) 4 GF/s", description) == ["XLA", *["PyTorch"] * with_torch]
    assert f"{len(os.sched_getaffinity(0))} core" in description


def test_the_machine_is_printed_once(capsys, half_seconds):
    for _ in range(2):
        timing.medians({"nothing": lambda: None}, rounds=1)
    assert capsys.readouterr().out.count("a product: ") == 1
