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


glibc = pytest.mark.skipif(
    "CS_GNU_LIBC_VERSION" not in getattr(os, "confstr_names", ())
    or "LD_PRELOAD" in os.environ
    or not os.path.exists("/proc/self/statm"),
    reason="not glibc's allocator on Linux",
)


@glibc
def test_the_memory_of_an_array_stays_for_the_next():
    kept, more = run()
    assert kept
    assert more > 60
    # As the environment says, if it says something.
    kept, more = run(MALLOC_MMAP_THRESHOLD_="1000000")
    assert not kept
    assert more < 10


STEP = """
import resource, sys
from zoo.commands.allocator import keep_memory
if sys.argv[1] == "kept":
    assert keep_memory()
import jax, jax.numpy as jnp
step = jax.jit(lambda x: jnp.tanh(x @ x).sum(axis=0) + jnp.sin(x))
x = jnp.ones((1500, 1500))
for _ in range(4):
    jax.block_until_ready(step(x))
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    jax.block_until_ready(step(x))
print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / 5)
"""


@glibc
def test_a_step_has_no_page_faults():
    clean = {name: v for name, v in os.environ.items() if not name.startswith("MALLOC_")}

    def faults(how):
        command = [sys.executable, "-c", STEP, how]
        return float(subprocess.run(command, env=clean, check=True, capture_output=True).stdout)

    # An array of the step has 2,197 pages of 4 KiB.
    assert faults("kept") < 50 < 2000 < faults("as usual")
