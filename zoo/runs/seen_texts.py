"""Which texts a model has seen: hashes of their sentences, so that a text is found by content.

A sentence is known by its letters: its words joined, without blanks, in lower case. So it is found
whatever the file is called, in whichever order and range, among the texts of a mixture, and whether
words or characters were the model's words. Where one text has other sentence ends than the other,
its sentences are others.
"""

import dataclasses
import hashlib
import json
import pathlib
import unicodedata
from collections.abc import Iterable

import numpy as np

from zoo import strict_json
from zoo.arrays import array_files
from zoo.errors import UserError

ROLES = ("trained_on", "selected_on")
_TEXT = {"text": str, "by": str, "digest": str, "sentences": int, "tokens": int}
_ABOUT = {
    **{role: [_TEXT] for role in ROLES},
    "not_known": [str],
    "data": str,
    "made_with": dict,
}


def letters(sentence: list[str]) -> str:
    """The letters by which a sentence is known: its letters, digits and marks, without blanks or
    capitals, and composed letters for those that are written as a letter and an accent."""
    return unicodedata.normalize("NFC", "".join("".join(sentence).split()).casefold())


def hashes_of(spelled: Iterable[str]) -> np.ndarray:
    """64 bits of the letters of each sentence, uint64 [n]."""
    texts = (text.encode("utf-8", "surrogatepass") for text in spelled)
    hashed = bytearray()  # not a list of them, which takes six times as much
    for text in texts:
        hashed += hashlib.blake2b(text, digest_size=8).digest()
    return np.frombuffer(hashed, "<u8").astype(np.uint64)


def digest_of(sentences: Iterable[list[str]]) -> str:
    """sha256 of a whole text as it was read, its words, their order and the ends of sentences: that
    of the JSON list of its sentences."""
    hasher = hashlib.sha256(b"[")
    for number, sentence in enumerate(sentences):
        words = json.dumps(sentence, ensure_ascii=False)
        hasher.update(f"{', ' if number else ''}{words}".encode("utf-8", "surrogatepass"))
    hasher.update(b"]")
    return hasher.hexdigest()


@dataclasses.dataclass(frozen=True, eq=False)
class Texts:
    """Texts known by hashes of their sentences.

    Attributes:
      hashes: uint64, sorted, each once: of the sentences that have letters.
      about: for each text {"text": where it came from, "by": "this run", or through what it came
        into the model, "digest": see `digest_of`, "sentences", "tokens": how many}.
    """

    hashes: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0, np.uint64))
    about: tuple[dict, ...] = ()

    @classmethod
    def of(cls, name: str, sentences: list[list[str]], by: str = "this run") -> "Texts":
        """Makes the hashes of a single text, its sentences as lists of words as read (before
        <unk>)."""
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
        """The texts as they came into another model through something, such as init_from."""
        named = ({**text, "by": _chained(by, text["by"])} for text in self.about)
        return dataclasses.replace(self, about=tuple(named))

    def __add__(self, other: "Texts") -> "Texts":
        return Texts(np.union1d(self.hashes, other.hashes), (*self.about, *other.about))

    def has(self, hashes: np.ndarray) -> np.ndarray:
        """Which sentences, by the `hashes_of` their letters, are among them, bool [n]."""
        return np.isin(hashes, self.hashes)


def _chained(outer, inner):
    return outer if inner == "this run" else f"{outer}, {inner}"


@dataclasses.dataclass(frozen=True, eq=False)
class SeenTexts:
    """The texts that the parameters of a run, and what it is built upon, have seen.

    Attributes:
      trained_on: texts that gave values to parameters or counts.
      selected_on: texts that a checkpoint was chosen on.
      not_known: parts of the model of which it cannot be known what they have seen, in words.
      data: the digest of the training and validation text as the run encodes them.
      made_with: {"revision": of the zoo that began the training, ...}.
    """

    trained_on: Texts
    selected_on: Texts
    not_known: tuple[str, ...] = ()
    data: str = ""
    made_with: dict = dataclasses.field(default_factory=dict)

    def joined(self, other: "SeenTexts", by: str) -> "SeenTexts":
        """The texts with those of another run, which came in through `by`."""
        return dataclasses.replace(
            self,
            trained_on=self.trained_on + other.trained_on.through(by),
            selected_on=self.selected_on + other.selected_on.through(by),
            not_known=(*self.not_known, *(f"{by}, {part}" for part in other.not_known)),
        )

    def without_record(self, parts: Iterable[str]) -> "SeenTexts":
        """The texts with further parts of which nothing is known."""
        return dataclasses.replace(self, not_known=(*self.not_known, *parts))

    def save(self, path: str | pathlib.Path):
        """Writes all of it as one .npz file."""
        about = {role: getattr(self, role).about for role in ROLES}
        rest = {"not_known": self.not_known, "data": self.data, "made_with": self.made_with}
        arrays = {role: getattr(self, role).hashes for role in ROLES}
        arrays["about"] = np.frombuffer(json.dumps({**about, **rest}).encode(), np.uint8)
        with open(path, "wb") as file:  # numpy would add .npz to a path without it
            np.savez(file, **arrays)  # hashes do not get smaller by compression

    @classmethod
    def load(cls, path: str | pathlib.Path) -> "SeenTexts":
        """Reads what `save` wrote; UserError if it is not that."""
        try:
            arrays = array_files.unpacked(path, (*ROLES, "about").__contains__)
            about = strict_json.of_bytes(arrays.pop("about"))
            strict_json.check(about, _ABOUT)
            for role in ROLES:
                array_files.check(arrays[role], np.uint64, role)
            texts = {role: Texts(arrays[role], tuple(about[role])) for role in ROLES}
            rest = about["data"], about["made_with"]
            return cls(
                **texts, not_known=tuple(about["not_known"]), data=rest[0], made_with=rest[1]
            )
        except (OSError, ValueError, KeyError) as error:
            raise UserError(
                f"{path} is no record of texts of this zoo ({error}): put back a copy, or delete "
                "it, so that it is made again from the data."
            ) from error
