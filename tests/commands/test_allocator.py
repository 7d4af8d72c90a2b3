"""Freed memory is kept for the next array."""

import os
import subprocess
import sys

import pytest

SCRIPT = """
import resource
import numpy as np
from zoo.commands.allocator import keep_memory

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()

kept = keep_memory()
before = resident()
np.ones(2**24, np.float32)
print(kept, (resident() - before) / 2**20)
"""


def run(**environment):
    """(whether memory is kept, MiB that the process has more after an array of 64 MiB)."""
    clean = {name: v for name, v in os.environ.items() if not name.startswith("MALLOC_")}
    found = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=clean | environment, check=True, capture_output=True
    )
    kept, more = found.stdout.split()
    return kept == b"True", float(more)


@pytest.mark.skipif(
    "CS_GNU_LIBC_VERSION" not in getattr(os, "confstr_names", ())
    or "LD_PRELOAD" in os.environ
    or not os.path.exists("/proc/self/statm"),
    reason="not glibc's allocator on Linux",
)
def test_the_memory_of_an_array_stays_for_the_next():
    kept, more = run()
    assert kept
    assert more > 60
    # As the environment says, if it says something.
    kept, more = run(MALLOC_MMAP_THRESHOLD_="1000000")
    assert not kept
    assert more < 10
