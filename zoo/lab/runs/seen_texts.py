"""Texts that a model has seen, as hashes of their sentences, so that they are found by content.

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
from typing import Any, NamedTuple

import numpy as np

from zoo.base import strict_json
from zoo.base.arrays import array_files
from zoo.configuration import fields
from zoo.data import Conllu, Corpus, Vocabulary
from zoo.errors import UserError
from zoo.experiment import Experiment
from zoo.lab.runs import atomic_writes
from zoo.lab.runs.provenance import Code, check_version
from zoo.lab.runs.workdir import Workdir
from zoo.priors import Arpa, Grammar, Morphology
from zoo.priors.experts import Expert
from zoo.priors.prior import Contextual
from zoo.sources import files

# Sentences that are hashed at once.
_BATCH = 1000
FILE = "texts.npz"
ROLES = ("trained_on", "selected_on")
# Packages whose versions tell their code.
_LIBRARY_PACKAGES = ("zoo", "configs", "jax")


@dataclasses.dataclass(frozen=True)
class SeenText:
    """A text that a model has seen."""

    text: str
    digest: str
    sentences: int
    tokens: int
    by: str  # its origin, such as "this run"


@dataclasses.dataclass(frozen=True)
class KnowledgeText:
    """A text that gave knowledge of words; a file without sentences does not have their numbers."""

    text: str
    digest: str
    sentences: int | None
    tokens: int | None
    by: str
    gave: tuple[str, ...]


def letters(sentence: list[str]) -> str:
    """Joins the words of a sentence for its hash: without blanks, case folded, accents composed."""
    return unicodedata.normalize("NFC", "".join("".join(sentence).split()).casefold())


def hash_letters(spellings: Iterable[str]) -> np.ndarray:
    """Hashes each sentence, given by its `letters`, uint64 [n]."""
    digests = bytearray()  # not a list of them, which takes six times as much
    for text in spellings:
        encoded = text.encode("utf-8", "surrogatepass")
        digests += hashlib.blake2b(encoded, digest_size=8).digest()
    return np.frombuffer(digests, "<u8").astype(np.uint64)


def digest_text(sentences: Iterable[list[str]]) -> tuple[str, int]:
    """Returns (SHA-256 of a text as the JSON list of its sentences, number of its words)."""
    hasher, sentences, words = hashlib.sha256(b"["), iter(sentences), 0
    encoder, separator = json.JSONEncoder(ensure_ascii=False), ""
    # Some sentences at a time: a list's text is that of its elements with ", " between them.
    while batch := [*itertools.islice(sentences, _BATCH)]:
        text = separator + encoder.encode(batch)[1:-1]
        hasher.update(text.encode("utf-8", "surrogatepass"))
        separator, words = ", ", words + sum(map(len, batch))
    hasher.update(b"]")
    return hasher.hexdigest(), words


@dataclasses.dataclass(frozen=True, eq=False)
class Texts:
    """Hashes of the sentences of some texts."""

    hashes: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0, np.uint64))
    about: tuple[SeenText, ...] = ()

    @classmethod
    def from_text(cls, name: str, sentences: Sequence[list[str]], by: str = "this run") -> "Texts":
        """Hashes the sentences of a single text; `by` is its origin."""
        spelled = (text for text in map(letters, sentences) if text)
        digest, tokens = digest_text(sentences)
        about = SeenText(name, digest, len(sentences), tokens, by)
        return cls(np.unique(hash_letters(spelled)), (about,))

    def with_origin(self, by: str) -> "Texts":
        """Puts `by`, such as "init_from runs/a", before the origin of each text."""
        return dataclasses.replace(self, about=_prefix_origins(by, self.about))

    def __add__(self, other: "Texts") -> "Texts":
        """Joins the hashes and the descriptions of the texts."""
        return Texts(np.union1d(self.hashes, other.hashes), (*self.about, *other.about))


def _prefix_origins(by: str, texts: Iterable[Any]) -> tuple[Any, ...]:
    """Returns texts with `by` before their origins, in place of "this run"."""
    origins = ((text, "" if text.by == "this run" else f", {text.by}") for text in texts)
    return tuple(dataclasses.replace(text, by=f"{by}{origin}") for text, origin in origins)


@dataclasses.dataclass(frozen=True)
class _Record:
    """A record of seen texts as JSON, beside the hashes."""

    trained_on: tuple[SeenText, ...]
    selected_on: tuple[SeenText, ...]
    not_known: tuple[str, ...]
    data: str
    made_with: Code | None
    # texts that gave words, features and backgrounds; None where they are not recorded
    knowledge: tuple[KnowledgeText, ...] | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class SeenTexts:
    """The texts that a run has seen, itself or through the runs and backgrounds it is built on."""

    trained_on: Texts
    selected_on: Texts
    not_known: tuple[str, ...] = ()
    data: str = ""
    made_with: Code | None = None
    knowledge: tuple[KnowledgeText, ...] | None = None

    def join(self, inherited: "SeenTexts", by: str) -> "SeenTexts":
        """Returns this record with the texts seen by another run, whose origins then begin with
        `by`; knowledge is None if either record has none."""
        knowledge = None
        if self.knowledge is not None and inherited.knowledge is not None:
            knowledge = (*self.knowledge, *_prefix_origins(by, inherited.knowledge))
        return dataclasses.replace(
            self,
            trained_on=self.trained_on + inherited.trained_on.with_origin(by),
            selected_on=self.selected_on + inherited.selected_on.with_origin(by),
            not_known=(*self.not_known, *(f"{by}, {part}" for part in inherited.not_known)),
            knowledge=knowledge,
        )

    def with_unknown(self, parts: Iterable[str]) -> "SeenTexts":
        """Returns the record with further parts of the model whose texts are not known."""
        return dataclasses.replace(self, not_known=(*self.not_known, *parts))

    def save(self, path: str | pathlib.Path):
        """Writes the record to an .npz file."""
        about = self.trained_on.about, self.selected_on.about
        record = _Record(*about, self.not_known, self.data, self.made_with, self.knowledge)
        arrays = {role: getattr(self, role).hashes for role in ROLES}
        arrays["about"] = np.frombuffer(strict_json.dumps(record).encode(), np.uint8)
        array_files.write(path, arrays, compressed=False)  # hashes would not get smaller

    @classmethod
    def load(cls, path: str | pathlib.Path) -> "SeenTexts":
        """Reads a file that `save` wrote; raises UserError for any other file."""
        try:
            arrays = array_files.read_arrays(path, (*ROLES, "about").__contains__)
            about = strict_json.loads(arrays.pop("about").tobytes())
            record = strict_json.parse(_Record, about)
            check_version(record.made_with.versions if record.made_with else {}, path)
            for role in ROLES:
                array_files.check(arrays[role], np.uint64, role)
            trained_on, selected_on = (Texts(arrays[x], getattr(record, x)) for x in ROLES)
            facts = record.not_known, record.data, record.made_with, record.knowledge
            return cls(trained_on, selected_on, *facts)
        except (OSError, ValueError, KeyError) as error:
            raise UserError(
                f"{path} is not a record of seen texts ({error}): put back a copy, or delete it, "
                "so that it is made again from the data."
            ) from error


# ---- texts that gave a model its knowledge of words: which there are, features and backgrounds
# The tags of a treebank, a list of words or a background tell a model about words before it is
# trained on any sentence. Such a text may be a split of the run's data or a file of its own.


class WordSource(NamedTuple):
    """A part of a recipe that is made from texts, and these texts."""

    gave: str
    prior: Any  # the prior; None for the vocabulary, which chooses the words
    splits: tuple[tuple[str, ...], ...]
    treebanks: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


def word_sources(experiment: Experiment) -> list[WordSource]:
    """Lists the parts of a recipe that learn words from texts: the vocabulary and the priors."""
    vocabulary, head = experiment.vocabulary, experiment.head
    priors: list[tuple[str, Any]] = [("features", prior) for prior in vocabulary.features]
    for prior in (vocabulary.background, head.background):
        kind = "expert" if isinstance(prior, Expert) else "background"
        priors += [] if prior is None else [(kind, prior)]
    word_treebanks = _word_treebanks(experiment.data)
    return [
        WordSource("vocabulary", None, (vocabulary.splits,), word_treebanks),
        *(_prior_source(kind, prior) for kind, prior in priors),
    ]


def _prior_source(kind: str, prior: Any) -> WordSource:
    """Returns the splits, treebanks and files from which a prior learns words."""
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


def _word_treebanks(data) -> tuple[str, ...]:
    """Returns the files of `Conllu.words` of a source, or of the sources within it."""
    sources = [data, *(value for _, _, value in fields.values(data))]
    return tuple(path for source in sources if isinstance(source, Conllu) for path in source.words)


def describe_knowledge(
    experiment: Experiment, corpora: Mapping[str, Corpus]
) -> tuple[KnowledgeText, ...]:
    """Describes each text from which a run learns words, features or a background."""
    gains_by_text: dict[tuple[str, str], list[str]] = {}
    for source in word_sources(experiment):
        names = {split for splits in source.splits for split in (splits or corpora)}
        texts = [("split", split) for split in corpora if split in names]
        texts += [("treebank", path) for path in source.treebanks]
        texts += [("file", path) for path in source.files]
        for text in texts:
            gains_by_text.setdefault(text, []).append(source.gave)

    entries = {} if _word_treebanks(experiment.data) else experiment.data.lexicon_entries()
    if entries:
        dictionary = f"the dictionary of {type(experiment.data).__name__}"
        is_tagged = any(isinstance(prior, Morphology) for prior in experiment.vocabulary.features)
        tags = ["features: Morphology"] if is_tagged and any(entries.values()) else []
        gains_by_text["dictionary", dictionary] = ["vocabulary", *tags]

    descriptions = []
    for (kind, name), gains in gains_by_text.items():
        count: int | None = None
        tokens: int | None = None
        if kind == "dictionary":
            sorted_entries = [[word, *tags] for word, tags in sorted(entries.items())]
            digest, _ = digest_text(sorted_entries)
        elif kind == "file":
            with files.find(name).open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        else:
            if kind == "split":
                name, sentences = corpora[name].name, corpora[name].sentences
            else:
                sentences = read_treebank(name, experiment.vocabulary)
            count = len(sentences)
            digest, tokens = digest_text(sentences)
        gave = tuple(dict.fromkeys(gains))
        descriptions.append(KnowledgeText(name, digest, count, tokens, "this run", gave))
    return tuple(descriptions)


def read_treebank(path: str, vocabulary: Vocabulary) -> Sequence[list[str]]:
    """Reads the sentences of a treebank, in the vocabulary's case."""
    return vocabulary.read(Conllu(train=path, validation=path), "train").sentences


