"""What is installed: by `pip install .` what runs, by `make` what tests as well."""

import ast
import datetime
import functools
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

import zoo
from configs import rare_words_log_linear
from zoo import version
from zoo.base import lazy
from zoo.base.trust import user_modules
from zoo.lab.commands import program
from zoo.lab.export import folder
from zoo.lab.runs import provenance

ROOT = pathlib.Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text()


def names(requirements):
    """The packages of requirements, as they are compared: lower case, no underscores."""
    packages = [re.match(r"[\w.-]+", requirement)[0] for requirement in requirements]
    return {name.lower().replace("_", "-") for name in packages}


def test_make_installs_the_dependencies_and_those_for_development():
    required, development = (
        [line for line in (ROOT / file).read_text().splitlines() if not line.startswith("#")]
        for file in ("requirements.txt", "tests/requirements.txt")
    )
    extras = {**PROJECT["optional-dependencies"]}
    assert sorted(["pytest>=9", *development]) == sorted(extras.pop("dev"))
    used = sum(extras.values(), PROJECT["dependencies"])
    assert sorted(required) == sorted(["pytest>=9", *used])
    assert names(development) == {
        "gcp-storage-emulator",
        "ipykernel",
        "kubernetes-validate",
        "mypy",
        "nbclient",
        "nbformat",
        "pandas",
        "playwright",
        "pyright",
        "pytest-xdist",
        "ruff",
    }


def test_make_installs_the_checkout_editable_when_its_packages_change():
    rule = (ROOT / "Makefile").read_text().partition("$(VENV)/installed:")[2].partition("touch")[0]
    assert rule.splitlines()[0].split() == ["requirements.txt", "pyproject.toml", "setup.py"]
    assert "pip install --quiet -r requirements.txt -e .\n" in rule


def test_targets_that_test_need_what_is_for_development():
    text = (ROOT / "Makefile").read_text()
    rule = text.partition("$(VENV)/development:")[2].partition("touch")[0]
    assert rule.splitlines()[0].split() == ["tests/requirements.txt", "$(VENV)/installed"]
    needing = {*re.findall(r"^([\w-]+): \$\(VENV\)/development$", text, re.MULTILINE)}
    assert {"test", "test-all", "lint", "release-check", "notebook"} <= needing
    assert "\nquickstart: $(VENV)/installed\n" in text


def test_the_version_is_in_one_file():
    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    assert PROJECT["dynamic"] == ["version", "readme"] and "version" not in PROJECT
    assert options["dynamic"] == {"version": {"attr": "zoo.version.VERSION"}}
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+)?", version.VERSION)  # as wheels write it
    assert zoo.__version__ == provenance.versions()["zoo"] == version.VERSION
    sources = [*(ROOT / "zoo").rglob("*.py*"), *(ROOT / "configs").rglob("*.py"), ROOT / "setup.py"]
    sources += [ROOT / "pyproject.toml", ROOT / "mkdocs.yml", ROOT / "Dockerfile"]
    written = [
        path.relative_to(ROOT).as_posix()
        for path in sources
        if path.suffix != ".pyc" and version.VERSION in path.read_text(encoding="utf-8")
    ]
    assert written == ["zoo/version.py"]


