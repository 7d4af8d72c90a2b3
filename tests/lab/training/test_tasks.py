"""Any model trains in the one loop: an encoder-decoder passes the tests of the language model."""

import dataclasses

import numpy as np
import pytest

from tests.lab.training import small
from tests.lab.training.reversal import Digits, Reversal
from zoo.errors import UserError
from zoo.experiment import Training
from zoo.lab.runs.workdir import Workdir
from zoo.lab.training import tasks
from zoo.lab.training.loop import Trainer
from zoo.models import Model
from zoo.optimizers import SGD

RECIPE = Training(batch=4, epochs=2, optimizer=SGD(0.4), clip=0.5, validate_every=4)


def test_lexicons_are_kept_by_name(tmp_path):
    workdir, lexicons = Workdir(tmp_path), Reversal(RECIPE).lexicons
    for name, lexicon in lexicons.items():
        workdir.save_lexicon(lexicon, name)
    assert workdir.lexicon("digits").words == lexicons["digits"].words


@dataclasses.dataclass(frozen=True)
class NoTask(Model):
    """A model for which nobody has written a task."""


def test_a_model_of_any_kind_is_part_of_an_experiment_and_needs_a_task():
    recipe = dataclasses.replace(small.experiment(), model=NoTask())
    with pytest.raises(UserError, match=r"^model is NoTask, a class without a task"):
        tasks.prepare(recipe)
    assert isinstance(tasks.prepare(dataclasses.replace(recipe, model=Digits())), Reversal)


def test_a_task_starts_with_values_of_its_own_unless_it_says_otherwise(tmp_path):
    task = Reversal(RECIPE)
    with pytest.raises(UserError, match=r"elsewhere: a Reversal cannot start from another"):
        Trainer(task, RECIPE, tmp_path, 1, init_from="elsewhere")


def test_a_limit_of_steps_leaves_the_epochs_free(tmp_path):
    recipe = small.experiment(epochs=10**12, steps=9)
    assert small.trainer(recipe, tmp_path).task.total_steps == 9


def test_states_are_emptied_at_the_rate_of_the_recipe():
    recipe = small.experiment(restart=0.25, length=2)
    task = tasks.prepare(recipe)
    resets = []
    for epoch in range(40):
        batches = task.epoch(epoch)
        repeated = task.epoch(epoch)
        for number in range(len(batches)):
            reset = batches[number].reset
            np.testing.assert_array_equal(reset, repeated[number].reset)
            assert not reset[:, 1:].any()
            resets.append(reset[:, 0])
    all_resets = np.concatenate(resets)
    assert abs(all_resets.mean() - 0.25) < 4 * (0.25 * 0.75 / len(all_resets)) ** 0.5
    assert not np.array_equal(task.epoch(0)[0].reset, task.epoch(1)[0].reset)