# ---- the texts that a run's model has seen, itself or through the runs that it is built on
# Above are the texts that gave words, features and backgrounds.
#
# Besides its own training and validation text a model may have seen texts through the run that it
# started from (`init_from`) or through its background: another run, or n-grams of further splits.


def collect_seen_texts(
    experiment: Experiment,
    corpora: dict[str, Corpus],
    data: str = "",
    made_with: Code | None = None,
) -> SeenTexts:
    """Collects the texts that a run sees, itself or through the runs and priors it builds on."""
    train, validation = (_hash_corpus(corpora[split]) for split in ("train", "validation"))
    knowledge = describe_knowledge(experiment, corpora)
    record = SeenTexts(train, validation, data=data, made_with=made_with, knowledge=knowledge)
    user_priors = [prior for prior in experiment.vocabulary.features if not _is_part_of_zoo(prior)]
    record = record.with_unknown(f"the features {_user_prior(prior)}" for prior in user_priors)
    if experiment.init_from:
        record = _add_run(record, experiment.init_from, f"init_from {experiment.init_from}")
    return _add_background(record, experiment.head.background, corpora)


def _hash_corpus(corpus):
    """Hashes a text, and its source text if it is the targets of pairs."""
    texts = Texts.from_text(corpus.name, corpus.sentences)
    source = corpus.source_text
    return texts if source is None else texts + Texts.from_text(source.name, source.sentences)


