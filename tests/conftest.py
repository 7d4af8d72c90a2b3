"""Strict settings for every test: silent broadcasting raises, there are several devices."""

import os
import subprocess

import jax
import numpy as np
import pytest

from tests import examples
from zoo import files

# Most of a test's time is compilation: code for small arrays need not be the fastest.
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_backend_optimization_level=0"
# Before the first array is made: JAX counts its devices once.
jax.config.update("jax_num_cpu_devices", 4)
jax.config.update("jax_numpy_rank_promotion", "raise")


def pytest_runtest_setup(item):
    """Tests of the corpora are skipped, and counted as such, where there are none."""
    if item.get_closest_marker("realdata") and not files.data_folder().is_dir():
        pytest.skip(f"no data in {files.data_folder()}: set ZOO_DATA")


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
def small_disk(tmp_path):
    """A disk of 300 kB, where one may be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("there is no mount command")
    if mounted.returncode:
        pytest.skip(f"no small disk can be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)
