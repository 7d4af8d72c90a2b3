"""Benchmarks, which few run, import names that exist."""

import ast
import importlib
import importlib.util
import pathlib

import pytest

import benchmarks

FOLDER = pathlib.Path(benchmarks.__path__[0])
OWN = ("zoo", "configs", "tests")


FILES = sorted(FOLDER.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_every_name_that_a_benchmark_imports_exists(path):
    """Of the project: the opponents, such as PyTorch, need not be installed."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom) or not node.module:
            continue
        package = FOLDER.parent.joinpath(*node.module.split("."))
        if package.is_relative_to(FOLDER) and package.is_dir():
            for alias in node.names:
                file = package / alias.name
                assert file.is_dir() or file.with_suffix(".py").exists(), alias.name
        elif node.module.partition(".")[0] in OWN:
            module = importlib.import_module(node.module)
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                assert hasattr(module, alias.name) or importlib.util.find_spec(name), name
