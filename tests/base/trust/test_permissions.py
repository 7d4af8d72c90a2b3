"""Runs that somebody else made: judged without doing what only their recipes ask for."""

import dataclasses
import json
import logging
import os
import pathlib
import subprocess
import sys

import pytest

import configs
import evaluate
import train
import zoo
from tests.lab.training import small
from tests.marks import slow
from zoo import __main__ as commands
from zoo import configuration, priors
from zoo.base.trust import permissions, user_modules
from zoo.data import Text
from zoo.data.vocabulary import Vocabulary
from zoo.errors import UserError
from zoo.lab.adaptation import Trained, WithWordsOf
from zoo.lab.commands import program
from zoo.lab.evaluation.run import Run
from zoo.lab.runs import own_runs
from zoo.lab.runs.workdir import Workdir
from zoo.lab.training import warm_start
from zoo.sources import files

ROOT = pathlib.Path(program.__file__).parents[3]
# Says on disk that it was run.
PLANTED = """import dataclasses, pathlib
from zoo.heads import Softmax
from tests.marks import slow

pathlib.Path({mark!r}).write_text("run")

@dataclasses.dataclass(frozen=True)
class Head(Softmax):
    pass

def suffix(word):
    return {{"Suffix:" + word[-1]: 1.0}}
"""


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """As in a new process: nothing named, nothing closed."""
    monkeypatch.setattr(permissions, "_closed", {})
    monkeypatch.setattr(permissions, "_user_names", set())
    monkeypatch.setattr(permissions, "_paths_are_open", False)
    monkeypatch.setattr(user_modules, "_folders", [])
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    monkeypatch.delenv("ZOO_DATA", raising=False)
    for name in ("planted", "my_features", "beside_config"):
        sys.modules.pop(name, None)


def is_quiet(errors):
    """Whether nothing is told but that these small runs never trained <unk>."""
    return all("which the training text never had" in line for line in errors.splitlines())


@pytest.fixture
def cwd(tmp_path, monkeypatch):
    """A working folder."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def strangers(workdir, change=lambda recipe: None):
    """The run as somebody else's: its recipe is one that nobody made here."""
    path = pathlib.Path(workdir) / "experiment.json"
    recipe = json.loads(path.read_text())
    recipe["training"]["seed"] += 1
    change(recipe)
    path.write_text(json.dumps(recipe))
    return pathlib.Path(workdir)


def plant(folder, name="planted"):
    """A module in a folder; gives the file that is there once the module has been run."""
    mark = folder / f"{name}_was_run"
    (folder / f"{name}.py").write_text(PLANTED.format(mark=str(mark)))
    return mark


def with_head(name):
    return lambda recipe: recipe["model"]["head"].update(component=name)


@pytest.mark.parametrize("program", ["evaluate", *slow("score", "compare", "generate")])
def test_a_planted_module_is_not_run(call, workdir, cwd, program):
    (cwd / "text.txt").write_text("le chat\n")
    call(evaluate, workdir, "--split", "test")
    strangers(workdir, with_head("planted:Head"))
    marks = [plant(cwd), plant(workdir)]
    arguments = {
        "evaluate": (evaluate, workdir),
        "score": (commands, "score", workdir, "text.txt"),
        "compare": (commands, "compare", workdir),  # reads results alone
        "generate": (commands, "generate", workdir),
    }[program]
    code, _, errors = call(*arguments)
    if program != "compare":
        assert code == 2 and "add --trust planted:Head if you trust it" in errors
    assert not any(mark.exists() for mark in marks)
    assert "planted" not in sys.modules and "" not in sys.path


@pytest.mark.slow
def test_a_planted_module_is_not_run_by_the_script_either(workdir, cwd):
    """Its working folder is the stranger's, with modules that other packages try to import."""
    strangers(workdir, with_head("planted:Head"))
    marks = [plant(cwd), plant(workdir), *(plant(cwd, name) for name in ("torch", "cupy"))]
    finished = subprocess.run(
        [sys.executable, ROOT / "evaluate.py", workdir],
        env={**os.environ, "PYTHONPATH": ""},
        capture_output=True,
        text=True,
    )
    assert finished.returncode == 2
    assert finished.stderr.startswith(f"error: {workdir}/experiment.json: the saved recipe has")
    assert not any(mark.exists() for mark in marks)


def test_a_component_that_the_user_names_is_imported(call, workdir, cwd):
    mark = plant(cwd)
    strangers(workdir, with_head("planted:Head"))
    options = ("--split", "test", "--trust", "planted:Head", "--trust-paths")
    code, output, errors = call(evaluate, workdir, *options)
    assert code == 0 and is_quiet(errors) and "test: log-perplexity" in output
    assert mark.exists()