def _add_background(record, background, corpora):
    """Returns the record with the texts of a background, or with its name if they are not known;
    experts and grammars are not estimated from texts."""
    if background is None or isinstance(background, Grammar):
        return record
    name = f"the background {type(background).__name__}"
    if background.workdir is not None:
        return _add_run(record, background.workdir, f"{name} {background.workdir}")
    if isinstance(background, Arpa):
        return record.with_unknown([f"{name} {background.path}"])
    if not _is_part_of_zoo(background):
        return record.with_unknown([f"the background {_user_prior(background)}"])
    for split in background.splits:
        if split != "train":
            text = Texts.from_text(corpora[split].name, corpora[split].sentences, name)
            record = dataclasses.replace(record, trained_on=record.trained_on + text)
    return record


def module_digests(experiment: Experiment) -> dict[str, str]:
    """Returns {module: SHA-256 of its source file} of the user's modules that a recipe uses."""
    modules = {getattr(value, "__module__", "zoo") for *_, value in fields.values(experiment)}
    names = sorted(name for name in modules if name.partition(".")[0] not in _LIBRARY_PACKAGES)
    paths = {name: getattr(sys.modules.get(name), "__file__", None) for name in names}
    sources = {name: pathlib.Path(path).read_bytes() for name, path in paths.items() if path}
    return {name: hashlib.sha256(content).hexdigest() for name, content in sources.items()}


def _is_part_of_zoo(prior):
    """Whether a prior's class belongs to Zoo."""
    return type(prior).__module__.startswith("zoo.")


def _user_prior(prior):
    """Describes a prior of the user's own, for the parts that are not known."""
    return f"{type(prior).__name__}, which is not a part of Zoo"


def _add_run(record, workdir, by):
    """Returns the record with the texts seen by another run, or with `by` as not known if that run
    has no record of its present data."""
    inherited = load_seen_texts(workdir)
    return record.with_unknown([by]) if inherited is None else record.join(inherited, by)


def load_seen_texts(path: str | pathlib.Path) -> SeenTexts | None:
    """Reads the record of seen texts of a run; None if it is missing or its data differ."""
    workdir = Workdir(path)
    if not workdir.exists():
        return None
    record, data_digest = read_record(workdir), workdir.data_digest()
    return record if record is not None and data_digest in ("", record.data) else None


def read_record(workdir: Workdir) -> SeenTexts | None:
    """Reads the record of seen texts in a run's folder, of any data; None if it is missing."""
    path = workdir.file(FILE)
    return SeenTexts.load(path) if path.exists() else None


def write_record(workdir: Workdir, record: SeenTexts):
    """Writes the record of seen texts to a run's folder."""
    atomic_writes.write_whole(workdir.path / FILE, record.save)
