"""The small run that tests of this folder take, and the command."""

import sys

import pytest

from tests.trained_run import run, trained, workdir
from zoo import __main__ as commands
from zoo.lab.commands import program

__all__ = ["run", "trained", "workdir"]


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    """call(*arguments) of zoo rescore -> (exit code, output, errors), in a folder."""
    monkeypatch.chdir(tmp_path)

    def calling(*words):
        monkeypatch.setattr(sys, "argv", ["zoo", "rescore", *map(str, words)])
        code = program.run(commands.main)
        return code, *capsys.readouterr()

    return calling
