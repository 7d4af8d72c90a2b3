"""An interrupted run, resumed, ends bit for bit as one that was not."""

import dataclasses
import math
import pathlib
import signal

import jax
import numpy as np
import optax
import pytest

from tests.lab.training import recipes, small
from zoo.errors import Interrupted, UserError
from zoo.lab.training import loop
from zoo.lab.training.loop import Progress
from zoo.optimizers import Adam, Cosine

OFTEN = {
    "epochs": 3,
    "shuffle": True,
    "patience": 9,
    "validate_every": 4,
    "checkpoint_every": 3,
    "clip": 0.5,
    "optimizer": Adam(learning_rate=0.05, schedule=Cosine(warmup=4)),
}


@pytest.fixture
def every_step_told(monkeypatch):
    """A line of metrics for each step."""
    monkeypatch.setattr("zoo.lab.training.metric_writers.STEP_INTERVAL", 1)


def assert_same_end(expected, trainer):
    """Steps, arrays, progress and metrics agree, to the last bit."""
    for kind in ("last", "best"):
        step, arrays, progress = small.last_state(expected, kind)
        other_step, other_arrays, other_progress = small.last_state(trainer, kind)
        assert step == other_step
        assert jax.tree.structure(arrays) == jax.tree.structure(other_arrays)
        jax.tree.map(np.testing.assert_array_equal, arrays, other_arrays)
        assert small.timeless(progress) == small.timeless(other_progress)
    assert small.metrics(expected.workdir) == small.metrics(trainer.workdir)


def stop_at(monkeypatch, trainer, stop):
    """Has the trainer receive a signal during a step."""
    compile_step = trainer.devices.compile

    def compiled(*arguments, **static):
        step_function = compile_step(*arguments, **static)

        def step_and_signal(state, *arguments_after):
            if trainer.devices.to_host(state.step) + 1 == stop:
                trainer._stop = signal.SIGTERM
            return step_function(state, *arguments_after)

        return step_and_signal

    monkeypatch.setattr(trainer.devices, "compile", compiled)


