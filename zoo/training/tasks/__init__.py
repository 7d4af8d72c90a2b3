"""Tasks: the data, batches and losses of each kind of model, for the one trainer.

    task = tasks.prepare(experiment)

makes the task of `experiment.model`. To train a new kind of model, register its task:

    @tasks.task_of.register
    def _(model: MyModel, experiment, device_count=0):
        return MyTask(model, experiment)
"""

import functools

from zoo.errors import UserError
from zoo.experiment import Experiment
from zoo.models import LanguageModel, SequenceToSequence
from zoo.training import devices, memory_needs
from zoo.training.task import Task
from zoo.training.tasks.language_modelling import LanguageModelling
from zoo.training.tasks.translation import Translation


def prepare(experiment: Experiment, device_count: int = 0) -> Task:
    """Reads an experiment's data and makes its task."""
    return task_of(experiment.model, experiment, device_count)


@functools.singledispatch
def task_of(model, experiment: Experiment, device_count: int = 0) -> Task:
    """Makes the task of a model, by the model's class."""
    raise UserError(
        f"model is {type(model).__name__}, a class without a task: register one with "
        "zoo.training.tasks.task_of."
    )


@task_of.register
def _(model: LanguageModel, experiment: Experiment, device_count: int = 0) -> Task:
    used = devices.own(devices.chosen(device_count))
    lexicon, corpora = experiment.build()
    memory_needs.check(experiment, (lexicon,), used)
    return LanguageModelling(experiment, lexicon, corpora)


@task_of.register
def _(model: SequenceToSequence, experiment: Experiment, device_count: int = 0) -> Task:
    used = devices.own(devices.chosen(device_count))
    lexicon, corpora = experiment.build()
    lexicons = lexicon, experiment.build_sources(lexicon, corpora)
    memory_needs.check(experiment, lexicons, used)
    return Translation(experiment, *lexicons, corpora)
