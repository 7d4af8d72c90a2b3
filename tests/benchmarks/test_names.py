"""Benchmarks, which few run, use names that exist, and run on after one that fails."""

import ast
import importlib
import importlib.util
import inspect
import pathlib
import re
import shutil
import subprocess
import sys
from unittest import mock

import pytest

import benchmarks
from zoo import cores, heads

FOLDER = pathlib.Path(benchmarks.__path__[0])
ROOT = FOLDER.parent


def is_own(module):
    return (module or "").partition(".")[0] in ("zoo", "configs", "tests", "benchmarks")


def is_there(owner, name):
    """Whether a module or class has a name, which may be a module within."""
    inside = f"{owner.__name__}.{name}" if hasattr(owner, "__path__") else ""
    return hasattr(owner, name) or bool(inside and importlib.util.find_spec(inside))


def missing(tree, scope):
    """What a file takes from the project's modules and classes, and they do not have."""
    rebound = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    rebound |= {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }

    def value(node):
        if isinstance(node, ast.Name):
            return None if node.id in rebound else scope.get(node.id)
        return getattr(value(node.value), node.attr, None) if hasattr(node, "attr") else None

    missing_names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and is_own(node.module):
            owner, names = (
                importlib.import_module(node.module),
                {alias.name for alias in node.names},
            )
        elif isinstance(node, ast.Attribute):
            owner, names = value(node.value), {node.attr}
            if not (inspect.ismodule(owner) or inspect.isclass(owner)):
                continue
            if not is_own(owner.__name__ if inspect.ismodule(owner) else owner.__module__):
                continue
        else:
            continue
        missing_names |= {f"{owner.__name__}.{name}" for name in names if not is_there(owner, name)}
    return missing_names


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_every_name_that_a_benchmark_takes_exists(path, monkeypatch):
    """Of the project: PyTorch need not be installed."""
    if not importlib.util.find_spec("torch"):
        for name in ("torch", "torch.nn", "torch.nn.utils", "torch.nn.utils.rnn"):
            monkeypatch.setitem(sys.modules, name, mock.MagicMock())
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert not missing(tree, vars(importlib.import_module(f"benchmarks.{path.stem}")))


def test_a_renamed_class_is_found_however_it_is_used():
    source = """
from zoo.heads import Softmax, SoftMax
from zoo import nothing, optimizers
heads.Softmax(heads.SoftMax())
def run(names, cores_of=cores.LSTM, **kinds: cores.Lstm):
    names.nothing, heads.NCE.loss, heads.NCE.losses_of, kinds["heads"].nothing
"""
    expected = {"zoo.heads.SoftMax", "zoo.nothing", "zoo.cores.Lstm", "NCE.losses_of"}
    assert missing(ast.parse(source), {"heads": heads, "cores": cores, "names": heads}) == expected


@pytest.mark.skipif(not shutil.which("make"), reason="needs make")
def test_benchmarks_run_on_after_one_that_fails(tmp_path):
    """`make benchmarks`, with a stand-in for python of which two scripts fail."""
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin" / "python"
    python.write_text(
        f'#!/bin/sh\necho "$*" >> {tmp_path}/ran\n! echo "$*" | grep -qE "cores$|on$"\n'
    )
    python.chmod(0o755)
    (tmp_path / "installed").touch()
    command = ["make", "benchmarks", f"VENV={tmp_path}", "PYTHON=false"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    ran = (tmp_path / "ran").read_text().splitlines()
    scripts = [re.fullmatch(r"-m benchmarks\.(\w+)( --attention)?", line)[1] for line in ran]
    assert scripts[0] == "log_linear" and scripts[-1] == "generation"
    assert {*scripts} <= {path.stem for path in FOLDER.glob("*.py")}
    failed = [line.removeprefix("-m benchmarks.") for line in ran if re.search("cores$|on$", line)]
    assert len(failed) > 2 and done.returncode == 2
    assert f"failed: {', '.join(failed)}\n" in done.stderr