# Steps at which a run is stopped, (epochs, steps after them): after the first step, within an
# epoch, at its end, at a validation, within the mean, before the last step.
STOPS = {
    "softmax": ((0, 1), (2, 2)),
    "log-linear": ((0, 5), (1, 0)),
    "regularised": ((1, 0), (3, 2)),
    "background": ((1, 0), (3, -1)),
    "rows": ((0, 1), (1, 2)),
    "pairs": ((0, 1), (1, 2)),
    "digits": ((0, 1), (1, 0), (1, 3)),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", STOPS)
def test_resumed_equals_uninterrupted(tmp_path, monkeypatch, every_step_told, kind):
    recipe = recipes.recipe(kind, **OFTEN)
    uninterrupted = small.trainer(recipe, tmp_path / "whole")
    uninterrupted.train()
    end, log = uninterrupted.task.epoch_steps, []
    for epochs, steps in STOPS[kind]:
        stop = epochs * end + steps
        trainer = small.trainer(recipe, tmp_path / "pieces", log=log)
        with monkeypatch.context() as patch:
            stop_at(patch, trainer, stop)
            with pytest.raises(Interrupted, match=f"SIGTERM after step {stop}: the state is saved"):
                trainer.train()
        step, state, _ = small.last_state(trainer)
        assert step == stop
        averaging = optax.tree_utils.tree_get(state.optimizer_state, "averaging", False)
        assert averaging == (kind == "regularised" and stop > end)
    last = small.trainer(recipe, tmp_path / "pieces", log=log)
    last.train()
    assert f"resuming after step {stop} (epoch {stop // end + 1})." in log
    assert_same_end(uninterrupted, last)


class Killed(BaseException):
    """The end of a process, without any saving."""


@pytest.mark.parametrize(("kind", "kill"), [("softmax", 2), ("log-linear", 13)])
@pytest.mark.slow
def test_what_comes_after_the_last_checkpoint_is_done_again(
    tmp_path, monkeypatch, every_step_told, kind, kill
):
    recipe = recipes.recipe(kind, **OFTEN)
    uninterrupted = small.trainer(recipe, tmp_path / "whole")
    uninterrupted.train()
    trainer = small.trainer(recipe, tmp_path / "killed")
    step_of = loop.Metrics.step

    def die(self, step, progress, results):
        step_of(self, step, progress, results)
        if step == kill:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(loop.Metrics, "step", die)
        with pytest.raises(Killed):
            trainer.train()
    assert small.metrics(trainer.workdir)[-1]["step"] == kill
    with (trainer.workdir / "metrics.jsonl").open("a") as file:
        file.write('{"step": 14, "trai')  # cut short, as by a kill
    resumed = small.trainer(recipe, tmp_path / "killed")
    resumed.train()
    assert_same_end(uninterrupted, resumed)


@pytest.mark.slow
def test_dropout_does_not_depend_on_interruptions_but_on_the_seed(tmp_path):
    ends = []
    for seed in (0, 0, 1):
        recipe = small.experiment(epochs=1, seed=seed)
        trainer = small.trainer(recipe, tmp_path / str(len(ends)))
        trainer.train()
        ends.append(small.last_state(trainer)[1].params["head"]["weights"])
    np.testing.assert_array_equal(ends[0], ends[1])
    assert np.abs(ends[0] - ends[2]).max() > 0


@pytest.mark.slow
def test_a_signal_within_the_last_validation_is_not_lost(tmp_path):
    """The run is finished, and what the caller would do next does not begin."""
    recipe = small.experiment(**OFTEN)
    uninterrupted = small.trainer(recipe, tmp_path / "whole")
    uninterrupted.train()
    trainer = small.trainer(recipe, tmp_path / "run", log=(log := []))
    validate, end = trainer.task.validate, uninterrupted.task.epoch_steps * 3

    def validate_and_signal(*arguments):
        if trainer.devices.to_host(trainer.state.step) == end:
            trainer._stop = signal.SIGINT
        return validate(*arguments)

    trainer.task.validate = validate_and_signal
    with pytest.raises(Interrupted, match=f"SIGINT at the end, after step {end}: all is saved"):
        trainer.train()
    assert_same_end(uninterrupted, trainer)
    resumed = small.trainer(recipe, tmp_path / "run", log=log)
    assert resumed.train().finished
    assert log[-1] == f"this run is finished, at step {end}; nothing is left to train."


# --------- what a checkpoint says of how far a run is, as it may have been changed by hand

LOCATION = pathlib.Path("run/checkpoints/last/3/progress/metadata")
RECORD = dataclasses.asdict(Progress(epoch=2, best=3.5, best_step=7, data="hash"))


def test_what_was_kept_is_read():
    assert Progress.from_json(RECORD, LOCATION) == Progress(
        epoch=2, best=3.5, best_step=7, data="hash"
    )
    assert Progress.from_json(RECORD | {"best": math.inf, "loss": 3}, LOCATION).best == math.inf


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epoch": 1.0}, "epoch is 1.0, where a whole number should be"),
        ({"epoch": True}, "epoch is true, where a whole number should be"),
        ({"index": -1}, "index is -1, where a whole number from 0 should be"),
        ({"best": "3"}, 'best is "3", where a number should be'),
        ({"best": None}, "best is missing or null, where a number should be"),
        ({"finished": 1}, "finished is 1, where true or false should be"),
        ({"data": 3}, "data is 3, where text should be"),
        ({"validations": [1.0, "x"]}, 'validations.1 is "x", where a number should be'),
        ({"words": 3}, "words is a key that this version does not know"),
    ],
)
def test_a_changed_key_is_named(change, message):
    message = rf"^{LOCATION} is not as it was written \({message}\): put back a copy"
    with pytest.raises(UserError, match=message):
        Progress.from_json(RECORD | change, LOCATION)


def test_a_key_that_is_missing_is_named():
    record = {name: value for name, value in RECORD.items() if name != "best_step"}
    with pytest.raises(UserError, match=r"\(best_step is missing or null, where"):
        Progress.from_json(record, LOCATION)