@pytest.mark.parametrize(
    "name",
    [
        "os:system",
        "subprocess:Popen",
        "zoo.heads.head:Head",
        "zoo.lab.commands:run",
        "builtins:exec",
    ],
)
def test_what_is_no_component_is_not_made(call, workdir, name):
    strangers(workdir, with_head(name))
    code, _, errors = call(evaluate, workdir)
    assert code == 2 and name in errors and errors.count("\n") == 1
    code, _, errors = call(evaluate, workdir, "--trust", name)
    assert code == 2 and name in errors


@pytest.fixture(scope="module")
def trained_on_a_function(tmp_path_factory):
    """A run whose words have features that a function gave, and files with relative names."""
    folder = tmp_path_factory.mktemp("function")
    (folder / "train.txt").write_text("aa ba\nab bb aa\n")
    plant(folder, "my_features")
    vocabulary = Vocabulary(features=(priors.WordFunction("my_features:suffix"),))
    recipe = small.experiment(small.LOG_LINEAR, vocabulary=vocabulary, epochs=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.syspath_prepend(str(folder))
        return small.run_in(
            folder / "run", dataclasses.replace(recipe, data=Text("train.txt", "train.txt"))
        )


@pytest.fixture
def with_function(trained_on_a_function, cwd):
    """A copy of it in the working folder, as somebody else's, and its text."""
    copy(trained_on_a_function, cwd / "run")
    (cwd / "train.txt").write_text("aa ba\nab bb aa\n")
    (cwd / "words.txt").write_text("aa\nzb\n")
    return strangers(cwd / "run")


def stored_names(recipe):
    """Writes a recipe as somebody else's record, the config theirs.jsonl:run."""
    line = {"run": "run", "experiment": recipe, "results": {}}
    pathlib.Path("theirs.jsonl").write_text(json.dumps(line) + "\n")


def copy(folder, to):
    subprocess.run(["cp", "-r", str(folder), str(to)], check=True)


def test_a_run_with_a_function_is_judged_without_it(call, with_function, cwd):
    mark = plant(cwd, "my_features")
    code, output, errors = call(evaluate, "run")
    assert code == 0 and is_quiet(errors) and "validation: log-perplexity" in output
    assert not mark.exists() and "my_features" not in sys.modules


def test_a_function_is_called_for_new_words_if_the_user_names_it(call, with_function, cwd):
    mark = plant(cwd, "my_features")
    code, _, errors = call(evaluate, "run", "--lexicon", "words.txt")
    assert code == 2 and not mark.exists()
    assert errors == (
        "error: run was not trained here by you, and needs the function my_features:suffix, which "
        "would be run: look at it, and add --trust my_features:suffix if you trust it.\n"
    )
    options = ("--lexicon", "words.txt", "--trust", "my_features:suffix")
    code, _, errors = call(evaluate, "run", *options)
    assert code == 0 and is_quiet(errors) and mark.exists()


@pytest.mark.parametrize("name", ["subprocess:getoutput", "os:system", "planted:suffix"])
def test_a_strangers_function_is_never_called_unasked(call, with_function, cwd, name):
    def change(recipe):
        recipe["vocabulary"]["features"][0]["function"] = name

    marks = [plant(cwd), cwd / "shell_was_run"]
    strangers(with_function, change)
    (cwd / "words.txt").write_text("aa\ntouch${IFS}shell_was_run\n")
    for options in ((), ("--lexicon", "words.txt", "--spread-unknown"), ("--lexicon", "words.txt")):
        code, _, errors = call(evaluate, "run", *options)
        assert code == (2 if options else 0)
        assert not options or f"add --trust {name}" in errors
    code, _, errors = call(commands, "score", "run", "train.txt", "--lexicon", "words.txt")
    assert code == 2 and f"add --trust {name}" in errors
    assert not any(mark.exists() for mark in marks)


def test_a_function_of_ones_own_run_needs_no_flag(call, trained_on_a_function, cwd):
    """It is found where it was when the run was trained, wherever the user stands now."""
    planted = plant(cwd, "my_features")  # another of this name, where one happens to stand
    (cwd / "train.txt").write_text("aa ba\nab bb aa\n")
    (cwd / "words.txt").write_text("aa\nzb\n")
    copy(trained_on_a_function, cwd / "copied")
    code, _, errors = call(evaluate, "copied", "--lexicon", "words.txt")
    assert code == 0 and is_quiet(errors) and not planted.exists()


@pytest.fixture
def secret(cwd, tmp_path):
    """A text outside of the working folder, to which links lead from within."""
    (tmp_path / "far").mkdir()
    path = tmp_path / "far" / "secret.txt"
    path.write_text("le secret\n")
    for folder in ("texts", "texts_of_mine"):
        (cwd / folder).mkdir()
        (cwd / folder / "near.txt").write_text("le chat\n")
    for link in ("linked.txt", "texts/linked.txt"):
        (cwd / link).symlink_to(path)
    (cwd / "link").symlink_to(tmp_path / "far")
    return path


@pytest.mark.parametrize(
    "path",
    [
        *("/etc/passwd", "../far/secret.txt", "linked.txt", "~/x.txt", "hub:a:b"),
        *("texts", "texts/*.txt", "/etc/host*", "link/*.txt"),
    ],
)
def test_a_path_that_leads_elsewhere_is_not_read_unasked(call, workdir, cwd, secret, path):
    range_of_path = path if "*" in path or path == "texts" else f"{path}[:2]"
    strangers(workdir, lambda recipe: recipe["data"].update(tests=[range_of_path]))
    code, output, errors = call(evaluate, workdir, "--split", "test")
    assert (code, output) == (2, "") and errors.count("\n") == 1
    assert f"its recipe names {path}, which is not below" in errors and "--trust-paths" in errors
    assert not (workdir / "results").exists()
    # What the user names is read.
    assert call(evaluate, workdir, "--data", "texts_of_mine/near.txt")[0] == 0
    if path.endswith("secret.txt") or path == "linked.txt":
        assert call(evaluate, workdir, "--data", path)[0] == 0
        permissions._user_names.clear()
        options = ("--split", "test", "--trust-paths")
        assert call(evaluate, workdir, *options)[0] == 0


@pytest.mark.parametrize("path", ["texts_of_mine", "texts_of_mine/*.txt"])
def test_folders_and_patterns_of_ones_own_are_read(call, workdir, secret, path):
    strangers(workdir, lambda recipe: recipe["data"].update(tests=[path]))
    assert call(evaluate, workdir, "--split", "test")[0] == 0


def test_relative_paths_are_read_below_the_working_folder_and_the_data(workdir, cwd, monkeypatch):
    data = cwd.parent / "data"
    data.mkdir()
    (cwd.parent / "corpus.txt").write_text("le chat dort\n")
    (data / "far.txt").symlink_to(cwd.parent / "corpus.txt")  # a link of the user's own
    (cwd / "near.txt").write_text("le chat\n")
    (cwd / "data").symlink_to(data)
    strangers(
        workdir, lambda recipe: recipe["data"].update(tests=["far.txt", "near.txt", "data/x"])
    )
    monkeypatch.setenv("ZOO_DATA", str(data))
    run = Run.load(workdir)
    assert run.read("test1").sentences == [["le", "chat", "dort"]]
    assert run.read("test2").sentences == [["le", "chat"]]
    (data / "x").write_text("chat\n")
    assert run.read("test3").sentences == [["chat"]]  # by way of the working folder


def test_ones_made_here_are_read_as_they_are(trained):
    """Its paths are absolute; so are those of a copy of it."""
    assert files.find(Workdir(trained).experiment().data.train).is_absolute()
    assert Run.load(trained).read("test").sentences


def test_whose_run_it_is_depends_on_the_whole_recipe(workdir):
    recipe = json.loads((workdir / "experiment.json").read_text())
    assert own_runs.permitted_modules(recipe) is not None
    assert own_runs.permitted_modules(recipe | {"init_from": "x"}) is None
    strangers(workdir)
    with pytest.raises(UserError, match="was not trained here by you"):
        Run.load(workdir).read("test")
    # Training it further with one's own config makes it one's own.
    experiment = Workdir(workdir).experiment()
    permissions._closed.clear()  # a new process, with a config that names the same
    Workdir(workdir).claim(experiment)
    permissions._user_names.clear()
    assert Run.load(workdir).read("test").sentences


@pytest.mark.parametrize("component", [Trained, WithWordsOf])
def test_a_strangers_background_elsewhere_is_not_read(workdir, trained, component):
    permissions.close({str(trained)}, "runs/theirs")
    with pytest.raises(UserError, match=rf"runs/theirs .* names {trained}, which is not below"):
        if component is Trained:
            Trained(str(trained)).prepare(None, {})
        else:
            WithWordsOf(small.RandomWords(), str(trained)).lexicon_entries()


def test_a_run_that_one_starts_from_is_not_run(workdir, cwd):
    mark = plant(cwd)
    strangers(workdir, with_head("planted:Head"))
    with pytest.raises(UserError, match=r"^init_from: .*add --trust planted:Head"):
        warm_start.read(str(workdir), small.MODEL, ())
    assert not mark.exists()


def with_texts(field, path):
    return lambda recipe: recipe["data"].update({field: [path] if field == "tests" else path})


FUNCTIONS = ("subprocess:getoutput", "os:system", "planted:suffix", "builtins:exec", "posix:system")
PATHS = (
    "{far}/secret.txt",
    "../secret.txt",
    "linked.txt",
    "folder/*.txt",
    "saved",
    "encoded",
    "hub:a:b",
    "gs://a/b",
    "x[/../../secret.txt[:2]",
)
WAYS_IN = {
    **dict.fromkeys(FUNCTIONS),
    **{
        f"{field} {path}": with_texts(field, path)
        for field in ("train", "validation")
        for path in PATHS
    },
    "component": with_head("planted:Head"),
    "init_from": lambda recipe: recipe.update(init_from="{far}/run"),
    "init_from above": lambda recipe: recipe.update(init_from="../run"),
    "init_from in a bucket": lambda recipe: recipe.update(init_from="gs://a/run"),
}


@pytest.mark.parametrize("door", ["record", "json"])
@pytest.mark.parametrize("way", WAYS_IN)
def test_training_a_strangers_recipe_opens_nothing(call, with_function, cwd, way, door):
    far = cwd.parent
    (far / "secret.txt").write_text("id>PWNED\nle secret\n")
    copy(with_function, far / "run")
    for folder in ("folder", "saved", "encoded", "x["):
        (cwd / folder).mkdir()
    for link in ("linked.txt", "folder/linked.txt", "saved/secret.arrow", "encoded/types.txt"):
        (cwd / link).symlink_to(far / "secret.txt")
    (cwd / "saved" / "state.json").write_text('{"_data_files": [{"filename": "secret.arrow"}]}')
    (cwd / "encoded" / "encoded.json").write_text("{}")
    (cwd / "train.txt").write_text("touch${IFS}PWNED ba\n")
    mark = plant(cwd)
    recipe = json.loads((with_function / "experiment.json").read_text())
    if way in FUNCTIONS:
        recipe["vocabulary"]["features"][0]["function"] = way
    else:
        recipe["vocabulary"]["features"] = []
        WAYS_IN[way](recipe)
    recipe = json.loads(json.dumps(recipe).replace("{far}", str(far)))
    stored_names(recipe)
    for _ in range(2):  # the first try changes nothing for the second
        if door == "json":
            with pytest.raises(UserError, match="add --trust"):
                zoo.train(configuration.from_json(recipe), cwd / "out")
            continue
        code, _, errors = call(train, "--config", "theirs.jsonl:run", "out")
        assert code == 2 and errors.count("\n") == 1 and "add --trust" in errors
        assert "theirs.jsonl:run" in errors or "component" in way
    assert not mark.exists() and not (cwd / "PWNED").exists() and "planted" not in sys.modules
    assert not (cwd / "out").exists() and own_runs.permitted_modules(recipe) is None


def test_a_strangers_recipe_is_trained_and_stays_a_strangers(call, with_function, cwd):
    recipe = json.loads((with_function / "experiment.json").read_text())
    recipe["vocabulary"]["features"] = []
    recipe["model"] = configuration.to_json(small.MODEL)
    stored_names(recipe)
    code, _, errors = call(train, "--config", "theirs.jsonl:run", "out")
    assert code == 0, errors
    assert own_runs.permitted_modules(recipe) is None
    assert call(evaluate, "out")[0] == 0


@pytest.mark.parametrize("door", [*slow("record"), "json"])
def test_a_recipe_that_the_user_permits_is_the_users_own(call, with_function, cwd, door):
    plant(cwd, "my_features")
    recipe = json.loads((with_function / "experiment.json").read_text())
    stored_names(recipe)
    if door == "json":
        permissions.open_names(permissions.names_in(recipe))
        zoo.train(configuration.from_json(recipe), "out", log=logging.info)
    else:
        options = ("--trust", "my_features:suffix", "--trust-paths")
        assert call(train, "--config", "theirs.jsonl:run", "out", *options)[0] == 0
    assert own_runs.permitted_modules(recipe) is not None


def test_the_names_of_json():
    """Each string, and what stands before its range; no keys."""
    value = {"key": ["a[1:2]", {"c": "m:f"}, 3, None, "[0]", "x[/../y[:2]"]}
    expected = {"a[1:2]", "a", "m:f", "[0]", "x[/../y[:2]", "x[/../y"}
    assert permissions.names_in(value) == expected


CONFIG = """
from zoo import Experiment, priors
from zoo.data import Text, Vocabulary

def get_config():
    return Experiment(
        Text("train.txt", "train.txt"),
        Vocabulary(features=(priors.WordFunction("beside_config:suffix"),)),
    )
"""


@pytest.mark.slow
def test_a_function_beside_its_config_is_found(cwd, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    mark, planted = plant(elsewhere, "beside_config"), plant(cwd, "beside_config")
    (elsewhere / "my_config.py").write_text(CONFIG)
    (cwd / "train.txt").write_text("aa ba\n")
    experiment = configs.load(str(elsewhere / "my_config.py"))
    assert not mark.exists()
    Workdir("run").check(experiment)
    lexicon, _ = experiment.build()
    assert mark.exists() and not planted.exists()
    assert set(lexicon.feature_names) >= {"Suffix:a"}
