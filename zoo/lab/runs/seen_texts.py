"""Texts that a model has seen, as hashes of their sentences, so that a text is found by content.

A hash is made of a sentence's letters: its words joined, without blanks, in lower case. So a
sentence is found under any file name, in any order and range, in a mixture of texts, and whether
the model's tokens are words or characters. It is not found where the two texts split sentences at
different points.
"""

import dataclasses
import hashlib
import itertools
import json
import pathlib
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from types import NoneType
from typing import Any, NamedTuple

import numpy as np

from zoo.base import strict_json
from zoo.base.arrays import array_files
from zoo.configuration import fields
from zoo.data import Conllu, Corpus, Vocabulary
from zoo.errors import UserError
from zoo.experiment import Experiment
from zoo.lab.runs import atomic_writes
from zoo.lab.runs.workdir import Workdir
from zoo.priors import Arpa, Grammar, Morphology
from zoo.priors.experts import Expert
from zoo.priors.prior import Contextual
from zoo.sources import files

# Sentences that are hashed at once.
_AT_ONCE = 1000
FILE = "texts.npz"
ROLES = ("trained_on", "selected_on")
_REST = ("not_known", "data", "made_with", "knowledge")
_TEXT = {"text": str, "by": str, "digest": str, "sentences": int, "tokens": int}
# A text that gave knowledge of words: a file without sentences does not have their numbers.
_GIVEN = {**_TEXT, "gave": [str], "sentences": int | None, "tokens": int | None}
# Packages whose versions tell their code.
_NOT_OWN = ("zoo", "configs", "jax")
_ABOUT = {
    **{role: [_TEXT] for role in ROLES},
    "not_known": [str],
    "data": str,
    "made_with": dict,
    "knowledge": ([_GIVEN], NoneType),
}


def letters(sentence: list[str]) -> str:
    """Returns the letters of a sentence for its hash: no blanks, case folded, accents composed."""
    return unicodedata.normalize("NFC", "".join("".join(sentence).split()).casefold())


def hashes_of(spelled: Iterable[str]) -> np.ndarray:
    """Hashes the letters of each sentence, uint64 [n]."""
    hashed = bytearray()  # not a list of them, which takes six times as much
    for text in spelled:
        encoded = text.encode("utf-8", "surrogatepass")
        hashed += hashlib.blake2b(encoded, digest_size=8).digest()
    return np.frombuffer(hashed, "<u8").astype(np.uint64)


def digest_of(sentences: Iterable[list[str]]) -> tuple[str, int]:
    """Returns the SHA-256 of a whole text, as the JSON list of its sentences, and its words."""
    hasher, sentences, words = hashlib.sha256(b"["), iter(sentences), 0
    encoder, before = json.JSONEncoder(ensure_ascii=False), ""
    # Some sentences at a time: a list's text is that of its elements with ", " between them.
    while some := [*itertools.islice(sentences, _AT_ONCE)]:
        text = before + encoder.encode(some)[1:-1]
        hasher.update(text.encode("utf-8", "surrogatepass"))
        before, words = ", ", words + sum(map(len, some))
    hasher.update(b"]")
    return hasher.hexdigest(), words


def _described(name: str, sentences: Sequence[list[str]]) -> dict:
    digest, tokens = digest_of(sentences)
    return {"text": name, "digest": digest, "sentences": len(sentences), "tokens": tokens}


@dataclasses.dataclass(frozen=True, eq=False)
class Texts:
    """Hashes of the sentences of some texts."""

    hashes: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0, np.uint64))
    about: tuple[dict, ...] = ()

    @classmethod
    def of(cls, name: str, sentences: Sequence[list[str]], by: str = "this run") -> "Texts":
        """Hashes the sentences of a single text."""
        spelled = (text for text in map(letters, sentences) if text)
        return cls(np.unique(hashes_of(spelled)), ({**_described(name, sentences), "by": by},))

    def through(self, by: str) -> "Texts":
        """Returns the texts with `by` put before their origin, such as "init_from runs/a"."""
        return dataclasses.replace(self, about=_through(by, self.about))

    def __add__(self, other: "Texts") -> "Texts":
        return Texts(np.union1d(self.hashes, other.hashes), (*self.about, *other.about))

    def has(self, hashes: np.ndarray) -> np.ndarray:
        """Whether each of some sentences is in the texts, bool [n]."""
        return np.isin(hashes, self.hashes)


def _through(by: str, texts: Iterable[dict]) -> tuple[dict, ...]:
    """Puts `by` before the origin of each text."""
    origins = ((text, "" if text["by"] == "this run" else f", {text['by']}") for text in texts)
    return tuple({**text, "by": f"{by}{origin}"} for text, origin in origins)


