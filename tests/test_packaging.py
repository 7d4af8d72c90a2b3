"""What is installed: by `pip install .` what runs, by `make` what tests as well."""

import ast
import importlib
import importlib.metadata
import os
import pathlib
import re
import runpy
import shutil
import subprocess
import sys
import tomllib

import pytest

from configs import rare_words_log_linear
from zoo.trust import shipped

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


def folders(of):
    """The dotted names of the folders below one that hold Python."""
    found = {path.parent.relative_to(ROOT) for path in (ROOT / of).rglob("*.py")}
    return {".".join(path.parts) for path in found}


def test_every_folder_is_a_package_that_git_keeps():
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    for name in folders("zoo") | folders("configs"):
        assert (ROOT / name.replace(".", "/") / "__init__.py").is_file(), name
        assert f"{name.rpartition('.')[2]}/" not in ignored, name


def test_everything_is_installed_and_recipes_within_zoo(monkeypatch):
    setuptools = pytest.importorskip("setuptools")
    given = {}
    monkeypatch.setattr(setuptools, "setup", lambda **options: given.update(options))
    monkeypatch.chdir(ROOT)
    runpy.run_path("setup.py")
    recipes = {f"zoo.{name}" for name in folders("configs")}
    assert sorted(given["packages"]) == sorted(folders("zoo") | recipes)
    assert given["package_dir"] == {"zoo.configs": "configs"}
    data = [path for path in (ROOT / "configs").rglob("*.*") if path.suffix not in (".py", ".pyc")]
    patterns = given["package_data"]["zoo.configs"]
    assert {path.parent for path in data} == {ROOT / "configs"}
    assert all(any(path.match(pattern) for pattern in patterns) for path in data)


def test_recipes_within_zoo_are_those_of_a_checkout(tmp_path):
    """As they lie where zoo was installed, and from a folder with a `configs` of its own."""
    site, here = tmp_path / "site", tmp_path / "here"
    leave_out = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "zoo", site / "zoo", ignore=leave_out)
    shutil.copytree(ROOT / "configs", site / "zoo" / "configs", ignore=leave_out)
    (here / "configs").mkdir(parents=True)
    (here / "configs" / "mine.py").write_text("raise SystemExit('not this one')\n")
    source = (
        "from zoo import recipes\n"
        "from zoo.sources import files\n"
        "from zoo.trust import shipped, user_modules\n"
        "print(user_modules.load('configs.rare_words_log_linear').shape('Word'))\n"
        "print(files.find('configs/countries.tsv'))\n"
        "print(shipped.configs().load('rare_words_open') and shipped.configs().FOLDER)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(site)}
    command = [sys.executable, "-c", source]
    done = subprocess.run(command, cwd=here, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    inside = site / "zoo" / "configs"
    shape = repr(rare_words_log_linear.shape("Word"))
    assert done.stdout.splitlines() == [shape, str(inside / "countries.tsv"), str(inside)]


def test_what_is_no_recipe_is_not_taken_for_one():
    assert shipped.folder() == ROOT / "configs"
    assert shipped.has("configs") and shipped.has("configs.ptb_nce")
    assert not shipped.has("configs.mine") and not shipped.has("ptb_nce")
    assert shipped.file("configs/countries.tsv") == ROOT / "configs" / "countries.tsv"
    for path in ("configs", "configs/no.tsv", "configs/../pyproject.toml", "countries.tsv", ""):
        assert shipped.file(path) is None
    assert shipped.file("/configs/countries.tsv") is None


def test_the_console_script_is_there():
    module, _, function = PROJECT["scripts"]["zoo"].partition(":")
    assert callable(getattr(importlib.import_module(module), function))
