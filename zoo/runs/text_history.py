"""The texts that the model of a run has seen, through all the runs that it is built upon.

Beside its own training and validation text a model may have seen texts through the run that it
started from (`init_from`) or through its background: another run, n-grams of further splits.
"""

import dataclasses
import pathlib

from zoo.data import Corpus
from zoo.experiment import Experiment
from zoo.priors import Arpa, Grammar
from zoo.runs.seen_texts import SeenTexts, Texts
from zoo.runs.workdir import Workdir


def of_experiment(
    experiment: Experiment,
    corpora: dict[str, Corpus],
    data: str = "",
    made_with: dict | None = None,
) -> SeenTexts:
    """The texts that a run of this experiment sees, and those that its parts had seen before.

    Args:
      corpora: {split: text as the vocabulary reads it}.
      data: the digest of training and validation text as the trainer has it.
      made_with: revision and versions of the zoo that trains.
    """
    train, validation = (_texts(corpora[split]) for split in ("train", "validation"))
    seen = SeenTexts(
        train,
        validation,
        data=data,
        made_with=made_with or {},
    )
    if experiment.init_from:
        seen = _with_run(seen, experiment.init_from, f"init_from {experiment.init_from}")
    return _with_background(seen, experiment.head.background, corpora)


def _texts(corpus):
    """A text and, of pairs, its sources."""
    read = Texts.of(corpus.name, corpus.sentences)
    source = corpus.source_text
    return read if source is None else read + Texts.of(source.name, source.sentences)


def _with_background(seen, background, corpora):
    """With what the background was estimated on; an expert or a grammar is no text's estimate."""
    if background is None or isinstance(background, Grammar):
        return seen
    name = f"the background {type(background).__name__}"
    if background.workdir is not None:
        return _with_run(seen, background.workdir, f"{name} {background.workdir}")
    if isinstance(background, Arpa):
        return seen.without_record([f"{name} {background.path}"])
    if not type(background).__module__.startswith("zoo."):
        return seen.without_record([f"{name}, which is no part of this zoo"])
    for split in background.splits:
        if split != "train":
            text = Texts.of(corpora[split].name, corpora[split].sentences, name)
            seen = dataclasses.replace(seen, trained_on=seen.trained_on + text)
    return seen


def _with_run(seen, workdir, by):
    theirs = of_run(workdir)
    return seen.without_record([by]) if theirs is None else seen.joined(theirs, by)


def of_run(path: str | pathlib.Path) -> SeenTexts | None:
    """The texts that the run of a work directory has seen, as they were recorded when it began.

    Returns:
      None where it is not known: there is no run any more, no record, or one of other texts than
      those of the run's checkpoints.

    Raises:
      UserError: its record is damaged.
    """
    workdir = Workdir(path)
    if not workdir.exists():
        return None
    kept, data = workdir.texts(), workdir.data_digest()
    return kept if kept is not None and data in ("", kept.data) else None