@dataclasses.dataclass(frozen=True, eq=False)
class SeenTexts:
    """The texts that a run has seen, itself or through the runs and backgrounds it is built on."""

    trained_on: Texts
    selected_on: Texts
    not_known: tuple[str, ...] = ()
    data: str = ""
    made_with: dict = dataclasses.field(default_factory=dict)
    # texts that gave words, features and backgrounds, as `recorded` describes them; None where
    # they are not recorded
    knowledge: tuple[dict, ...] | None = None

    def joined(self, other: "SeenTexts", by: str) -> "SeenTexts":
        """Adds the texts of another run."""
        knowledge = None
        if self.knowledge is not None and other.knowledge is not None:
            knowledge = (*self.knowledge, *_through(by, other.knowledge))
        return dataclasses.replace(
            self,
            trained_on=self.trained_on + other.trained_on.through(by),
            selected_on=self.selected_on + other.selected_on.through(by),
            not_known=(*self.not_known, *(f"{by}, {part}" for part in other.not_known)),
            knowledge=knowledge,
        )

    def without_record(self, parts: Iterable[str]) -> "SeenTexts":
        """Adds names of parts of the model whose texts are not known."""
        return dataclasses.replace(self, not_known=(*self.not_known, *parts))

    def save(self, path: str | pathlib.Path):
        """Writes the record to an .npz file."""
        about = {role: getattr(self, role).about for role in ROLES}
        rest = {name: getattr(self, name) for name in _REST}
        arrays = {role: getattr(self, role).hashes for role in ROLES}
        arrays["about"] = np.frombuffer(json.dumps({**about, **rest}).encode(), np.uint8)
        array_files.write(path, arrays, compressed=False)  # hashes would not get smaller

    @classmethod
    def load(cls, path: str | pathlib.Path) -> "SeenTexts":
        """Reads a file that `save` wrote; UserError if it is not one."""
        try:
            arrays = array_files.read_arrays(path, (*ROLES, "about").__contains__)
            about = strict_json.parse_bytes(arrays.pop("about"))
            strict_json.check(about, _ABOUT)
            for role in ROLES:
                array_files.check(arrays[role], np.uint64, role)
            rest: dict[str, Any] = {name: about.get(name) for name in _REST}
            rest |= {name: tuple(kept) for name, kept in rest.items() if isinstance(kept, list)}
            trained, selected = (Texts(arrays[role], tuple(about[role])) for role in ROLES)
            return cls(trained, selected, **rest)
        except (OSError, ValueError, KeyError) as error:
            raise UserError(
                f"{path} is not a record of seen texts ({error}): put back a copy, or delete it, "
                "so that it is made again from the data."
            ) from error


# ---- texts that gave a model its knowledge of words: which there are, features and backgrounds
# The tags of a treebank, a list of words or a background tell a model about words before it is
# trained on any sentence. Such a text may be a split of the run's data or a file of its own.

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
    """Returns the parts of a recipe that give knowledge of words, the vocabulary first."""
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
        tagged = any(isinstance(prior, Morphology) for prior in experiment.vocabulary.features)
        tags = ["features: Morphology"] if tagged and any(entries.values()) else []
        made_by["dictionary", dictionary] = ["vocabulary", *tags]

    def described(kind, name):
        if kind == "dictionary":
            sorted_entries = [[word, *tags] for word, tags in sorted(entries.items())]
            return {"text": name, "digest": digest_of(sorted_entries)[0], **_UNNUMBERED}
        if kind == "file":
            with files.find(name).open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            return {"text": name, "digest": digest, **_UNNUMBERED}
        if kind == "split":
            return _described(corpora[name].name, corpora[name].sentences)
        return _described(name, sentences_of(name, experiment.vocabulary))

    return tuple(
        {**described(*text), "by": "this run", "gave": [*dict.fromkeys(gave)]}
        for text, gave in made_by.items()
    )


def sentences_of(path: str, vocabulary: Vocabulary) -> Sequence[list[str]]:
    """Reads the sentences of a treebank, in the vocabulary's case."""
    return vocabulary.read(Conllu(train=path, validation=path), "train").sentences


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


def sources_of(experiment: Experiment) -> dict[str, str]:
    """Returns the SHA-256 of the source of each module outside Zoo with a component of a recipe."""
    owners = {getattr(value, "__module__", "zoo") for *_, value in fields.values(experiment)}
    own = sorted(name for name in owners if name.partition(".")[0] not in _NOT_OWN)
    paths = {name: getattr(sys.modules.get(name), "__file__", None) for name in own}
    read = {name: pathlib.Path(path).read_bytes() for name, path in paths.items() if path}
    return {name: hashlib.sha256(content).hexdigest() for name, content in read.items()}


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
    kept, data = of_workdir(workdir), workdir.data_digest()
    return kept if kept is not None and data in ("", kept.data) else None


def of_workdir(workdir: Workdir) -> SeenTexts | None:
    """Reads the record that is kept in a run's folder; None without one."""
    path = workdir.file(FILE)
    return SeenTexts.load(path) if path.exists() else None


def keep(workdir: Workdir, seen: SeenTexts):
    """Writes the record of the texts that a run is trained and selected on."""
    atomic_writes.write_whole(workdir.path / FILE, seen.save)