def test_a_citation_has_the_metadata_of_the_package():
    citation = (ROOT / "CITATION.cff").read_text().splitlines()
    assert f"version: {zoo.__version__}" in citation
    assert f"license: {PROJECT['license']}" in citation
    (author,) = PROJECT["authors"]
    assert f"  - name: {author['name']}" in citation
    assert citation[-len(PROJECT["keywords"]) :] == [f"  - {word}" for word in PROJECT["keywords"]]
    (entry,) = re.findall(r"```bibtex\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    (title,) = (line for line in citation if line.startswith("title: "))
    assert f"{{{zoo.__version__}}}" in entry and author["name"] in entry
    assert re.sub(r"[{}]", "", entry.partition("title = ")[2]).strip() == title[8:-1]


def test_every_page_tells_whether_a_version_is_released():
    """With a new version, this test fails at each place that a release has to change."""
    number, _, development = zoo.__version__.partition(".dev")
    headings = dict(re.findall(r"^## (\S+) \((.*)\)$", CHANGELOG, re.MULTILINE))
    dates = {version: date for version, date in headings.items() if date != "not released yet"}
    assert next(iter(headings)) == number and (number in dates) != bool(development)
    assert all(datetime.date.fromisoformat(date) for date in dates.values())
    pages = {
        name: (ROOT / name).read_text()
        for name in ("README.md", "docs/installation.md", "CITATION.cff")
    }
    (year,) = re.findall(r"year = \{(\d+)\}", pages["README.md"])
    assert not dates or max(dates.values()).startswith(f"{year}-")
    cited = re.findall(r"^date-released: (.*)$", pages["CITATION.cff"], re.MULTILINE)
    assert cited == [date for version, date in dates.items() if version == number]
    for name, text in pages.items():
        assert ("not released yet" in text.lower()) == (not dates), name


def test_pages_name_the_licence_of_the_package():
    name = PROJECT["license"].replace("-", " ")
    readme = (ROOT / "README.md").read_text()
    assert f"![Licence: {name}](" in readme and f"licence-{name.replace(' ', '_')}-" in readme
    assert "Apache License 2.0." in readme
    lines = [line.strip() for line in (ROOT / "LICENSE").read_text().splitlines() if line.strip()]
    assert lines[:2] == ["Apache License", "Version 2.0, January 2004"]


def test_pages_name_the_versions_that_the_package_allows():
    python = PROJECT["requires-python"].removeprefix(">=")
    (jax_range,) = (line for line in PROJECT["dependencies"] if line.startswith("jax>="))
    first, patch, beyond = re.fullmatch(r"jax>=(0\.\d+)(\.\d+)?,<0\.(\d+)", jax_range).groups()
    last = f"0.{int(beyond) - 1}"
    badges = (ROOT / "README.md").read_text().partition("\nA recurrent")[0]
    assert f"![Python {python} or newer](" in badges and f"python-{python}+-" in badges
    assert f"![jax {first} to {last}](" in badges and f"jax-{first}–{last}-" in badges
    assert f"Python {python} or newer and jax {first} to {last}." in CHANGELOG
    installation = (ROOT / "docs/installation.md").read_text()
    assert f"Python {python} or newer and jax from {first}{patch or ''} to {last}," in installation


def test_the_types_are_packaged():
    assert (ROOT / "zoo/py.typed").read_bytes() == b""


def test_setup_alone_names_the_files_of_packages():
    """A table of pyproject.toml replaces setup.py's: the recipes' files would not be installed."""
    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    assert "package-data" not in options


distributions = functools.cache(importlib.metadata.packages_distributions)


def packages_of(folder):
    """The packages whose modules the files of a folder import."""
    modules = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                modules |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                modules.add(node.module.partition(".")[0])
    packages = distributions()
    return {
        name.lower().replace("_", "-")
        for module in modules - set(sys.stdlib_module_names) - {"zoo"}
        # Several packages may share a module, as orbax's do: the one that is asked for.
        for name in sorted(packages[module], key=lambda name: name != "orbax-checkpoint")[:1]
    }


@pytest.mark.slow
def test_zoo_needs_its_dependencies_and_no_others():
    extras = PROJECT["optional-dependencies"]
    needed_extras = (
        extras[name] for name in ("flax", "train", "export", "hub", "bucket", "subwords")
    )
    needed = names(sum(needed_extras, PROJECT["dependencies"]))
    assert packages_of(ROOT / "zoo") == needed
    assert names(extras["flax"]) == {"flax"}
    rooms = [room for room in (ROOT / "zoo").iterdir() if room.is_dir()]
    assert [room.name for room in rooms if "flax" in packages_of(room)] == ["interop"]


# Rooms that need no package but jax, numpy and optax. Treebanks and tables of data sets are read
# by files of their own.
INDEPENDENT_ROOMS = ("base/arrays", "losses", "lexicon", "layers", "heads")


@pytest.mark.parametrize("room", INDEPENDENT_ROOMS)
def test_a_head_alone_needs_little(room):
    packages = packages_of(ROOT / "zoo" / room)
    assert packages and packages <= names(PROJECT["dependencies"])


@pytest.mark.parametrize("package", ["zoo", "zoo.priors"])
def test_names_that_are_imported_when_asked_for(package):
    """Type checkers and programs read the stub, `from zoo import *` the list."""
    module = importlib.import_module(package)
    stub = pathlib.Path(module.__file__).with_suffix(".pyi")
    tree = ast.parse(stub.read_text(encoding="utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    assert imports
    for imported in imports:
        for alias in imported.names:
            assert alias.name in module.__all__ and alias.name in dir(module)
            member = getattr(importlib.import_module(imported.module), alias.name)
            assert getattr(module, alias.name) is member
    names = {alias.name for imported in imports for alias in imported.names}
    assert names == {*module.__all__} - {"__version__"}
    with pytest.raises(AttributeError, match=rf"module '{package}' has no attribute 'nothing'"):
        module.nothing  # noqa: B018


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
        "head = zoo.heads.LogLinear(background=priors.KneserNey(order=2))\n"
        "words = with_priors(words, (priors.TopWords(1),), priors.Unigram())\n"
        "words = with_background(words, head.background, [['the', 'cat']])\n"
        "params = head.init(jax.random.key(0), 4, words)\n"
        "print(params['bias'].shape, len(head.tables(words)['background']))\n"
    )
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rooms, count, shape = done.stdout.splitlines()
    assert not set(rooms.split()) & {"data", "experiment", "interop", "lab", "models"}
    number, _, foreign_modules = count.partition(" ")
    assert int(number) < 110 and foreign_modules in ("set()", "{'unicodedata'}")
    assert shape.startswith("(2,) ")


def folders(root):
    """The dotted names of the folders below one that hold Python."""
    packages = {path.parent.relative_to(ROOT) for path in (ROOT / root).rglob("*.py")}
    return {".".join(path.parts) for path in packages}


def test_every_folder_is_a_package_that_git_keeps():
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    for name in folders("zoo") | folders("configs"):
        assert (ROOT / name.replace(".", "/") / "__init__.py").is_file(), name
        assert f"{name.rpartition('.')[2]}/" not in ignored, name


def test_everything_is_installed_and_recipes_within_zoo(monkeypatch):
    setuptools = pytest.importorskip("setuptools")
    setup_options = {}
    monkeypatch.setattr(setuptools, "setup", lambda **options: setup_options.update(options))
    monkeypatch.chdir(ROOT)
    runpy.run_path("setup.py")
    recipes = {f"zoo.{name}" for name in folders("configs")}
    assert sorted(setup_options["packages"]) == sorted(folders("zoo") | recipes)
    assert setup_options["package_dir"] == {"zoo.configs": "configs"}
    data = [path for path in (ROOT / "configs").rglob("*.*") if path.suffix not in (".py", ".pyc")]
    patterns = setup_options["package_data"]["zoo.configs"]
    assert {path.parent for path in data} == {ROOT / "configs"}
    assert all(any(path.match(pattern) for pattern in patterns) for path in data)
    data_files = {
        path for path in (ROOT / "zoo").rglob("*.*") if path.suffix not in (".py", ".pyc")
    }
    packaged_files = {
        ROOT / package.replace(".", "/") / name
        for package, names in setup_options["package_data"].items()
        for name in names
        if package != "zoo.configs"
    }
    assert data_files == packaged_files
    description = setup_options["long_description"]
    for dead in ("<", "](docs", "](CHANGELOG", "](examples"):
        assert dead not in description.partition("```python")[0], dead
    assert "](docs" not in description and "![Licence: Apache 2.0](https://" in description
    assert "(extras, accelerators, wheels)" in description and "| softmax | 82.4 |" in description
    # tests/release.py installs it so: packages in their places, found on Python's path
    monkeypatch.setattr(sys, "argv", ["setup.py", "editable_wheel"])
    runpy.run_path("setup.py")
    assert sorted(setup_options["packages"]) == sorted(folders("zoo"))
    assert setup_options["package_dir"] == {"": "."}


@pytest.mark.slow
def test_recipes_within_zoo_are_those_of_a_checkout(tmp_path):
    """As they lie where zoo was installed, and from a folder with a `configs` of its own."""
    site, working_folder = tmp_path / "site", tmp_path / "here"
    leave_out = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "zoo", site / "zoo", ignore=leave_out)
    shutil.copytree(ROOT / "configs", site / "zoo" / "configs", ignore=leave_out)
    (working_folder / "configs").mkdir(parents=True)
    (working_folder / "configs" / "mine.py").write_text("raise SystemExit('not this one')\n")
    source = (
        "from zoo import configuration as recipes\n"
        "from zoo.sources import files\n"
        "from zoo.base.trust import user_modules\n"
        "print(user_modules.load('configs.rare_words_log_linear').shape('Word'))\n"
        "print(files.find('configs/countries.tsv'))\n"
        "configs = user_modules.configs()\n"
        "print(configs.load('rare_words_open') and configs.FOLDER)\n"
        "import zoo.configs.ptb\n"
        "print(zoo.configs is configs)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(site)}
    command = [sys.executable, "-c", source]
    done = subprocess.run(
        command, cwd=working_folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    inside = site / "zoo" / "configs"
    shape = repr(rare_words_log_linear.shape("Word"))
    assert done.stdout.splitlines() == [
        *(shape, str(inside / "countries.tsv"), str(inside)),
        "True",
    ]


def test_what_is_no_recipe_is_not_taken_for_one():
    assert user_modules.configs_folder() == ROOT / "configs"
    assert user_modules.has_config("configs") and user_modules.has_config("configs.ptb_nce")
    assert not user_modules.has_config("configs.mine") and not user_modules.has_config("ptb_nce")
    assert user_modules.config_file("configs/countries.tsv") == ROOT / "configs" / "countries.tsv"
    for path in ("configs", "configs/no.tsv", "configs/../pyproject.toml", "countries.tsv", ""):
        assert user_modules.config_file(path) is None
    assert user_modules.config_file("/configs/countries.tsv") is None


def test_the_extras_are_those_of_the_package():
    packages_by_extra = {
        name: names(requirements) for name, requirements in PROJECT["optional-dependencies"].items()
    }
    del packages_by_extra["dev"]
    packages = importlib.metadata.packages_distributions()
    distributions_by_extra = {
        name: {distribution for module in modules for distribution in names(packages[module])}
        for name, modules in lazy.EXTRAS.items()
    }
    assert distributions_by_extra.keys() == packages_by_extra.keys()
    for name, requirements in packages_by_extra.items():  # several packages may share a module
        assert requirements <= distributions_by_extra[name], name
        assert len(lazy.EXTRAS[name]) == len(requirements), name


@pytest.mark.slow
def test_packages_of_extras_are_imported_where_their_lack_is_told():
    """Anywhere else, it would be a traceback of whatever was imported first."""
    extras = {module for modules in lazy.EXTRAS.values() for module in modules}
    for path in {*(ROOT / "zoo").rglob("*.py")} - {folder.standalone_file()}:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        guarded = {
            inside
            for block in ast.walk(tree)
            if isinstance(block, ast.With)
            and ast.unparse(block.items[0].context_expr) == "lazy.extra()"
            for inside in block.body
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                imports = {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                imports = {node.module.partition(".")[0]}
            else:
                continue
            assert node in guarded or not imports & extras, path


def test_a_package_that_is_not_there_is_named(capsys):
    def main():
        with lazy.extra():
            raise ModuleNotFoundError("No module named 'flatbuffers'", name="flatbuffers.table")

    message = (
        "flatbuffers is not installed, which belongs to the extra 'export' of zoo: pip install "
        "'.[export]' in the checkout, or 'zoo-language-models[export]' where Zoo is installed, "
        "installs all of it."
    )
    assert program.run(main) == 2
    assert capsys.readouterr().err == f"error: {message}\n"
    with pytest.raises(ModuleNotFoundError) as raised:
        main()
    assert (str(raised.value), raised.value.name) == (message, "flatbuffers.table")
    # Modules that no package of ours is are somebody's mistake.
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'zoo\.nothing'$"):
        program.run(lambda: importlib.import_module("zoo.nothing"))
    with pytest.raises(ModuleNotFoundError, match=r"^mine$"), lazy.extra():
        raise ModuleNotFoundError("mine", name="mine")


def installed_bare():
    """The modules of the packages that `pip install .` brings: the dependencies, and theirs."""
    todo, installed = names(PROJECT["dependencies"]), set()
    while todo:
        package = todo.pop()
        installed.add(package)
        required = importlib.metadata.requires(package) or []
        todo |= names(line for line in required if "extra ==" not in line) - installed
    modules = importlib.metadata.packages_distributions()
    return {module for module, packages in modules.items() if names(packages) & installed}


def bare(source, *extras):
    """A process in which no package can be imported but those of `installed_bare`, and `extras`."""
    absent = {*importlib.metadata.packages_distributions()} - installed_bare() - {"zoo", *extras}
    source = (
        "import importlib.abc, runpy, sys\n"
        f"absent = {absent}\n"
        "class Missing(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in absent:\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Missing())\n"
        "def program(name, *arguments):\n"
        "    sys.argv = [name, *arguments]\n"
        "    run = runpy.run_path if name.endswith('.py') else runpy.run_module\n"
        "    run(name, run_name='__main__')\n" + source
    )
    command = [sys.executable, "-c", source]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


SCORE = "import zoo; print(zoo.load('models/micro').score(['la souleur'])[0].log_prob)"


@pytest.mark.parametrize(
    ("source", "package", "extras"),
    [
        ("program('train.py', '--config', 'micro_softmax', DIR)", "orbax", ""),
        ("program('zoo', 'export', 'models/micro', DIR)", "safetensors", ""),
        ("program('zoo', 'pull', 'a/b', DIR)", "huggingface_hub", ""),
        ("program('zoo', 'score', 'models/micro', 'README.md')", "tqdm", "safetensors"),
        ("program('zoo', 'compare', 'models/micro', '--plot', 'a.svg')", "matplotlib", ""),
        ("from zoo.interop import linen", "flax", ""),
        ("from zoo.data import Conllu; Conllu(CONLLU, CONLLU).read('train')", "conllu", ""),
        (SCORE, "safetensors", ""),
    ],
)
@pytest.mark.slow
def test_after_a_bare_install_a_sentence_names_what_is_missing(source, package, extras, tmp_path):
    treebank = tmp_path / "bank.conllu"
    treebank.write_text("1\tle\tle\tDET\t_\t_\t0\troot\t_\t_\n\n")
    for name, path in (("DIR", tmp_path / "new"), ("CONLLU", treebank)):
        source = source.replace(name, repr(str(path)))
    done = bare(source, *extras.split())
    (extra,) = (extra for extra, modules in lazy.EXTRAS.items() if package in modules)
    message = (
        f"{package} is not installed, which belongs to the extra {extra!r} of zoo: pip install "
        f"'.[{extra}]' in the checkout, or '{PROJECT['name']}[{extra}]' where Zoo is installed, "
        "installs all of it."
    )
    assert done.stderr.splitlines()[-1].endswith(message), done.stderr
    if source.startswith("program"):
        assert (done.returncode, done.stderr) == (2, f"error: {message}\n")
    assert not (tmp_path / "new").exists()


@pytest.mark.slow
def test_after_a_bare_install_every_module_is_imported_or_names_all_it_needs():
    source = (
        "import importlib, pkgutil, zoo\n"
        "for module in pkgutil.walk_packages(zoo.__path__, 'zoo.'):\n"
        "    try:\n"
        "        importlib.import_module(module.name)\n"
        "    except ModuleNotFoundError as error:\n"
        "        print(error)\n"
    )
    done = bare(f"sys.path.insert(0, '')\n{source}")
    assert done.returncode == 0, done.stderr
    messages = done.stdout.splitlines()
    # In the module that exports have, which does not need zoo.
    export = r"(flatbuffers|safetensors) is not installed: pip install jax flatbuffers safetensors"
    extras = "|".join(lazy.EXTRAS)
    place = rf"'{PROJECT['name']}\[\2\]' where Zoo is installed"
    install = rf"pip install '\.\[\2\]' in the checkout, or {place}, installs all of it\."
    sentence = rf"{export}|.* belongs to the extra '({extras})' of zoo: {install}"
    assert len(messages) > 10
    assert not [line for line in messages if not re.fullmatch(sentence, line)]


@pytest.mark.parametrize(
    ("source", "printed"),
    [
        ("program('zoo', '--help')", "fetches free corpora"),
        ("program('train.py', '--help')", "--coordinator"),
        ("program('evaluate.py', '--help')", "--minimal-pairs"),
        ("program('zoo', 'train', '--list')", "micro_softmax"),
        ("program('zoo', 'words', 'models/micro')", '"dalmaibait"'),
        ("from zoo.data import Conllu; print(Conllu)", "Conllu"),
    ],
)
@pytest.mark.slow
def test_after_a_bare_install_what_needs_no_more_works(source, printed):
    # Parameters of exports are read with safetensors.
    done = bare(source, *["safetensors"] * ("models/" in source))
    assert done.returncode == 0, done.stderr
    assert printed in done.stdout


@pytest.mark.slow
def test_an_export_needs_safetensors_beside_a_bare_install():
    done = bare(SCORE, "safetensors")
    assert done.returncode == 0, done.stderr
    (expected,) = zoo.load(ROOT / "models/micro").score(["la souleur"])
    assert float(done.stdout) == pytest.approx(expected.log_prob, rel=1e-5)


def test_the_console_script_is_there():
    module, _, function = PROJECT["scripts"]["zoo"].partition(":")
    assert callable(getattr(importlib.import_module(module), function))
