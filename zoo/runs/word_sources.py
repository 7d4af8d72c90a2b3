"""Texts that gave a model its knowledge of words: which words there are, features and backgrounds.

The tags of a treebank, a list of words or a background tell a model about words before it is
trained on any sentence. Such a text may be a split of the run's data or a file of its own.
"""

import dataclasses
import hashlib
import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from zoo.configuration import fields
from zoo.data import Conllu, Corpus, Vocabulary
from zoo.experiment import Experiment
from zoo.priors import Arpa, Grammar, Morphology
from zoo.priors.contextual import Contextual
from zoo.priors.experts import Expert
from zoo.runs.seen_texts import SeenTexts, Texts, digest_of
from zoo.runs.workdir import Workdir
from zoo.sources import files

# Numbers of a text without sentences.
_UNNUMBERED = {"sentences": None, "tokens": None}


class WordSource(NamedTuple):
    """A part of a recipe that is made from texts, and these texts."""

    gave: str
    prior: Any  # the prior; None for the vocabulary, which chooses the words
    splits: tuple[tuple[str, ...], ...]
    treebanks: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


def of_experiment(experiment: Experiment) -> list[WordSource]:
    """Returns the parts of a recipe that give knowledge of words, the vocabulary first.

    The files of a prior are its fields `treebanks` and `path`; the files of the data are
    Conllu.words.
    """
    vocabulary, head = experiment.vocabulary, experiment.head
    priors: list[tuple[str, Any]] = [("features", prior) for prior in vocabulary.features]
    for prior in (vocabulary.background, head.background):
        kind = "expert" if isinstance(prior, Expert) else "background"
        priors += [] if prior is None else [(kind, prior)]
    words = _treebanks_of_words(experiment.data)
    return [
        WordSource("vocabulary", None, (vocabulary.splits,), words),
        *(_of_prior(kind, prior) for kind, prior in priors),
    ]


def _of_prior(kind: str, prior: Any) -> WordSource:
    values = [*fields.values(prior)]
    treebanks, paths = (
        tuple(value for _, field, value in values if field == name and isinstance(value, str))
        for name in ("treebanks", "path")
    )
    splits = [value for path, _, value in values if path.rpartition(".")[2] == "splits"]
    if isinstance(prior, Contextual):  # whose splits are all named
        splits = [chosen for chosen in splits if chosen]
    if treebanks and getattr(prior, "guesser", None) is None:
        splits = []  # only a guesser counts words there
    return WordSource(f"{kind}: {type(prior).__name__}", prior, (*splits,), treebanks, paths)


def _treebanks_of_words(data) -> tuple[str, ...]:
    """Returns the files of Conllu.words of a source, or of the sources within it."""
    sources = [data, *(value for _, _, value in fields.values(data))]
    return tuple(path for source in sources if isinstance(source, Conllu) for path in source.words)


def recorded(experiment: Experiment, corpora: Mapping[str, Corpus]) -> tuple[dict, ...]:
    """Describes each text that gives a run knowledge of words."""
    made_by: dict[tuple[str, str], list[str]] = {}
    for source in of_experiment(experiment):
        chosen = {split for splits in source.splits for split in (splits or corpora)}
        texts = [("split", split) for split in corpora if split in chosen]
        texts += [("treebank", path) for path in source.treebanks]
        texts += [("file", path) for path in source.files]
        for text in texts:
            made_by.setdefault(text, []).append(source.gave)

    entries = {} if _treebanks_of_words(experiment.data) else experiment.data.lexicon_entries()
    if entries:
        dictionary = f"the dictionary of {type(experiment.data).__name__}"
        tagged = [
            prior for prior in experiment.vocabulary.features if isinstance(prior, Morphology)
        ]
        tags = ["features: Morphology"] if tagged and any(entries.values()) else []
        made_by["dictionary", dictionary] = ["vocabulary", *tags]

    def described(kind, name):
        if kind == "dictionary":
            sorted_entries = [[word, *tags] for word, tags in sorted(entries.items())]
            return {"text": name, "digest": digest_of(sorted_entries), **_UNNUMBERED}
        if kind == "file":
            return _of_file(name)
        if kind == "split":
            return _of_sentences(corpora[name].name, corpora[name].sentences)
        return _of_sentences(name, sentences_of(name, experiment.vocabulary))

    return tuple(
        {**described(*text), "by": "this run", "gave": [*dict.fromkeys(gave)]}
        for text, gave in made_by.items()
    )


def sentences_of(path: str, vocabulary: Vocabulary) -> list[list[str]]:
    """Reads the sentences of a treebank, in the vocabulary's case."""
    return vocabulary.read(Conllu(train=path, validation=path), "train").sentences


def _of_sentences(name: str, sentences) -> dict:
    return {
        "text": name,
        "digest": digest_of(sentences),
        "sentences": len(sentences),
        "tokens": sum(map(len, sentences)),
    }


def _of_file(path: str) -> dict:
    with files.find(path).open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"text": path, "digest": digest, **_UNNUMBERED}


# ---- the texts that a run's model has seen, itself or through the runs that it is built on
# Above are the texts that gave words, features and backgrounds.
#
# Besides its own training and validation text a model may have seen texts through the run that it
# started from (`init_from`) or through its background: another run, or n-grams of further splits.


def inherited(
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
        knowledge=recorded(experiment, corpora),
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
