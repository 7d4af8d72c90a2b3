"""Checks of the fields of a lexicon, run when a lexicon is made or read.

A head looks up ids of words in arrays of the lexicon: an array that is too short would give wrong
numbers without an error.
"""

import numpy as np

from zoo.errors import named


def check(lexicon):
    """Checks all fields of a lexicon; errors name the field."""
    for name in ("words", "feature_names"):
        _check_names(name, getattr(lexicon, name))
    if not lexicon.words:
        raise ValueError("Lexicon.words is empty: give one word at least")
    if len(lexicon.ids) < len(lexicon.words):
        _refuse_twice("words", lexicon.words)
    if len(set(lexicon.feature_names)) < len(lexicon.feature_names):
        _refuse_twice("feature_names", lexicon.feature_names)
    _check_counts(lexicon)
    _check_features(lexicon)
    if lexicon.log_background is not None:
        _check_background(lexicon)
    _check_marks(lexicon)
    if lexicon.alphabet is not None:
        _check_alphabet(lexicon.alphabet)
    _check_kept(lexicon)


def _refuse(kind, name, problem):
    raise kind(f"Lexicon.{name} {problem}")


def _check_names(name, strings):
    if not isinstance(strings, tuple):
        _refuse(TypeError, name, f"is a {type(strings).__name__}: give a tuple of strings")
    if not all(issubclass(kind, str) for kind in set(map(type, strings))):
        position, wrong = next((p, s) for p, s in enumerate(strings) if not isinstance(s, str))
        problem = f"has {wrong!r} at {position}, which is not a string: give a tuple of strings"
        _refuse(TypeError, name, problem)


def _refuse_twice(name, strings):
    first: dict = {}
    for position, string in enumerate(strings):
        if string in first:
            _refuse(ValueError, name, f"has {string!r} twice, at {first[string]} and {position}")
        first[string] = position


def _check_array(lexicon, name, kind, kind_name, shape, reason):
    """Raises TypeError unless the field is an array of this kind, ValueError for another shape."""
    array = getattr(lexicon, name)
    if not isinstance(array, np.ndarray):
        _refuse(TypeError, name, f"is a {type(array).__name__}: give a numpy array of {kind_name}")
    if not np.issubdtype(array.dtype, kind):
        _refuse(TypeError, name, f"has numbers of {array.dtype}: give {kind_name}")
    if array.shape != shape:
        _refuse(ValueError, name, f"has the shape {array.shape} and should have {shape}: {reason}")


def _check_counts(lexicon):
    count = len(lexicon.words)
    _check_array(
        lexicon, "counts", np.integer, "integers", (count,), f"one for each of {count:,} words"
    )
    if lexicon.counts.min() < 0:
        word_id = int(lexicon.counts.argmin())
        problem = f"has {lexicon.counts[word_id]} for {lexicon.words[word_id]!r}: give 0 or more"
        _refuse(ValueError, "counts", problem)


def _check_features(lexicon):
    fields = ("feature_offsets", "feature_ids", "feature_values")
    given = [name for name in fields if getattr(lexicon, name) is not None]
    if not given and not lexicon.feature_names:
        return
    for name in fields:
        if name not in given:
            others = ", ".join(given) or "feature_names"
            _refuse(ValueError, name, f"is None where there is {others}: give all or none")
    count = len(lexicon.words)
    _check_array(
        lexicon, fields[0], np.integer, "integers", (count + 1,), f"{count:,} words and one more"
    )
    offsets = lexicon.feature_offsets
    falls = np.diff(offsets) < 0
    if offsets[0] or falls.any():
        position = int(falls.argmax()) + 1 if falls.any() else 0
        problem = f"has {offsets[position]} at {position}: offsets start at 0 and never fall"
        _refuse(ValueError, fields[0], problem)
    total = int(offsets[-1])
    reason = f"feature_offsets ends at {total:,}"
    _check_array(lexicon, fields[1], np.integer, "integers", (total,), reason)
    _check_array(lexicon, fields[2], np.floating, "floats", (total,), reason)
    ids = lexicon.feature_ids
    outside = (ids < 0) | (ids >= len(lexicon.feature_names))
    if outside.any():
        position = int(outside.argmax())
        problem = (
            f"has {ids[position]} at {position} and there are {len(lexicon.feature_names):,} names"
        )
        _refuse(ValueError, fields[1], problem)
    rises = ids[1:] > ids[:-1]
    inner = offsets[(offsets > 0) & (offsets < total)]
    rises[inner - 1] = True  # another word begins
    if not rises.all():
        word = int(np.searchsorted(offsets, int(rises.argmin()) + 1, side="right")) - 1
        problem = f"of {lexicon.words[word]!r} do not rise: sort them, each once"
        _refuse(ValueError, fields[1], problem)
    if not np.isfinite(lexicon.feature_values).all():
        position = int(np.isfinite(lexicon.feature_values).argmin())
        problem = f"has {lexicon.feature_values[position]} at {position}: give finite numbers"
        _refuse(ValueError, fields[2], problem)


def _check_background(lexicon):
    count = len(lexicon.words)
    reason = f"one for each of {count:,} words"
    _check_array(lexicon, "log_background", np.floating, "floats", (count,), reason)
    wrong = ~(lexicon.log_background < np.inf)  # of nan, too
    if wrong.any():
        word_id = int(wrong.argmax())
        problem = f"is {lexicon.log_background[word_id]} for {lexicon.words[word_id]!r}"
        _refuse(ValueError, "log_background", problem + ": give nats, -inf for no mass")


def _check_marks(lexicon):
    for name in ("unknown", "boundary"):
        mark = getattr(lexicon, name)
        if mark is None:
            continue
        if not isinstance(mark, str):
            _refuse(TypeError, name, f"is a {type(mark).__name__}: give a word or None")
        if mark not in lexicon.ids:
            words = named(list(lexicon.words[:4]), 3)
            _refuse(ValueError, name, f"is {mark!r}, which is not among the words {words}")
    if lexicon.unknown is not None and lexicon.unknown == lexicon.boundary:
        _refuse(ValueError, "unknown", f"is {lexicon.unknown!r}, and so is the boundary")


def _check_alphabet(alphabet):
    _check_names("alphabet", alphabet)
    for letter in alphabet:
        if len(letter) != 1:
            _refuse(ValueError, "alphabet", f"has {letter!r}, which is not one character")
    if len(set(alphabet)) < len(alphabet):
        _refuse_twice("alphabet", alphabet)


def _check_kept(lexicon):
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
        for kinds, wanted in ((map(type, field), str), (map(type, field.values()), kind)):
            wrong = [given for given in set(kinds) if not issubclass(given, wanted)]
            if wrong:
                problem = f"has a {wrong[0].__name__} in it: give {kind_name} by name"
                _refuse(TypeError, name, problem)
    least = min(lexicon.left_out.values(), default=0)
    if least < 0:
        _refuse(ValueError, "left_out", f"has {least}: give 0 or more")
