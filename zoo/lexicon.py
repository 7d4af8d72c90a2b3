"""Everything that is fixed and per word: spellings, counts, features, background.

The `Lexicon` lives on the host and is kept with a run. `Lexicon.tables` gives what the device needs
as a pytree of arrays, which is passed as an argument to every jitted function, never closed over.

Signatures. Words with the same feature set share every feature score, so the vocabulary of V words
is grouped into its S distinct feature sets, the signatures. A linear function of the features is
computed for signatures only (`sum_features`) and gathered for words.
"""

import dataclasses
import functools
import hashlib
import json
import pathlib
import zipfile
import zlib

import jax
import jax.numpy as jnp
import numpy as np

from zoo.errors import UserError


@dataclasses.dataclass(frozen=True, eq=False)
class Lexicon:
    """The words, and what is known of each.

    Attributes:
      words: spellings; a word's id is its place.
      counts: int64 [V], occurrences in the training text.
      feature_names: names of the F features; empty if words have none.
      feature_offsets: int64 [V + 1]; word v has features feature_ids[offsets[v]:offsets[v + 1]].
      feature_ids: int32, sorted within a word. feature_values: float32, as many; 1 if binary.
      log_background: float64 [V], log b(v) in nats, or None for a uniform one.
      unknown: the word that stands for words outside the lexicon, or None.
      boundary: the word that stands between sentences, or None.
      alphabet: the characters that have a letter of their own; None for those of the words. A
        lexicon that takes the place of another after training has the other's.
    """

    words: tuple[str, ...]
    counts: np.ndarray
    feature_names: tuple[str, ...] = ()
    feature_offsets: np.ndarray | None = None
    feature_ids: np.ndarray | None = None
    feature_values: np.ndarray | None = None
    log_background: np.ndarray | None = None
    unknown: str | None = None
    boundary: str | None = None
    alphabet: tuple[str, ...] | None = None

    def __len__(self):
        return len(self.words)

    @functools.cached_property
    def ids(self) -> dict[str, int]:
        """The id of each word."""
        return {word: place for place, word in enumerate(self.words)}

    @functools.cached_property
    def letters(self) -> tuple[str, ...]:
        """The alphabet, in the order of code points unless it was given."""
        if self.alphabet is not None:
            return self.alphabet
        marks = (self.unknown, self.boundary)
        return tuple(sorted(set().union(*(word for word in self.words if word not in marks))))

    def features_of(self, word: int) -> list[str]:
        """The names of the features of a word."""
        start, stop = self.feature_offsets[word : word + 2]
        return [self.feature_names[f] for f in self.feature_ids[start:stop]]

    @functools.cached_property
    def signatures(self) -> tuple[np.ndarray, list[tuple[np.ndarray, np.ndarray]]]:
        """(signature of each word, int32 [V]; (feature ids, values) of each signature)."""
        places, members, signature_of_word = {}, [], np.zeros(len(self), np.int32)
        for word in range(len(self)):
            start, stop = self.feature_offsets[word : word + 2]
            ids, values = self.feature_ids[start:stop], self.feature_values[start:stop]
            key = ids.tobytes() + values.tobytes()
            if key not in places:
                places[key] = len(members)
                members.append((ids, values))
            signature_of_word[word] = places[key]
        return signature_of_word, members

    def tables(self) -> dict[str, jax.Array]:
        """What the device needs; see `signature_tables` for the part about features."""
        if not self.feature_names:
            return {}
        return {name: jnp.asarray(array) for name, array in signature_tables(self).items()}

    def words_digest(self) -> str:
        """A hash of the words and their order: equal where probabilities are over the same V."""
        return _digest(json.dumps(self.words, ensure_ascii=False).encode())

    def digest(self) -> str:
        """A hash of everything in the lexicon."""
        return _digest(*(name.encode() + array.tobytes() for name, array in self._arrays().items()))

    def _arrays(self):
        """The lexicon as arrays, for storage and hashing."""
        strings = {
            "words": self.words,
            "feature_names": self.feature_names,
            "marks": (self.unknown, self.boundary),
        }
        if self.alphabet is not None:
            strings["alphabet"] = self.alphabet
        arrays = {
            name: np.frombuffer(json.dumps(value, ensure_ascii=False).encode(), np.uint8)
            for name, value in strings.items()
        }
        for name in _ARRAY_FIELDS:
            if getattr(self, name) is not None:
                arrays[name] = getattr(self, name)
        return arrays

    def save(self, path: str | pathlib.Path):
        """Writes the lexicon as one .npz file."""
        with open(path, "wb") as file:  # numpy would add .npz to a path without it
            np.savez_compressed(file, **self._arrays())

    @classmethod
    def load(cls, path: str | pathlib.Path) -> "Lexicon":
        """Reads what `save` wrote."""
        try:
            # The file is opened here because np.load leaves a broken archive open.
            with open(path, "rb") as file, np.load(file) as archive:
                arrays = dict(archive)
            strings = {
                name: json.loads(arrays.pop(name).tobytes().decode())
                for name in ("words", "feature_names", "marks", "alphabet")
                if name in arrays or name != "alphabet"
            }
        except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as error:
            raise UserError(f"{path} is missing or not a lexicon of this zoo ({error}).") from error
        unknown, boundary = strings["marks"]
        alphabet = strings.get("alphabet")
        return cls(
            words=tuple(strings["words"]),
            feature_names=tuple(strings["feature_names"]),
            unknown=unknown,
            boundary=boundary,
            alphabet=None if alphabet is None else tuple(alphabet),
            **arrays,
        )


