"""Strict settings for every test: silent broadcasting raises, there are several devices."""

import contextlib
import ctypes
import gc
import math
import os
import pathlib
import signal
import subprocess
import tempfile

import jax
import numpy as np
import pytest

from tests import examples
from zoo.base.trust import permissions
from zoo.sources import files

# Programs that tests start find zoo in the working folder, wherever the tests were started.
os.chdir(pathlib.Path(__file__).parents[1])
# Most of a test's time is compilation: code for small arrays need not be the fastest.
FLAGS = ["--xla_backend_optimization_level=0"]
if jax.__version_info__ < (0, 11):  # later ones know the first of these no more, and would abort
    # Half the time of all tests.
    FLAGS += ["--xla_cpu_use_fusion_emitters=false", "--xla_cpu_parallel_codegen_split_count=1"]
os.environ["XLA_FLAGS"] = " ".join([os.environ.get("XLA_FLAGS", ""), *FLAGS])
# Before the first array is made: JAX counts its devices once.
jax.config.update("jax_num_cpu_devices", 4)
# Tests run on CPUs. Left to choose, JAX drops a CUDA plugin that finds no GPU, and the tests of
# compilers need that plugin.
jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_numpy_rank_promotion", "raise")
# Many tests train the same few models, each with functions of its own. A folder for each process
# of the tests, and one for the programs that it runs: files in it are not written whole at once.
CACHE = tempfile.TemporaryDirectory(prefix="zoo-tests-", ignore_cleanup_errors=True)
jax.config.update("jax_compilation_cache_dir", f"{CACHE.name}/tests")
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
os.environ["JAX_COMPILATION_CACHE_DIR"] = f"{CACHE.name}/programs"
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
# What datasets reads of a table, which may not be kept in the user's own folder.
os.environ["HF_HOME"] = f"{CACHE.name}/huggingface"
# Runs of the tests are noted as one's own there, not among the user's.
os.environ["XDG_STATE_HOME"] = f"{CACHE.name}/state"


# Tests since it was asked whether compiled programs are to be let go, and what they may take.
DONE = []
ROOM = 2.0e9
# Python looks for garbage seldom: each time it goes through all that was imported and collected.
gc.set_threshold(100_000, 50, 100)


def pytest_collection_finish(session):
    """Modules and tests stay to the end: a search for garbage need not go through them."""
    gc.collect()
    gc.freeze()


def pytest_runtest_setup(item):
    """Tests of corpora, which the marker names, are skipped, and counted as such, where those are
    not."""
    marker = item.get_closest_marker("realdata")
    for name in marker.args if marker else ():
        folder = files.data_folder()
        if folder is None or not (folder / name).exists():
            pytest.skip(f"no {name} in {folder}: set ZOO_DATA")


def pytest_runtest_teardown(item, nextitem):
    """What has been compiled is let go at the end of a module, and within a long one now and then,
    where the process has grown: all of it together takes gigabytes. What is needed again is read
    from the folder above."""
    DONE.append(item)
    if nextitem is not None and nextitem.path == item.path and len(DONE) < 100:
        return
    DONE.clear()
    if resident_bytes() < ROOM:
        return
    jax.clear_caches()
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):  # no glibc, which would keep it otherwise
        ctypes.CDLL(None).malloc_trim(0)


def resident_bytes() -> float:
    """The memory of this process; infinity where /proc does not tell."""
    try:
        pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError):
        return math.inf
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.fixture(autouse=True)
def nothing_named(monkeypatch):
    """What a program has opened, and what it has to be asked for, is its own and not the next
    test's."""
    monkeypatch.setattr(permissions, "_closed", {})
    monkeypatch.setattr(permissions, "_user_names", set())
    monkeypatch.setattr(permissions, "_paths_are_open", False)


@pytest.fixture
def float64():
    """Within the test, new arrays have 64 bits."""
    with jax.enable_x64(True):
        yield


@pytest.fixture
def random():
    """A generator of numbers that are the same in every run."""
    return np.random.default_rng(7)


@pytest.fixture(scope="session")
def lexicon():
    """Thirteen words with overlapping real-valued features and a background; see examples."""
    return examples.lexicon()


@pytest.fixture
def signals():
    """Signals that stop a program are ignored by none that the test starts, as they may be by this
    one: SIGHUP under nohup, SIGINT behind & in a script."""
    handlers = {
        number: signal.signal(number, lambda *_: None)  # not passed on, unlike SIG_IGN
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) is signal.SIG_IGN
    }
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
def small_disk(tmp_path, request):
    """A disk of 1 MB, or of the size that a test asks for, where one may be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    size = getattr(request, "param", "1m")
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("there is no mount command")
    if mounted.returncode:
        pytest.skip(f"no small disk can be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)
