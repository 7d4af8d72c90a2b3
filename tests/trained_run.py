"""A tiny model, trained for one epoch on a tiny text."""

import functools
import shutil
import sys

import pytest

from zoo.cores import LSTM
from zoo.data import Text
from zoo.data.vocabulary import Vocabulary
from zoo.embeddings import Lookup
from zoo.experiment import Evaluation, Experiment, Training
from zoo.lab.commands import program
from zoo.lab.evaluation.run import Run
from zoo.lab.runs import seen_texts
from zoo.lab.runs.workdir import Workdir
from zoo.lab.training import tasks
from zoo.lab.training.loop import Trainer
from zoo.models import LanguageModel

TRAIN = """Le chat dort .
les chats dorment .
le chien voit le chat .
les chiens voient les chats .
le chien dort .
"""
TEST = """le zèbre dort .
Les chiens dorment , le chat voit les chats .
le chat voit le chien .
"""


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """The work directory of the run; do not write to it."""
    return train_in(tmp_path_factory.getbasetemp() / "trained_run")


@functools.cache
def train_in(folder):
    """Trains the model once a process: each folder of tests has a fixture of its own."""
    folder.mkdir()
    for name, text in {"train": TRAIN, "validation": TRAIN, "test": TEST}.items():
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    experiment = Experiment(
        data=Text(
            train=str(folder / "train.txt"),
            validation=str(folder / "validation.txt"),
            tests=(str(folder / "test.txt"),),
        ),
        vocabulary=Vocabulary(lower_case=True, boundary="uncounted"),
        model=LanguageModel(embedding=Lookup(size=5, initial_scale=1.0), core=LSTM(size=7)),
        training=Training(batch=2, length=4, epochs=1),
        evaluation=Evaluation(batch=3, length=4),
    )
    workdir = Workdir(folder / "workdir")
    workdir.claim(experiment)
    task = tasks.prepare(experiment)
    for name, lexicon in task.lexicons.items():
        workdir.save_lexicon(lexicon, name)
    seen_texts.write_record(workdir, task.seen_texts({}))
    Trainer(task, experiment.training, workdir.path, 1, log=lambda line: None).train()
    return workdir.path


@pytest.fixture
def workdir(trained, tmp_path):
    """A copy of the work directory to write to."""
    return shutil.copytree(trained, tmp_path / "workdir")


@pytest.fixture(scope="session")
def run(trained):
    """The run itself."""
    return Run.load(trained)


@pytest.fixture
def call(monkeypatch, capsys):
    """call(script, *arguments) -> (exit code, output, errors)."""

    def calling(script, *arguments):
        monkeypatch.setattr(sys, "argv", [script.__name__, *map(str, arguments)])
        code = program.run(script.main)
        return code, *capsys.readouterr()

    return calling
