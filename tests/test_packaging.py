"""What is installed: by `pip install .` what runs, by `make` what tests as well."""

import ast
import importlib.metadata
import pathlib
import re
import sys
import tomllib

ROOT = pathlib.Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def names(requirements):
    """The packages of requirements, as they are compared: lower case, no underscores."""
    found = [re.match(r"[\w.-]+", requirement)[0] for requirement in requirements]
    return {name.lower().replace("_", "-") for name in found}


def test_make_installs_the_dependencies_and_those_for_development():
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    required = [line for line in lines if line and not line.startswith("#")]
    development = PROJECT["optional-dependencies"]["dev"]
    assert sorted(required) == sorted(PROJECT["dependencies"] + development)
    assert names(development) == {"mypy", "pytest", "pytest-xdist", "ruff"}


def test_the_types_are_packaged():
    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    assert options["package-data"] == {"zoo": ["py.typed"]}
    assert (ROOT / "zoo/py.typed").read_bytes() == b""


def test_zoo_needs_its_dependencies_and_no_others():
    modules = set()
    for path in (ROOT / "zoo").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                modules |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                modules.add(node.module.partition(".")[0])
    packages = importlib.metadata.packages_distributions()
    imported = {
        name.lower().replace("_", "-")
        for module in modules - set(sys.stdlib_module_names) - {"zoo"}
        # Several packages may share a module, as orbax's do: the one that is asked for.
        for name in sorted(packages[module], key=lambda name: name != "orbax-checkpoint")[:1]
    }
    # Passports give flax's version, and its modules hold heads: nothing else need import it.
    assert imported | {"flax"} == names(PROJECT["dependencies"])
