"""The fields of a lexicon: their checks, and their arrays in files and in hashes.

Fields are checked when a lexicon is made or read. A head looks up ids of words in arrays of the
lexicon: an array that is too short would give wrong numbers without an error.
"""

import hashlib
import json

import numpy as np

from zoo.base import strict_json
from zoo.base.arrays import array_files
from zoo.errors import UserError, quote

_FEATURES = ("feature_offsets", "feature_ids", "feature_values")
_ARRAYS = ("counts", *_FEATURES, "log_background")
_BACKGROUND = "background_tables."
# Fields that are stored as JSON; the last three are optional.
_JSON = {
    "words": list,
    "feature_names": list,
    "marks": list[str | None],
    "alphabet": list,
    "left_out": dict[str, int],
    "fused": dict[str, list[str]],
}
_OPTIONAL = ("alphabet", "left_out", "fused")


def check(lexicon):
    """Checks all fields of a lexicon; errors name the field."""
    if lexicon.words == ():
        _refuse(ValueError, "words", "is empty: give one word at least")
    for name in ("words", "feature_names", "alphabet"):
        if getattr(lexicon, name) is not None:
            _check_strings(lexicon, name)
    for letter in lexicon.alphabet or ():
        if len(letter) != 1:
            _refuse(ValueError, "alphabet", f"has {letter!r}, which is not one character")
    reason = f"one for each of {len(lexicon.words):,} words"
    _check_array(lexicon, "counts", np.integer, len(lexicon.words), reason)
    _check_numbers(lexicon, "counts", lexicon.counts < 0, "0 or more")
    if lexicon.counts.sum(dtype=np.float64) >= 2**63:
        _refuse(ValueError, "counts", "add up to 2^63 or more: give counts of a text")
    _check_features(lexicon)
    if lexicon.log_background is not None:
        _check_array(lexicon, "log_background", np.floating, len(lexicon.words), reason)
        wrong = ~(lexicon.log_background < np.inf)  # of nan, too
        _check_numbers(lexicon, "log_background", wrong, "nats, -inf for no mass")
    for name in ("unknown", "boundary"):
        mark = getattr(lexicon, name)
        if not isinstance(mark, str | None):
            _refuse(TypeError, name, f"is a {type(mark).__name__}: give a word or None")
        if mark is not None and mark not in lexicon.ids:
            words = quote(list(lexicon.words[:4]), 3)
            _refuse(ValueError, name, f"is {mark!r}, which is not among the words {words}")
    if lexicon.unknown is not None and lexicon.unknown == lexicon.boundary:
        _refuse(ValueError, "unknown", f"is {lexicon.unknown!r}, and so is the boundary")
    _check_dicts(lexicon)


def _refuse(kind, name, problem):
    raise kind(f"Lexicon.{name} {problem}")


def _check_strings(lexicon, name):
    strings = getattr(lexicon, name)
    if not isinstance(strings, tuple):
        _refuse(TypeError, name, f"is a {type(strings).__name__}: give a tuple of strings")
    if not all(issubclass(kind, str) for kind in set(map(type, strings))):
        position, wrong = next((p, s) for p, s in enumerate(strings) if not isinstance(s, str))
        problem = f"has {wrong!r} at {position}, which is not a string: give a tuple of strings"
        _refuse(TypeError, name, problem)
    if len(lexicon.ids if name == "words" else set(strings)) == len(strings):
        return
    first: dict = {}
    for position, string in enumerate(strings):
        if first.setdefault(string, position) < position:
            _refuse(ValueError, name, f"has {string!r} twice, at {first[string]} and {position}")


def _check_array(lexicon, name, kind, size, reason):
    """Raises TypeError unless the field is an array of this kind, ValueError for another shape."""
    array = getattr(lexicon, name)
    kinds = {np.integer: "integers", np.floating: "floats"}
    if not isinstance(array, np.ndarray):
        problem = f"is a {type(array).__name__}: give a numpy array of {kinds[kind]}"
        _refuse(TypeError, name, problem)
    if not np.issubdtype(array.dtype, kind):
        _refuse(TypeError, name, f"has numbers of {array.dtype}: give {kinds[kind]}")
    if array.shape != (size,):
        problem = f"has the shape {array.shape} and should have {(size,)}: {reason}"
        _refuse(ValueError, name, problem)


def _check_numbers(lexicon, name, wrong, expected):
    """Raises ValueError for the first word whose number in a field is wrong."""
    if wrong.any():
        word_id = int(wrong.argmax())
        number = getattr(lexicon, name)[word_id]
        _refuse(ValueError, name, f"has {number} for {lexicon.words[word_id]!r}: give {expected}")