_ARRAY_FIELDS = ("counts", "feature_offsets", "feature_ids", "feature_values", "log_background")


def _digest(*parts: bytes) -> str:
    hasher = hashlib.sha256()
    for part in parts:
        hasher.update(len(part).to_bytes(8, "little"))
        hasher.update(part)
    return hasher.hexdigest()[:16]


def with_features(
    lexicon: Lexicon,
    features: list[dict[str, float]],
    log_background: np.ndarray | None = None,
) -> Lexicon:
    """The lexicon with a dict {feature name: value} for each word and a background."""
    names = {name: place for place, name in enumerate(sorted(set().union(*features)))}
    offsets, ids, values = [0], [], []
    for word_features in features:
        for name in sorted(word_features):
            ids.append(names[name])
            values.append(word_features[name])
        offsets.append(len(ids))
    return dataclasses.replace(
        lexicon,
        feature_names=tuple(names),
        feature_offsets=np.array(offsets, np.int64),
        feature_ids=np.array(ids, np.int32),
        feature_values=np.array(values, np.float32),
        log_background=log_background,
    )


def signature_tables(lexicon: Lexicon) -> dict[str, np.ndarray]:
    """The tables of features and background.

    A feature of a single signature (a word's identity, as a rule) is private and is summed by a
    gather; the others (tags) are shared and are summed by a dense product with few columns.

    Returns:
      signature: int32 [V]. log_mass: log B(s) [S], nats. log_within: log b(v)/B(s(v)) [V], nats.
      shared_values: phi of the shared features, [S, shared]. shared_features: their ids.
      private_features: int32 [S, P], padded with F. private_values: [S, P], padded with 0.
      private_signature: int32 [F], the one signature that has the feature, or S if it is shared.
      private_signature_value: [F], its value there, or 0 if it is shared.
    """
    signature, members = lexicon.signatures
    signature_count, feature_count = len(members), len(lexicon.feature_names)
    log_background = lexicon.log_background
    if log_background is None:
        log_background = np.full(len(lexicon), -np.log(len(lexicon)))
    mass = np.zeros(signature_count)
    np.add.at(mass, signature, np.exp(log_background))
    with np.errstate(divide="ignore", invalid="ignore"):
        log_mass = np.log(mass)
        # A signature without mass has words without mass: log(0 / 0) is log 0 here.
        log_within = np.where(
            np.isneginf(log_background), -np.inf, log_background - log_mass[signature]
        )

    uses = np.bincount(np.concatenate([ids for ids, _ in members]), minlength=feature_count)
    shared = np.flatnonzero(uses > 1).astype(np.int32)
    column = np.full(feature_count, -1)
    column[shared] = np.arange(len(shared))
    shared_values = np.zeros((signature_count, len(shared)), np.float32)
    privates = []
    private_signature = np.full(feature_count, signature_count, np.int32)
    private_signature_value = np.zeros(feature_count, np.float32)
    for place, (ids, values) in enumerate(members):
        alone = uses[ids] == 1
        shared_values[place, column[ids[~alone]]] = values[~alone]
        privates.append((ids[alone], values[alone]))
        private_signature[ids[alone]] = place
        private_signature_value[ids[alone]] = values[alone]
    width = max(len(ids) for ids, _ in privates)
    private_features = np.full((signature_count, width), feature_count, np.int32)
    private_values = np.zeros((signature_count, width), np.float32)
    for place, (ids, values) in enumerate(privates):
        private_features[place, : len(ids)] = ids
        private_values[place, : len(ids)] = values
    return {
        "signature": signature,
        "log_mass": log_mass.astype(np.float32),
        "log_within": log_within.astype(np.float32),
        "shared_values": shared_values,
        "shared_features": shared,
        "private_features": private_features,
        "private_values": private_values,
        "private_signature": private_signature,
        "private_signature_value": private_signature_value,
    }


@jax.custom_vjp
def _sum_private(vectors, tables):
    gathered = jnp.take(vectors, tables["private_features"], axis=0, mode="fill", fill_value=0)
    return jnp.einsum("sp,spd->sd", tables["private_values"].astype(vectors.dtype), gathered)


def _sum_private_forward(vectors, tables):
    return _sum_private(vectors, tables), tables


def _sum_private_backward(tables, cotangent):
    # Each private feature belongs to one signature: the transpose of the gather is a gather too,
    # which is many times faster than the scatter that autodiff would make of it.
    rows = jnp.take(cotangent, tables["private_signature"], axis=0, mode="fill", fill_value=0)
    return tables["private_signature_value"].astype(cotangent.dtype)[:, None] * rows, None


_sum_private.defvjp(_sum_private_forward, _sum_private_backward)


def sum_features(tables: dict[str, jax.Array], vectors: jax.Array) -> jax.Array:
    """The vector of each signature, sum_f phi_sf * vectors_f.

    Args:
      tables: of `Lexicon.tables`. vectors: [F, D], one for each feature.

    Returns:
      [S, D].
    """
    shared = tables["shared_values"].astype(vectors.dtype) @ vectors[tables["shared_features"]]
    return shared + _sum_private(vectors, tables)
