"""Any model trains in the one loop: an encoder-decoder passes the tests of the language model."""

import dataclasses

import jax
import numpy as np
import pytest

from tests.training import small
from tests.training.reversal import Reversal
from tests.training.test_resume import assert_same_end, stop_at
from zoo.errors import Interrupted, UserError
from zoo.experiment import Training
from zoo.models import Model
from zoo.optimizers import SGD, Adam
from zoo.runs.workdir import Workdir
from zoo.training import tasks
from zoo.training.loop import Trainer

RECIPE = Training(batch=4, epochs=2, optimizer=SGD(0.4), clip=0.5, validate_every=4)


def trainer(folder, recipe=RECIPE, devices=1, sampled=False):
    folder.mkdir(exist_ok=True)
    return Trainer(Reversal(recipe, sampled), recipe, folder, devices, log=lambda line: None)


def ends(*trainers):
    return [small.last_state(one)[1] for one in trainers]


def assert_close(expected, found, atol):
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, atol=atol), expected.params, found.params
    )


# Two devices of another model: tests/training/test_translation.py has them among the fast tests.
@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.slow
def test_the_number_of_devices_changes_nothing_but_rounding(tmp_path, sampled):
    alone, several = (
        trainer(tmp_path / str(count), devices=count, sampled=sampled) for count in (1, 2)
    )
    start = jax.device_get(alone.initial_state())
    progress = [one.train() for one in (alone, several)]
    expected, found = ends(alone, several)
    moved = jax.tree.map(lambda old, new: np.abs(old - new).max(), start.params, expected.params)
    assert min(jax.tree.leaves(moved)) > 1e-3
    assert_close(expected, found, 3e-6)
    assert progress[0].best == pytest.approx(progress[1].best, abs=1e-5)


@pytest.mark.slow
def test_updates_of_rows_are_the_dense_ones(tmp_path):
    sparse = dataclasses.replace(RECIPE, row_sparse=True)
    runs = [
        trainer(tmp_path / "dense", sampled=True),
        trainer(tmp_path / "sparse", sparse, sampled=True),
        trainer(tmp_path / "sparse 2", sparse, devices=2, sampled=True),
    ]
    for run in runs:
        run.train()
    dense, *others = ends(*runs)
    for other in others:
        assert_close(dense, other, 5e-6)


# The fast tests have this of the same loop in tests/training/test_resume.py.
@pytest.mark.slow
def test_an_interrupted_run_ends_as_one_that_was_not(tmp_path, monkeypatch):
    recipe = dataclasses.replace(RECIPE, optimizer=Adam(0.02), average=0.9, checkpoint_every=5)
    whole = trainer(tmp_path / "whole", recipe)
    whole.train()
    for stop in (1, 6, 9):
        piece = trainer(tmp_path / "pieces", recipe)
        with monkeypatch.context() as patch:
            stop_at(patch, piece, stop)
            with pytest.raises(Interrupted, match=f"SIGTERM after step {stop}: the state is saved"):
                piece.train()
    last = trainer(tmp_path / "pieces", recipe)
    last.train()
    assert_same_end(whole, last)


@pytest.mark.slow
def test_it_learns_what_an_encoder_that_is_not_read_cannot(tmp_path):
    recipe = dataclasses.replace(RECIPE, batch=32, epochs=40, optimizer=Adam(0.03))
    run = trainer(tmp_path / "run", recipe)
    first = run.task.validate(run.initial_state().params).value
    # A decoder that knows no source has log 6 nats a digit, the shares of the digits.
    assert run.train().best < 0.75 * np.log(6) < first


def test_lexicons_are_kept_by_name(tmp_path):
    workdir, lexicons = Workdir(tmp_path), Reversal(RECIPE).lexicons
    for name, lexicon in lexicons.items():
        workdir.keep_lexicon(lexicon, name)
    assert workdir.lexicon("digits").words == lexicons["digits"].words


@dataclasses.dataclass(frozen=True)
class NoTask(Model):
    """A model for which nobody has written a task."""


def test_a_model_of_any_kind_is_part_of_an_experiment_and_needs_a_task():
    recipe = dataclasses.replace(small.experiment(), model=NoTask())
    with pytest.raises(UserError, match=r"^model is NoTask, a class without a task"):
        tasks.prepare(recipe)
    tasks.task_of.register(NoTask, lambda model, experiment, *_: Reversal(experiment.training))
    assert isinstance(tasks.prepare(recipe), Reversal)


def test_a_task_starts_with_values_of_its_own_unless_it_says_otherwise(tmp_path):
    task = Reversal(RECIPE)
    with pytest.raises(UserError, match=r"elsewhere: a Reversal cannot start from another"):
        Trainer(task, RECIPE, tmp_path, 1, init_from="elsewhere")


def test_states_are_emptied_at_the_rate_of_the_recipe():
    recipe = small.experiment(restart=0.25, length=2)
    task = tasks.prepare(recipe)
    resets = []
    for epoch in range(40):
        batches = task.batches(epoch)
        again = task.batches(epoch)
        for number in range(len(batches)):
            reset = batches[number].reset
            np.testing.assert_array_equal(reset, again[number].reset)
            assert not reset[:, 1:].any()
            resets.append(reset[:, 0])
    drawn = np.concatenate(resets)
    assert abs(drawn.mean() - 0.25) < 4 * (0.25 * 0.75 / len(drawn)) ** 0.5
    assert not np.array_equal(task.batches(0)[0].reset, task.batches(1)[0].reset)
    with pytest.raises(UserError, match=r"empties a carried state, and training.state is .sent"):
        small.experiment(restart=0.1, state="sentences")
