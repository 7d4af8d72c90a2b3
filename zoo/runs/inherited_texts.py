"""The texts that a run's model has seen, itself or through the runs that it is built on.

`zoo.runs.word_sources` lists the texts that gave words, features and backgrounds.

Besides its own training and validation text a model may have seen texts through the run that it
started from (`init_from`) or through its background: another run, or n-grams of further splits.
"""

import dataclasses
import pathlib

from zoo.data import Corpus
from zoo.experiment import Experiment
from zoo.priors import Arpa, Grammar
from zoo.runs import word_sources
from zoo.runs.seen_texts import SeenTexts, Texts
from zoo.runs.workdir import Workdir


def of_experiment(
    experiment: Experiment,
    corpora: dict[str, Corpus],
    data: str = "",
    made_with: dict | None = None,
) -> SeenTexts:
    """Returns the texts that a run of an experiment sees, and texts that its parts saw before."""
    train, validation = (_texts(corpora[split]) for split in ("train", "validation"))
    seen = SeenTexts(
        train,
        validation,
        data=data,
        made_with=made_with or {},
        knowledge=word_sources.recorded(experiment, corpora),
    )
    own = [prior for prior in experiment.vocabulary.features if not _is_of_zoo(prior)]
    seen = seen.without_record(f"the features {_not_of_zoo(prior)}" for prior in own)
    if experiment.init_from:
        seen = _with_run(seen, experiment.init_from, f"init_from {experiment.init_from}")
    return _with_background(seen, experiment.head.background, corpora)


def _texts(corpus):
    """Hashes a text, and its sources if it is the targets of pairs."""
    read = Texts.of(corpus.name, corpus.sentences)
    source = corpus.source_text
    return read if source is None else read + Texts.of(source.name, source.sentences)


def _with_background(seen, background, corpora):
    """Adds the texts of a background; experts and grammars are not estimated from texts."""
    if background is None or isinstance(background, Grammar):
        return seen
    name = f"the background {type(background).__name__}"
    if background.workdir is not None:
        return _with_run(seen, background.workdir, f"{name} {background.workdir}")
    if isinstance(background, Arpa):
        return seen.without_record([f"{name} {background.path}"])
    if not _is_of_zoo(background):
        return seen.without_record([f"the background {_not_of_zoo(background)}"])
    for split in background.splits:
        if split != "train":
            text = Texts.of(corpora[split].name, corpora[split].sentences, name)
            seen = dataclasses.replace(seen, trained_on=seen.trained_on + text)
    return seen


def _is_of_zoo(prior):
    return type(prior).__module__.startswith("zoo.")


def _not_of_zoo(prior):
    return f"{type(prior).__name__}, which is not a part of Zoo"


def _with_run(seen, workdir, by):
    theirs = of_run(workdir)
    return seen.without_record([by]) if theirs is None else seen.joined(theirs, by)


def of_run(path: str | pathlib.Path) -> SeenTexts | None:
    """Reads the texts that a run has seen, as they were recorded when it began."""
    workdir = Workdir(path)
    if not workdir.exists():
        return None
    kept, data = workdir.texts(), workdir.data_digest()
    return kept if kept is not None and data in ("", kept.data) else None
