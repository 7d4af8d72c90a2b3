"""`zoo.train`: an experiment is trained in a folder, from Python as by train.py."""

import functools
import os
from collections.abc import Callable
from typing import Any

from zoo.base import distributed
from zoo.experiment import Experiment
from zoo.lab.evaluation import leakage
from zoo.lab.runs import provenance, seen_texts
from zoo.lab.runs.workdir import Workdir
from zoo.lab.training import tasks
from zoo.lab.training.loop import Trainer


def train(
    experiment: Experiment,
    folder: str | os.PathLike[str],
    *,
    devices: int = 0,
    log: Callable[[str], Any] = functools.partial(print, flush=True),
) -> None:
    """Trains an experiment in a folder, or resumes the run that the folder holds.

    Ctrl-C, or the stop button of a notebook, saves the state and raises Interrupted; the same call
    resumes the run. Where several processes train one run, each of them calls this.

    Args:
      experiment: the recipe.
      folder: the folder of the run, which is made if it does not exist.
      devices: devices that each process uses; 0 for all.
      log: called with each line of the log, in process 0; by default prints it.

    Raises:
      UserError: the data or the folder do not fit the experiment, or the loss is not finite.
      Interrupted: a SIGTERM, SIGHUP or Ctrl-C came; the state is saved.
    """
    workdir = Workdir(os.fspath(folder))
    workdir.permit(experiment)
    first = distributed.is_first_process()
    if first:
        workdir.check(experiment)
    task = tasks.prepare(experiment, devices)
    trainer = Trainer(
        task,
        experiment.training,
        workdir.path,
        devices,
        log=log if first else lambda line: None,
        init_from=experiment.init_from,
        parallel=experiment.parallel,
    )
    distributed.check_same_texts(
        training_or_validation_text=task.data,
        lexicon=" ".join(lexicon.digest() for lexicon in task.lexicons.values()),
        number_of_devices=str(devices),
    )
    if first:
        log(trainer.summary())
        _write_files(experiment, workdir, task, log)
    distributed.wait()
    distributed.check_same_texts(content_of_the_folder=workdir.recipe_digest())
    trainer.train()


def _write_files(experiment, workdir, task, log):
    """Writes the first files of a run: recipe, lexicons and the record of seen texts."""
    # Only now: an experiment that failed above may be corrected and started again.
    workdir.claim(experiment)
    for name, lexicon in task.lexicons.items():
        workdir.save_lexicon(lexicon, name)
    if seen_texts.read_record(workdir) is None:  # not read again when the run resumes
        sources = seen_texts.module_digests(experiment)
        code = provenance.Code(provenance.revision(), provenance.versions(), sources)
        record = task.seen_texts(code)
        if record is not None:
            seen_texts.write_record(workdir, record)
            overlap = leakage.overlap(task.corpora["validation"].sentences, record.trained_on)
            if overlap.is_seen:
                log(
                    "note: the model trains on its validation text "
                    f"({overlap}): the figures of validation are not of new "
                    "text, and the best checkpoint is the one that fits the training text best."
                )
