"""A lexicon as arrays: in a file, and in the hashes that tell lexicons apart."""

import hashlib
import json

import numpy as np

from zoo import strict_json
from zoo.arrays import array_files
from zoo.errors import UserError

_ARRAY_FIELDS = ("counts", "feature_offsets", "feature_ids", "feature_values", "log_background")
_BACKGROUND = "background_tables."
# Strings and what is counted of them, each as JSON; the last three only where there is something.
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
    """A hash of the words and their order."""
    return _digest(json.dumps(lexicon.words, ensure_ascii=False).encode())


def words_set_digest(lexicon) -> str:
    """A hash of the words whatever their order, and of which are the marks."""
    marks = (lexicon.unknown, lexicon.boundary)
    return _digest(json.dumps([sorted(lexicon.words), marks], ensure_ascii=False).encode())


def digest(lexicon) -> str:
    """A hash of everything that a model depends on."""
    return _digest_of_arrays(_arrays(lexicon))


def save(lexicon, path):
    """Writes one .npz file."""
    arrays, notes = _arrays(lexicon), _notes(lexicon)
    with open(path, "wb") as file:  # numpy would add .npz to a path without it
        # The digest is the first, for an archive whose list is cut short lacks the last ones.
        digest = np.frombuffer(_digest_of_arrays(arrays | notes).encode(), np.uint8)
        np.savez_compressed(file, digest=digest, **notes, **arrays)


def load(kind, path):
    """The lexicon of a file, of the class `kind`; UserError if it is missing, damaged, another's
    or holds what makes no lexicon."""
    try:
        arrays = array_files.unpacked(path, _known)
        if "digest" not in arrays:
            raise ValueError("it has no digest")
        kept = arrays.pop("digest")
        lexicon = _of_arrays(kind, arrays)
        # The sums of an archive are not enough: they leave its list of arrays out.
        digest = _digest_of_arrays(_arrays(lexicon) | _notes(lexicon)).encode()
        if kept.tobytes() != digest:
            raise ValueError("it is not as it was saved")
        return lexicon
    except Exception as error:  # a damaged archive shows itself in many ways
        raise UserError(f"{path} is missing or not a lexicon of this zoo ({error}).") from error


def _known(name):
    """Whether the file of a lexicon may have an array of a name."""
    return name in (*_JSON, *_ARRAY_FIELDS, "digest") or name.startswith(_BACKGROUND)


def _arrays(lexicon):
    """Without what no model depends on."""
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
    """What no model depends on."""
    return {name: _as_bytes(getattr(lexicon, name)) for name in ("left_out", "fused")}


def _of_arrays(kind, arrays):
    """The lexicon of `_arrays` and, in newer files, `_notes`."""
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
