"""The suite passes however it is started: its tests that start programs, in a bare environment."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
# What a script behind nohup and & leaves to a program, from another folder.
START = """
import os, signal, sys
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
os.umask(0o077)
os.close(0)
os.execv(sys.argv[1], sys.argv[1:])
"""
TESTS = (
    "base/test_distributed.py",
    "lab/training/test_loop_signals.py",
)


@pytest.mark.slow
@pytest.mark.parametrize("colour", [{"NO_COLOR": "1"}, {"FORCE_COLOR": "1"}])
def test_programs_pass_their_tests_without_a_terminal_signals_or_variables(colour, tmp_path):
    folder = tmp_path / "a folder[1]"
    folder.mkdir()
    environment = {
        "PATH": os.environ["PATH"],
        "LANG": "C",
        "COLUMNS": "30",
        "HOME": "/nonexistent",
        "TMPDIR": str(folder),
        **colour,
    }
    tests = [str(ROOT / "tests" / name) for name in TESTS]
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *tests]
    done = subprocess.run(
        [sys.executable, "-c", START, *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-5000:]
