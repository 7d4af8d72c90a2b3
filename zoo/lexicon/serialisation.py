"""Lexicons as arrays, in files and in hashes."""

import hashlib
import json

import numpy as np

from zoo import strict_json
from zoo.arrays import array_files
from zoo.errors import UserError

_ARRAY_FIELDS = ("counts", "feature_offsets", "feature_ids", "feature_values", "log_background")
_BACKGROUND = "background_tables."
# Fields that are stored as JSON; the last three are optional.
_JSON = {
    "words": list,
    "feature_names": list,
    "marks": [str | None],
    "alphabet": list,
    "left_out": dict,
    "fused": dict,
}
_OPTIONAL = ("alphabet", "left_out", "fused")


def words_digest(lexicon) -> str:
    """Computes a hash of the words of a lexicon and their order."""
    return _digest(json.dumps(lexicon.words, ensure_ascii=False).encode())


def words_set_digest(lexicon) -> str:
    """Computes a hash of the set of words and of the marks, whatever the order of words."""
    marks = (lexicon.unknown, lexicon.boundary)
    return _digest(json.dumps([sorted(lexicon.words), marks], ensure_ascii=False).encode())


def digest(lexicon) -> str:
    """Computes a hash of everything in a lexicon on which a model depends."""
    return _digest_of_arrays(_arrays(lexicon))


def save(lexicon, path):
    """Writes a lexicon to one .npz file."""
    arrays, notes = _arrays(lexicon), _notes(lexicon)
    with open(path, "wb") as file:  # numpy would add .npz to a path without it
        # The digest comes first: an archive whose list is cut short lacks the last arrays.
        digest = np.frombuffer(_digest_of_arrays(arrays | notes).encode(), np.uint8)
        np.savez_compressed(file, digest=digest, **notes, **arrays)


def load(kind, path):
    """Reads the lexicon of a file."""
    try:
        arrays = array_files.unpacked(path, _known)
        if "digest" not in arrays:
            raise ValueError("it has no digest")
        kept = arrays.pop("digest")
        lexicon = _of_arrays(kind, arrays)
        # The checksums of an archive are not enough: they do not cover its list of arrays.
        digest = _digest_of_arrays(_arrays(lexicon) | _notes(lexicon)).encode()
        if kept.tobytes() != digest:
            raise ValueError("its digest does not match its content")
        return lexicon
    except Exception as error:  # a damaged archive shows itself in many ways
        raise UserError(f"{path} is missing or not a lexicon of this zoo ({error}).") from error


def _known(name):
    """Whether the file of a lexicon may have an array of this name."""
    return name in (*_JSON, *_ARRAY_FIELDS, "digest") or name.startswith(_BACKGROUND)


def _arrays(lexicon):
    """Returns the arrays on which a model depends."""
    strings = {
        "words": lexicon.words,
        "feature_names": lexicon.feature_names,
        "marks": (lexicon.unknown, lexicon.boundary),
    }
    if lexicon.alphabet is not None:
        strings["alphabet"] = lexicon.alphabet
    arrays = {name: _as_bytes(value) for name, value in strings.items()}
    for name in _ARRAY_FIELDS:
        if getattr(lexicon, name) is not None:
            arrays[name] = getattr(lexicon, name)
    for name, array in lexicon.background_tables.items():
        arrays[_BACKGROUND + name] = array
    return arrays


def _notes(lexicon):
    """Returns the arrays on which no model depends, left out of the model's digest."""
    return {name: _as_bytes(getattr(lexicon, name)) for name in ("left_out", "fused")}


def _of_arrays(kind, arrays):
    """Makes the lexicon of the arrays of `_arrays` and `_notes`."""
    strings = {
        name: strict_json.of_bytes(arrays.pop(name))
        for name in _JSON
        if name in arrays or name not in _OPTIONAL
    }
    strict_json.check(strings, {name: _JSON[name] for name in strings})
    for form, words in strings.get("fused", {}).items():
        strict_json.check(words, [str], f"fused {form!r}")
    unknown, boundary = strings["marks"]
    background = {
        name.removeprefix(_BACKGROUND): arrays.pop(name)
        for name in list(arrays)
        if name.startswith(_BACKGROUND)
    }
    alphabet = strings.get("alphabet")
    return kind(
        words=tuple(strings["words"]),
        feature_names=tuple(strings["feature_names"]),
        unknown=unknown,
        boundary=boundary,
        background_tables=background,
        alphabet=None if alphabet is None else tuple(alphabet),
        left_out=strings.get("left_out", {}),
        fused={form: tuple(words) for form, words in strings.get("fused", {}).items()},
        **arrays,
    )


def _as_bytes(value) -> np.ndarray:
    return np.frombuffer(json.dumps(value, ensure_ascii=False).encode(), np.uint8)


def _digest_of_arrays(arrays):
    return _digest(*(name.encode() + array.tobytes() for name, array in arrays.items()))


def _digest(*parts: bytes) -> str:
    hasher = hashlib.sha256()
    for part in parts:
        hasher.update(len(part).to_bytes(8, "little"))
        hasher.update(part)
    return hasher.hexdigest()[:16]
