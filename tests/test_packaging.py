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
from zoo.commands import program
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
    others = PROJECT["optional-dependencies"]
    development = others["dev"]
    assert sorted(required) == sorted(sum(others.values(), PROJECT["dependencies"]))
    assert names(development) == {"mypy", "pytest", "pytest-xdist", "ruff"}


def test_the_types_are_packaged():
    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    assert options["package-data"] == {"zoo": ["py.typed"]}
    assert (ROOT / "zoo/py.typed").read_bytes() == b""


def packages_of(folder):
    """The packages whose modules the files of a folder import."""
    modules = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                modules |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                modules.add(node.module.partition(".")[0])
    packages = importlib.metadata.packages_distributions()
    return {
        name.lower().replace("_", "-")
        for module in modules - set(sys.stdlib_module_names) - {"zoo"}
        # Several packages may share a module, as orbax's do: the one that is asked for.
        for name in sorted(packages[module], key=lambda name: name != "orbax-checkpoint")[:1]
    }


def test_zoo_needs_its_dependencies_and_no_others():
    others = PROJECT["optional-dependencies"]
    extras = (others[name] for name in ("flax", "train", "export", "hub"))
    needed = names(sum(extras, PROJECT["dependencies"]))
    needed.remove("flatbuffers")  # which jax.export imports
    assert packages_of(ROOT / "zoo") == needed
    assert names(others["flax"]) == {"flax"}
    rooms = [room for room in (ROOT / "zoo").iterdir() if room.is_dir()]
    assert [room.name for room in rooms if "flax" in packages_of(room)] == ["interop"]


# Rooms that need no package but jax, numpy and optax. Treebanks and tables of data sets are read
# by files of their own.
ALONE = ("arrays", "losses", "lexicon", "networks", "attention", "heads", "cores", "embeddings")


@pytest.mark.parametrize("room", ALONE)
def test_a_head_alone_needs_little(room):
    assert packages_of(ROOT / "zoo" / room) <= names(PROJECT["dependencies"])


def test_importing_heads_imports_no_more_than_they_need():
    """The rooms of commands stay closed, and packages that may not be there are not asked for."""
    source = (
        "import sys, jax, numpy, optax\n"
        "before = set(sys.modules)\n"
        "others = ('flax', 'orbax', 'datasets', 'conllu', 'matplotlib', 'tensorboardX', 'tqdm')\n"
        "sys.modules.update(dict.fromkeys(others))\n"  # whoever imports one gets an ImportError
        "import zoo.heads\n"
        "modules = [m for m in sys.modules if m not in before and sys.modules[m]]\n"
        "rooms = {m.split('.')[1] for m in modules if m.startswith('zoo.')}\n"
        "print(*sorted(rooms))\n"
        "print(len(modules), {m for m in modules if not m.startswith('zoo')})\n"
        "from zoo import embeddings, cores, losses, models, priors\n"
        "from zoo.data import with_background, with_priors\n"
        "words = zoo.Lexicon.from_counts({'the': 3, 'cat': 2})\n"
        "head = zoo.heads.LogLinear(background=priors.NGram(order=2))\n"
        "words = with_priors(words, (priors.TopWords(1),), priors.Unigram())\n"
        "words = with_background(words, head.background, [['the', 'cat']])\n"
        "params = head.init(jax.random.key(0), 4, words)\n"
        "print(params['bias'].shape, len(head.tables(words)['background']))\n"
    )
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rooms, count, shape = done.stdout.splitlines()
    assert not set(rooms.split()) & {"data", "experiment", "training", "runs", "interop", "models"}
    number, _, others = count.partition(" ")
    assert int(number) < 110 and others in ("set()", "{'unicodedata'}")
    assert shape.startswith("(2,) ")


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


def test_a_package_that_commands_need_is_named(capsys):
    def main():
        raise ModuleNotFoundError("No module named 'orbax'", name="orbax.checkpoint")

    assert program.run(main) == 2
    assert capsys.readouterr().err == (
        "error: orbax is not installed, which commands need: "
        "pip install 'zoo-language-models[train]'.\n"
    )
    # Modules that no package of ours is are somebody's mistake.
    with pytest.raises(ModuleNotFoundError):
        program.run(lambda: importlib.import_module("zoo.nothing"))


def test_the_console_script_is_there():
    module, _, function = PROJECT["scripts"]["zoo"].partition(":")
    assert callable(getattr(importlib.import_module(module), function))
