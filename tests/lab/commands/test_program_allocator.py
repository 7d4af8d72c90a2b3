"""Freed memory is kept for the next array."""

import os
import subprocess
import sys

import pytest

ARRAY = """
import resource
import numpy as np
from zoo.lab.commands.program import keep_memory

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()

kept = keep_memory()
before = resident()
np.ones(2**24, np.float32)
print(kept, (resident() - before) / 2**20)
"""


FAULTS = """
import resource
from zoo.lab.commands.program import keep_memory

kept = keep_memory()

def faults(step):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    step()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
"""
# Arrays of 120 MiB do not fit into one heap of 64 MiB, of which the own arena of a thread is made:
# it would get heaps in each step, and unmap them.
THREAD = f"""{FAULTS}
import threading
import numpy as np

def step():
    [np.ones(10 * 2**20, np.float32) for _ in range(3)]

found = []
thread = threading.Thread(target=lambda: found.extend(faults(step) for _ in range(5)))
thread.start()
thread.join()
print(kept, max(found[1:]))
"""
# Logits of 45 MB are above the greatest threshold, 32 MiB, from which glibc maps arrays one by one.
TRAINING = f"""{FAULTS}
import statistics
from benchmarks import steps
from zoo import Training, cores, embeddings, heads, models, optimizers

training = Training(batch=32, length=35, optimizer=optimizers.SGD(1.0), clip=1.0)
model = models.LanguageModel(embeddings.Lookup(256), cores.LSTM(256), heads.Softmax())
step = steps.zipf_step(model, steps.zipf_lexicon(10_000), training)
print(kept, statistics.median([faults(step) for _ in range(16)][8:]))
"""
needs_glibc = pytest.mark.skipif(
    "CS_GNU_LIBC_VERSION" not in getattr(os, "confstr_names", ())
    or "LD_PRELOAD" in os.environ
    or not os.path.exists("/proc/self/statm"),
    reason="not glibc's allocator on Linux",
)


def run(script=ARRAY, **environment):
    """(whether memory is kept, the number that the script prints)."""
    clean = {name: v for name, v in os.environ.items() if not name.startswith("MALLOC_")}
    finished = subprocess.run(
        [sys.executable, "-c", script], env=clean | environment, check=True, capture_output=True
    )
    keeps_memory, number = finished.stdout.split()
    return keeps_memory == b"True", float(number)


@needs_glibc
def test_the_memory_of_other_threads_stays():
    assert run(THREAD) == (True, pytest.approx(0, abs=50))


@needs_glibc
@pytest.mark.slow
def test_a_training_step_has_no_page_faults():
    """The median of 8 steps after 8: each of XLA's threads faults when it first has an array."""
    assert run(TRAINING) == (True, pytest.approx(0, abs=50))
    keeps_memory, faults = run(
        TRAINING, MALLOC_ARENA_TEST="8"
    )  # glibc's own way: keep_memory does nothing
    assert not keeps_memory and faults > 3000


@needs_glibc
def test_the_memory_of_an_array_stays_for_the_next():
    keeps_memory, growth = run()
    assert keeps_memory
    assert growth > 60
    # As the environment says, if it says something.
    keeps_memory, growth = run(MALLOC_MMAP_THRESHOLD_="1000000")
    assert not keeps_memory
    assert growth < 10
