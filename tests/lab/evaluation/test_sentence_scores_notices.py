"""Notices of commands that print data stand apart from the data."""

import shutil
import subprocess
import sys

import pytest

from tests.trained_run import run, trained, workdir

__all__ = ["run", "trained", "workdir"]


@pytest.mark.slow
def test_a_damaged_checkpoint_is_told_beside_the_table(workdir, tmp_path):
    best = workdir / "checkpoints" / "best"
    (step,) = [int(path.name) for path in best.iterdir() if path.name.isdigit()]
    damaged = best / str(step + 1)
    shutil.copytree(best / str(step), damaged)
    for path in damaged.rglob("*"):
        if path.is_file():
            path.write_bytes(b"")
    (tmp_path / "text.txt").write_text("le chat dort\n")
    command = [sys.executable, "-m", "zoo", "score", str(workdir), str(tmp_path / "text.txt")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    header, *rows = done.stdout.splitlines()
    assert header.split("\t")[0] == '"line"' and len(rows) == 1
    assert f"the checkpoint of step {step + 1}" in done.stderr
