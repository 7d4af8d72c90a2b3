"""The TAB key: what bash offers after the beginning of a command line."""

import os
import pathlib
import subprocess
import sys

import argcomplete
import pytest

import configs
from tests.marks import slow

ROOT = pathlib.Path(__file__).parents[3]
# What bash calls at a TAB, with the words that it has made of the line.
ASK = """
COMP_LINE=$1 COMP_POINT=${#1} COMP_TYPE=9
read -ra COMP_WORDS <<< "${1//=/ = }"
_python_argcomplete "$2"
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def offered(tmp_path):
    """A function: the completions of a line in a folder with a run and another folder in it."""
    program = tmp_path / ".bin" / "zoo"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\nfrom zoo.__main__ import console\nconsole()\n")
    program.chmod(0o700)
    for folder in ("runs/first", "runs/further", "other"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "runs/first/experiment.json").write_text("{}")
    (tmp_path / "first.txt").write_text("")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment["PATH"] = f"{program.parent}:{environment['PATH']}"

    def ask(line):
        script = argcomplete.shellcode(["zoo"], shell="bash") + ASK
        command = ["bash", "-c", script, "bash", line, line.split()[0]]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )
        return sorted(filter(None, done.stdout.split("\n")))

    return ask


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("zoo compare --mi", ["--micro "]),
        ("zoo compare runs/f", ["runs/first", "runs/further/"]),
        ("zoo evaluate --state ", ["carried", "items", "sentences"]),
        *slow(  # each starts the program
            ("zoo comp", ["compare "]),
            ("zoo --vers", ["--version "]),
            ("zoo compare ", ["other/", "runs/"]),
            ("zoo compare runs/first runs/fi", ["runs/first "]),
            ("zoo evaluate runs/first --data fi", ["first.txt "]),
            ("zoo rescore tu", ["tune "]),
            ("zoo train runs/first --show micro_log_lin", ["micro_log_linear "]),
            ("zoo train --set model.he", ["model.head="]),
            ("zoo train --set model.head=So", ["Softmax "]),
            ("zoo train --set model.core=G", ["GRU "]),
        ),
    ],
)
def test_words_are_completed(line, expected, offered):
    assert offered(line) == expected


def test_configs_are_completed(offered):
    begun = [name for name in configs.names() if name.startswith("micro_")]
    assert len(begun) > 1 and offered("zoo train --config micro_") == begun


def test_heads_are_completed(offered):
    everything = offered("zoo train --set model.head=")
    assert {"AdaptiveSoftmax", "LogLinear", "NCE"} <= {*everything}
    assert not {"Head", "Noise", "UnigramNoise", "entropy"} & {*everything}
