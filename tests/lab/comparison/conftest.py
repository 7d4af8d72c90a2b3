"""Two tiny runs of one text that have been judged, and a translator with attention."""

import dataclasses
import json
import shutil

import pytest

from tests.lab.training import small
from tests.lab.training.test_tasks_translation import experiment as translation
from tests.trained_run import run, trained, workdir
from zoo.attention import Luong
from zoo.lab.commands import command_table
from zoo.lab.evaluation import minimal_pairs, passport, scored_texts
from zoo.lab.evaluation.run import Run
from zoo.lab.runs import output_files

__all__ = ["run", "trained", "workdir"]

PAIRS = [(["word1", f"word{n}"], ["word1", f"word{n + 1}"]) for n in range(2, 9)]


def judge(folder):
    """Keeps what `evaluate` and `agreement` keep."""
    run = Run.load(folder)
    (scored,) = scored_texts.score(run, ["validation"])
    scored.judgement().keep()
    answers = minimal_pairs.score_pairs(run, PAIRS)
    cases = {"number, 1": answers.figures()}
    record = minimal_pairs.passport_of(run, "agreement-validation", PAIRS, answers, cases=cases)
    passport.write(run, record, answers.answers())


@pytest.fixture
def output(monkeypatch):
    """The lines that reports print."""
    lines = []
    monkeypatch.setattr(output_files, "show", lambda *texts: lines.extend(map(str, texts)))
    return lines


@pytest.fixture(scope="session")
def two_runs(tmp_path_factory):
    """Folders of a softmax and of a log-linear model; do not write to them."""
    folder = tmp_path_factory.mktemp("runs")
    paths = []
    for name, settings in small.MODELS.items():
        path = small.run_in(folder / name, small.experiment(**settings))
        judge(path)
        paths.append(str(path))
    return paths


@pytest.fixture(scope="session")
def second_seed(tmp_path_factory):
    """The folder of another seed of the softmax of `two_runs`, which is named softmax_1."""
    folder = tmp_path_factory.mktemp("seeds") / "softmax_1"
    path = small.run_in(folder, small.experiment(**small.MODELS["softmax"], seed=1))
    judge(path)
    return str(path)


@pytest.fixture(scope="session")
def translator(tmp_path_factory):
    """The folder of an encoder-decoder with attention, which has not been judged."""
    recipe = translation()
    recipe = dataclasses.replace(recipe, model=dataclasses.replace(recipe.model, attention=Luong()))
    return str(small.run_in(tmp_path_factory.mktemp("pairs") / "translator", recipe))


@pytest.fixture(scope="session")
def inattentive(tmp_path_factory):
    """The folder of an encoder-decoder without attention, which has not been judged."""
    return str(small.run_in(tmp_path_factory.mktemp("pairs") / "plain", translation(epochs=1)))


@pytest.fixture(scope="session")
def translated(translator, tmp_path_factory):
    """A copy of the translator that has translated, and results of a second seed beside it."""
    folder = tmp_path_factory.mktemp("translated")
    first, second = (shutil.copytree(translator, folder / f"translator_{seed}") for seed in (0, 1))
    recipe = json.loads((second / "experiment.json").read_text())
    recipe["training"]["seed"] = 1
    (second / "experiment.json").write_text(json.dumps(recipe))
    for path in (first, second):
        command_table.main(["translate", str(path), "--split", "test", "--bleu", "--beam", "2"])
    (result,) = (second / "results").glob("translation-*.json")
    passport = json.loads(result.read_text())
    passport["figures"]["BLEU"]["score"] += 2
    result.write_text(json.dumps(passport))
    return [str(first), str(second)]
