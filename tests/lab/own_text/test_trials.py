"""Trials from beginning to end, on a text so small that a run takes seconds."""

import json
import re
import signal

import numpy as np
import pytest

from tests import trained_run
from zoo import __main__ as commands
from zoo.cores import LSTM
from zoo.data import Text
from zoo.embeddings import Lookup
from zoo.errors import Diverged, Interrupted, UserError
from zoo.experiment import Evaluation, Experiment, Training
from zoo.heads import Softmax
from zoo.lab.comparison.text_report import tables
from zoo.lab.own_text import trials
from zoo.lab.own_text.plan import Budget, HeadPlan
from zoo.lab.runs.workdir import Workdir
from zoo.lab.training import tasks
from zoo.lab.training import train as training
from zoo.models import LanguageModel
from zoo.optimizers import Adam, Cosine

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def experiment(tmp_path_factory):
    folder = tmp_path_factory.mktemp("text")
    for name, text in {
        "train": trained_run.TRAIN * 9,
        "validation": trained_run.TRAIN,
        "test": trained_run.TEST,
    }.items():
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    return Experiment(
        data=Text(
            train=str(folder / "train.txt"),
            validation=str(folder / "validation.txt"),
            tests=(str(folder / "test.txt"),),
        ),
        model=LanguageModel(embedding=Lookup(size=6), core=LSTM(size=8), head=Softmax()),
        training=Training(
            batch=4,
            length=5,
            epochs=10,
            optimizer=Adam(learning_rate=0.01, schedule=Cosine(warmup=100)),
            clip=1.0,
        ),
        evaluation=Evaluation(batch=2, length=6),
    )


def make_trials(
    experiment, folder, steps=20, rates=(1.0,), seeds=2, names=("softmax", "tied"), minutes=None
):
    return trials.Trials(experiment, names, folder, Budget(minutes, steps, rates), seeds)


def without_time(folder):
    comparison = json.loads((folder / "comparison.json").read_text())
    for head in comparison["heads"]:
        del head["minutes"], head["step_seconds"]
        for point in head["validations"]:
            del point["minutes"]
    return comparison


@pytest.fixture(scope="module")
def uninterrupted(experiment, tmp_path_factory):
    """The folder of trials that were not interrupted, with their comparison."""
    folder = tmp_path_factory.mktemp("trials") / "made"
    return folder, trials.run_trials(make_trials(experiment, folder), log=lambda line: None)


def test_trials_are_ordinary_runs(uninterrupted):
    folder, summary = uninterrupted
    runs = [folder / "runs" / f"{name}_{seed}" for name in ("softmax", "tied") for seed in (0, 1)]
    assert sorted((folder / "runs").iterdir()) == runs
    training = [Workdir(run).experiment().training for run in runs]
    assert [(settings.steps, settings.seed, settings.validate_every) for settings in training] == [
        *((20, 0, 2), (20, 1, 2)) * 2
    ]
    assert training[0].optimizer == Adam(learning_rate=0.01, schedule=Cosine(warmup=4))
    rows = {row.runs.name: row for row in summary.rows}
    assert {name: row.steps for name, row in rows.items()} == {"softmax": 20, "tied": 20}
    table = tables([*map(str, runs)])
    for name, row in rows.items():
        (line,) = re.findall(rf"^\S*{name}, 2 seeds .*", table, re.MULTILINE)
        assert f" {row.runs.loss:.4f} " in line and f" {row.parameters:,} " in line
    assert summary.split == "test" and (folder / "comparison.json").exists()
    last = rows["softmax"].curve[-1]
    assert last.step == 20 and len(last.losses) == 2 and last.losses[0] != last.losses[1]
    assert last.minutes > 0 and rows["softmax"].bytes > 4 * rows["softmax"].parameters


def test_steps_give_the_same_digits(uninterrupted, experiment, tmp_path):
    folder, _ = uninterrupted
    trials.run_trials(make_trials(experiment, tmp_path / "again"), log=lambda line: None)
    assert without_time(tmp_path / "again") == without_time(folder)


def test_an_interruption_changes_no_digit(uninterrupted, experiment, tmp_path, monkeypatch):
    """The third run gets a signal within its steps; the repeated command trains the rest."""
    folder, second_folder = uninterrupted[0], tmp_path / "interrupted"
    trained, train, prepare = [], training.train, tasks.prepare

    def interrupted(recipe, run, *, log):
        trained.append(run.name)
        if len(trained) == 3:
            monkeypatch.setattr(tasks, "prepare", with_signal)
        return train(recipe, run, log=log)

    def with_signal(*arguments):
        task = prepare(*arguments)
        validate, term = task.validate, signal.SIGTERM
        task.validate = lambda *arguments: signal.raise_signal(term) or validate(*arguments)
        return task

    monkeypatch.setattr(training, "train", interrupted)
    with pytest.raises(Interrupted, match="SIGTERM after step"):
        trials.run_trials(make_trials(experiment, second_folder), log=lambda line: None)
    assert (second_folder / "comparison.txt").exists()  # of the first two runs
    monkeypatch.undo()
    trials.run_trials(make_trials(experiment, second_folder), log=lambda line: None)
    assert trained == ["softmax_0", "tied_0", "softmax_1"]
    assert without_time(second_folder) == without_time(folder)
    # Nothing is trained a second time.
    monkeypatch.setattr(training, "train", None)
    assert trials.run_trials(make_trials(experiment, second_folder), log=lambda line: None).rows


