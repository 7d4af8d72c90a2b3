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
import unicodedata
from collections.abc import Iterable

import numpy as np

from zoo import strict_json
from zoo.arrays import array_files
from zoo.errors import UserError

# Sentences that are hashed at once.
_AT_ONCE = 1000
ROLES = ("trained_on", "selected_on")
_TEXT = {"text": str, "by": str, "digest": str, "sentences": int, "tokens": int}
# A text that gave knowledge of words: a file without sentences does not have their numbers.
_GIVEN = {**_TEXT, "gave": [str], "sentences": int | None, "tokens": int | None}
_ABOUT = {
    **{role: [_TEXT] for role in ROLES},
    "not_known": [str],
    "data": str,
    "made_with": dict,
}


def letters(sentence: list[str]) -> str:
    """Returns the letters of a sentence, from which its hash is made.

    Words are joined, blanks removed, case folded and accents composed (NFC).
    """
    return unicodedata.normalize("NFC", "".join("".join(sentence).split()).casefold())


def hashes_of(spelled: Iterable[str]) -> np.ndarray:
    """Hashes the letters of each sentence, uint64 [n]."""
    texts = (text.encode("utf-8", "surrogatepass") for text in spelled)
    hashed = bytearray()  # not a list of them, which takes six times as much
    for text in texts:
        hashed += hashlib.blake2b(text, digest_size=8).digest()
    return np.frombuffer(hashed, "<u8").astype(np.uint64)


def digest_of(sentences: Iterable[list[str]]) -> str:
    """Computes the SHA-256 of a whole text, as the JSON list of its sentences."""
    hasher, sentences = hashlib.sha256(b"["), iter(sentences)
    encoder, before = json.JSONEncoder(ensure_ascii=False), ""
    # Some sentences at a time: a list's text is that of its elements with ", " between them.
    while some := [*itertools.islice(sentences, _AT_ONCE)]:
        text = before + encoder.encode(some)[1:-1]
        hasher.update(text.encode("utf-8", "surrogatepass"))
        before = ", "
    hasher.update(b"]")
    return hasher.hexdigest()


@dataclasses.dataclass(frozen=True, eq=False)
class Texts:
    """Hashes of the sentences of some texts."""

    hashes: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0, np.uint64))
    about: tuple[dict, ...] = ()

    @classmethod
    def of(cls, name: str, sentences: list[list[str]], by: str = "this run") -> "Texts":
        """Hashes the sentences of a single text."""
        about = {
            "text": name,
            "by": by,
            "digest": digest_of(sentences),
            "sentences": len(sentences),
            "tokens": sum(map(len, sentences)),
        }
        spelled = (text for text in map(letters, sentences) if text)
        return cls(np.unique(hashes_of(spelled)), (about,))

    def through(self, by: str) -> "Texts":
        """Returns the texts with `by` put before their origin, such as "init_from runs/a"."""
        named = ({**text, "by": _chained(by, text["by"])} for text in self.about)
        return dataclasses.replace(self, about=tuple(named))

    def __add__(self, other: "Texts") -> "Texts":
        return Texts(np.union1d(self.hashes, other.hashes), (*self.about, *other.about))

    def has(self, hashes: np.ndarray) -> np.ndarray:
        """Whether each of some sentences is in the texts, bool [n]."""
        return np.isin(hashes, self.hashes)


def _chained(outer, inner):
    return outer if inner == "this run" else f"{outer}, {inner}"


def _joined(own, others, by):
    """Joins two records of knowledge; None if one of them is."""
    if own is None or others is None:
        return None
    return (*own, *({**text, "by": _chained(by, text["by"])} for text in others))


@dataclasses.dataclass(frozen=True, eq=False)
class SeenTexts:
    """The texts that a run has seen, itself or through the runs and backgrounds it is built on."""

    trained_on: Texts
    selected_on: Texts
    not_known: tuple[str, ...] = ()
    data: str = ""
    made_with: dict = dataclasses.field(default_factory=dict)
    # texts that gave words, features and backgrounds, as `zoo.runs.word_sources` records them; None
    # where they are not recorded
    knowledge: tuple[dict, ...] | None = None

    def joined(self, other: "SeenTexts", by: str) -> "SeenTexts":
        """Adds the texts of another run."""
        return dataclasses.replace(
            self,
            trained_on=self.trained_on + other.trained_on.through(by),
            selected_on=self.selected_on + other.selected_on.through(by),
            not_known=(*self.not_known, *(f"{by}, {part}" for part in other.not_known)),
            knowledge=_joined(self.knowledge, other.knowledge, by),
        )

    def without_record(self, parts: Iterable[str]) -> "SeenTexts":
        """Adds names of parts of the model whose texts are not known."""
        return dataclasses.replace(self, not_known=(*self.not_known, *parts))

    def save(self, path: str | pathlib.Path):
        """Writes the record to an .npz file."""
        about = {role: getattr(self, role).about for role in ROLES}
        rest = {
            "not_known": self.not_known,
            "data": self.data,
            "made_with": self.made_with,
            "knowledge": self.knowledge,
        }
        arrays = {role: getattr(self, role).hashes for role in ROLES}
        arrays["about"] = np.frombuffer(json.dumps({**about, **rest}).encode(), np.uint8)
        with open(path, "wb") as file:  # numpy would add .npz to a path without it
            np.savez(file, **arrays)  # hashes do not get smaller by compression

    @classmethod
    def load(cls, path: str | pathlib.Path) -> "SeenTexts":
        """Reads a file that `save` wrote; UserError if it is not one."""
        try:
            arrays = array_files.unpacked(path, (*ROLES, "about").__contains__)
            about = strict_json.of_bytes(arrays.pop("about"))
            strict_json.check(about, _ABOUT)
            knowledge = about.get("knowledge")
            if knowledge is not None:
                strict_json.check(knowledge, [_GIVEN], "knowledge")
            for role in ROLES:
                array_files.check(arrays[role], np.uint64, role)
            texts = {role: Texts(arrays[role], tuple(about[role])) for role in ROLES}
            return cls(
                **texts,
                not_known=tuple(about["not_known"]),
                data=about["data"],
                made_with=about["made_with"],
                knowledge=None if knowledge is None else tuple(knowledge),
            )
        except (OSError, ValueError, KeyError) as error:
            raise UserError(
                f"{path} is not a record of seen texts ({error}): put back a copy, or delete it, "
                "so that it is made again from the data."
            ) from error