def _check_features(lexicon):
    """Checks the arrays of features: all are given or none is, and ids rise within each word."""
    present = [name for name in _FEATURES if getattr(lexicon, name) is not None]
    if not present and not lexicon.feature_names:
        return
    for name in _FEATURES:
        if name not in present:
            present_names = ", ".join(present) or "feature_names"
            _refuse(ValueError, name, f"is None where there is {present_names}: give all or none")
    count, names = len(lexicon.words), len(lexicon.feature_names)
    offsets, ids, values = (getattr(lexicon, name) for name in _FEATURES)
    _check_array(lexicon, _FEATURES[0], np.integer, count + 1, f"{count:,} words and one more")
    array_files.check_offsets(offsets, f"Lexicon.{_FEATURES[0]}")
    total = int(offsets[-1])
    reason = f"feature_offsets ends at {total:,}"
    _check_array(lexicon, _FEATURES[1], np.integer, total, reason)
    _check_array(lexicon, _FEATURES[2], np.floating, total, reason)
    rises = ids[1:] > ids[:-1]
    rises[offsets[(offsets > 0) & (offsets < total)] - 1] = True  # another word begins
    for name, array, wrong, problem in (
        (_FEATURES[1], ids, (ids < 0) | (ids >= names), f" and there are {names:,} names"),
        (_FEATURES[2], values, ~np.isfinite(values), ": give finite numbers"),
    ):
        if wrong.any():
            position = int(wrong.argmax())
            _refuse(ValueError, name, f"has {array[position]} at {position}{problem}")
    if not rises.all():
        word = int(np.searchsorted(offsets, int(rises.argmin()) + 1, side="right")) - 1
        problem = f"of {lexicon.words[word]!r} do not rise: sort them, each once"
        _refuse(ValueError, _FEATURES[1], problem)


def _check_dicts(lexicon):
    """Checks `background_tables`, `left_out` and `fused`."""
    for name, kind, kind_name in (
        ("background_tables", np.ndarray, "numpy arrays"),
        ("left_out", (int, np.integer), "whole numbers"),
        ("fused", tuple, "tuples of words"),
    ):
        field = getattr(lexicon, name)
        if not isinstance(field, dict):
            problem = f"is a {type(field).__name__}: give a dict of {kind_name} by name"
            _refuse(TypeError, name, problem)
        for entries, entry_kind in ((field, str), (field.values(), kind)):
            wrong = [cls for cls in set(map(type, entries)) if not issubclass(cls, entry_kind)]
            if wrong:
                problem = f"has a {wrong[0].__name__} in it: give {kind_name} by name"
                _refuse(TypeError, name, problem)
    minimum = min(lexicon.left_out.values(), default=0)
    if minimum < 0:
        _refuse(ValueError, "left_out", f"has {minimum}: give 0 or more")


# ---------------------------------------------------------- lexicons in files and in hashes


def digest(value) -> str:
    """Hashes arrays by name, or a value as JSON."""
    if isinstance(value, dict):
        parts = [name.encode() + array.tobytes() for name, array in value.items()]
    else:
        parts = [_as_bytes(value).tobytes()]
    hasher = hashlib.sha256()
    for part in parts:
        hasher.update(len(part).to_bytes(8, "little"))
        hasher.update(part)
    return hasher.hexdigest()[:16]


def save(lexicon, path):
    """Writes a lexicon to one .npz file."""
    content = arrays(lexicon, with_notes=True)
    # The digest comes first: an archive whose list is cut short lacks the last arrays.
    digest_bytes = np.frombuffer(digest(content).encode(), np.uint8)
    array_files.write(path, {"digest": digest_bytes, **content})


def load(kind, path):
    """Reads the lexicon of a file."""
    try:
        names = {*_JSON, *_ARRAYS, "digest"}
        archive = array_files.read_arrays(path, lambda n: n in names or n.startswith(_BACKGROUND))
        if "digest" not in archive:
            raise ValueError("it has no digest")
        saved_digest = archive.pop("digest")
        names = {name for name in _JSON if name in archive or name not in _OPTIONAL}
        values = {name: strict_json.loads(archive.pop(name).tobytes()) for name in names}
        values = strict_json.parse({name: _JSON[name] for name in names}, values)
        unknown, boundary = values.pop("marks")
        tables = [name for name in archive if name.startswith(_BACKGROUND)]
        lexicon = kind(
            words=tuple(values.pop("words")),
            feature_names=tuple(values.pop("feature_names")),
            unknown=unknown,
            boundary=boundary,
            background_tables={x.removeprefix(_BACKGROUND): archive.pop(x) for x in tables},
            alphabet=tuple(values.pop("alphabet")) if "alphabet" in values else None,
            fused={form: tuple(words) for form, words in values.pop("fused", {}).items()},
            **values,
            **archive,
        )
        # The checksums of an archive are not enough: they do not cover its list of arrays.
        if saved_digest.tobytes() != digest(arrays(lexicon, with_notes=True)).encode():
            raise ValueError("its digest does not match its content")
        return lexicon
    except Exception as error:  # a damaged archive shows itself in many ways
        raise UserError(f"{path} is missing or not a lexicon of this zoo ({error}).") from error


def arrays(lexicon, with_notes=False):
    """Returns the arrays on which a model depends, perhaps with the two on which none does."""
    strings = {
        "words": lexicon.words,
        "feature_names": lexicon.feature_names,
        "marks": (lexicon.unknown, lexicon.boundary),
    }
    if lexicon.alphabet is not None:
        strings["alphabet"] = lexicon.alphabet
    notes = {name: getattr(lexicon, name) for name in ("left_out", "fused") if with_notes}
    numbers = {name: getattr(lexicon, name) for name in _ARRAYS}
    return {
        **{name: _as_bytes(value) for name, value in strings.items()},
        **{name: array for name, array in numbers.items() if array is not None},
        **{_BACKGROUND + name: array for name, array in lexicon.background_tables.items()},
        **{name: _as_bytes(value) for name, value in notes.items()},
    }


def _as_bytes(value) -> np.ndarray:
    return np.frombuffer(json.dumps(value, ensure_ascii=False).encode(), np.uint8)