def test_minutes_are_measured(experiment, tmp_path):
    budget = make_trials(
        experiment, tmp_path, steps=None, minutes=0.001, seeds=1, names=("softmax",)
    )
    summary = trials.run_trials(budget, log=lambda line: None)
    plan = json.loads((tmp_path / "plan.json").read_text())
    steps = plan["heads"]["softmax"]["steps"]
    assert plan["heads"]["softmax"]["epoch_steps"] > 0
    assert plan["minutes"] == 0.001 and summary.rows[0].steps == steps >= 1


def test_the_best_of_the_rates_is_taken(experiment, tmp_path):
    request = make_trials(
        experiment, tmp_path, rates=(0.1, 1.0, 1e30), names=("softmax",), seeds=1, steps=30
    )
    trials.run_trials(request, log=lambda line: None)
    tried = json.loads((tmp_path / "plan.json").read_text())["heads"]["softmax"]
    assert {"0.1", "1", "1e+30"} == {*tried["tried"]} and tried["rate"] in (0.1, 1.0)
    losses = {factor: float(loss) for factor, loss in tried["tried"].items()}
    assert losses[f"{tried['rate']:g}"] == min(losses.values())
    rate_training = Workdir(tmp_path / "rates" / "softmax_1").experiment().training
    assert rate_training.steps == 20 and rate_training.optimizer.schedule.warmup == 4
    final = Workdir(tmp_path / "runs" / "softmax_0").experiment().training
    assert final.optimizer.learning_rate == pytest.approx(0.01 * tried["rate"])


@pytest.mark.parametrize(("diverged", "seed"), [("tied", 0), ("tied", 1), ("softmax", 0)])
def test_a_head_that_diverges_is_left_out(experiment, tmp_path, monkeypatch, diverged, seed):
    """With any seed: its other seeds would be ranked by those that did not diverge."""
    train, log_lines = training.train, []

    def diverging(recipe, run, *, log):
        if run.name == f"{diverged}_{seed}":
            raise Diverged("the training loss is not finite at step 3")
        return train(recipe, run, log=log)

    monkeypatch.setattr(training, "train", diverging)
    summary = trials.run_trials(
        make_trials(experiment, tmp_path, seeds=seed + 1), log=log_lines.append
    )
    (trained,) = {"softmax", "tied"} - {diverged}
    assert [row.runs.name for row in summary.rows] == [trained]
    assert summary.failed == {diverged: "the training loss is not finite at step 3"}
    assert f"{diverged} is left out: the training loss is not finite at step 3" in log_lines


def test_a_head_that_spells_is_judged_over_the_words(experiment, tmp_path):
    request = make_trials(experiment, tmp_path, names=("softmax", "char_lstm"), seeds=1, steps=5)
    summary = trials.run_trials(request, log=lambda line: None)
    curves = {row.runs.name: row.curve for row in summary.rows}
    assert curves["softmax"] and not curves["char_lstm"]


def test_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    line = "try micro_softmax --steps 3 --seeds 1 --heads softmax,tied --rates 1"
    settings = ["--set", "model.core.size=4", "--set", "model.embedding.size=4"]
    commands.main([*line.split(), *settings])
    out = capsys.readouterr().out
    folder = tmp_path / "runs" / "try" / "micro_softmax"
    assert (folder / "comparison.txt").read_text() in out
    # Three steps are hardly any training.
    heads, steps = r"(softmax|tied)", json.loads((folder / "plan.json").read_text())["heads"]
    epochs = f"{3 / steps['softmax']['epoch_steps']:.2g} epochs"
    pattern = rf"^No winner yet, for .* nats\): {heads}: perplexity [\d.,]+ on test after {epochs},"
    assert re.search(pattern, out, re.M)
    with pytest.raises(UserError, match=r"has another plan \(steps: 3 against 4\)"):
        commands.main([*line.replace("3", "4", 1).split(), *settings])


def test_the_recipe_of_a_run_by_hand(experiment):
    recipe = trials.final_recipe(
        experiment, HeadPlan(25, 20, None, {}, 3.0), seed=2, validation_share=0.1
    )
    assert recipe.training.optimizer == Adam(learning_rate=0.03, schedule=Cosine(warmup=5))
    assert (recipe.training.steps, recipe.training.validate_every) == (25, 2)
    assert recipe.training.seed == 2
    np.testing.assert_allclose(recipe.training.optimizer.rate(1, 25)(5), 0.03)


def test_validations_read_no_more_tokens_than_training(experiment):
    """An epoch is 40 steps long, and a validation text of a quarter of it 10 steps."""

    def validation_interval(steps, validation):
        head_plan = HeadPlan(steps, 40, None, {}, 1.0)
        recipe = trials.final_recipe(experiment, head_plan, 0, validation)
        return recipe.training.validate_every

    assert [
        validation_interval(50, 0.25),
        validation_interval(50, 0.01),
        validation_interval(500, 0.25),
        validation_interval(7, 0.25),
    ] == [10, 5, 50, 10]
