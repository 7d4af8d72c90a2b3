"""The texts that the model of a run has seen, through all the runs that it is built upon.

Beside its own training and validation text a model may have seen texts through the run that it
started from (`init_from`) or through its background: another run, n-grams of further splits.
"""

import dataclasses
import pathlib

from zoo.data import Corpus
from zoo.errors import UserError
from zoo.experiment import Experiment
from zoo.priors import Arpa, Grammar
from zoo.runs.seen_texts import SeenTexts, Texts
from zoo.runs.workdir import Workdir

# Training texts of more words are not read again for a run that did not keep its record.
MOST_WORDS = 20_000_000


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

    A run from before there were such records has its texts read again, if these are there and have
    the digest that its checkpoints name.

    Returns:
      None where it cannot be known, for there is no run any more, or its texts are gone.

    Raises:
      UserError: its record is damaged.
    """
    workdir = Workdir(path)
    if not workdir.exists():
        return None
    kept, data = workdir.texts(), workdir.data_digest()
    if kept is not None and data in ("", kept.data):
        return kept
    # Where digests differ the record was made, on resuming an old run, of a text that has changed.
    return _read_again(workdir, data) if data else None


def _read_again(workdir, data):
    try:
        experiment, lexicon = workdir.experiment(), workdir.lexicon()
        vocabulary = experiment.vocabulary
        if lexicon.counts.sum() > MOST_WORDS:
            return None
        splits = ("train", "validation", *_splits(experiment.model.background))
        corpora = {split: vocabulary.read(experiment.data, split) for split in splits}
        read = [corpora["train"], corpora["validation"]]
        texts = [vocabulary.encode(corpus, lexicon) for corpus in read]
        for source in workdir.other_lexicons(experiment):  # of pairs
            reading = experiment.reading_of_sources
            texts += [reading.encode(experiment.source_of(corpus), source) for corpus in read]
        digest = "-".join(text.digest() for text in texts)
    except UserError:  # the files are gone, or are others
        return None
    return of_experiment(experiment, corpora, data) if digest == data else None


def _splits(background):
    return () if background is None else background.splits
