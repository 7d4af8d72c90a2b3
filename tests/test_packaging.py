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
from zoo import lazy
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


@pytest.mark.slow
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


def test_the_extras_are_those_of_the_package():
    of_module = {"orbax": "orbax-checkpoint", "tensorboardX": "tensorboardx"}
    for name, modules in lazy.EXTRAS.items():
        wanted = names(PROJECT["optional-dependencies"][name])
        assert {of_module.get(module, module) for module in modules} == wanted


def test_packages_of_extras_are_imported_where_their_lack_is_told():
    """Anywhere else, it would be a traceback of whatever was imported first."""
    extras = {module for modules in lazy.EXTRAS.values() for module in modules}
    for path in (ROOT / "zoo").rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        told = {
            inside
            for block in ast.walk(tree)
            if isinstance(block, ast.With)
            and ast.unparse(block.items[0].context_expr) == "lazy.extra()"
            for inside in block.body
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                found = {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found = {node.module.partition(".")[0]}
            else:
                continue
            assert node in told or not found & extras, path


def test_a_package_that_is_not_there_is_named(capsys):
    def main():
        with lazy.extra():
            raise ModuleNotFoundError("No module named 'orbax'", name="orbax.checkpoint")

    said = (
        "orbax is not installed, which this part of zoo needs: "
        "pip install 'zoo-language-models[train]'."
    )
    assert program.run(main) == 2
    assert capsys.readouterr().err == f"error: {said}\n"
    with pytest.raises(ModuleNotFoundError) as raised:
        main()
    assert (str(raised.value), raised.value.name) == (said, "orbax.checkpoint")
    # Modules that no package of ours is are somebody's mistake.
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'zoo\.nothing'$"):
        program.run(lambda: importlib.import_module("zoo.nothing"))
    with pytest.raises(ModuleNotFoundError, match=r"^mine$"), lazy.extra():
        raise ModuleNotFoundError("mine", name="mine")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("runpy.run_path('train.py', run_name='__main__')", "error: "),
        ("runpy.run_path('evaluate.py', run_name='__main__')", "error: "),
        ("runpy.run_module('zoo', run_name='__main__')", "error: "),
        ("from zoo.interop import linen", "flax is"),
        ("from zoo.data import Conllu", "conllu is"),
    ],
)
@pytest.mark.slow
def test_without_the_extras_a_sentence_says_which(source, said):
    """As they are where `pip install zoo-language-models` was all."""
    missing = [module for modules in lazy.EXTRAS.values() for module in modules]
    source = (
        "import importlib.abc, runpy, sys\n"
        "class Missing(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name.partition('.')[0] in {missing}:\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Missing())\n"
        "sys.argv = ['program', '--help']\n" + source
    )
    command = [sys.executable, "-c", source]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    last = done.stderr.splitlines()[-1]
    assert said in last and " not installed, which this part of zoo needs: pip install '" in last
    if said.startswith("error"):
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, done.stderr


def test_the_console_script_is_there():
    module, _, function = PROJECT["scripts"]["zoo"].partition(":")
    assert callable(getattr(importlib.import_module(module), function))
