"""Strict JSON: written so that every JSON reader accepts it, and checked on reading.

A file may be damaged, or come from somebody else. Values that are read have finite numbers, text
that can be encoded, and few levels; the caller gives the names and types that it needs.
"""

import collections
import json
import math
import pathlib
import re
from typing import Any

from zoo.base import regular_files
from zoo.errors import UserError, shortened

# The greatest number of nested objects and lists, through which functions recurse.
DEEPEST = 100
# The most digits of a whole number that surely converts to a finite float.
_DIGITS = 300
_KINDS = {
    bool: "true or false",
    dict: "an object",
    float: "a number",
    int: "a whole number",
    list: "a list",
    str: "text",
    type(None): "missing or null",
}
# The escape of a surrogate; a lone surrogate is not text.
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def dumps(value: Any, **options) -> str:
    """Formats a value as JSON, with numbers that are not finite as strings: "inf", "nan"."""
    return json.dumps(_finite(value), allow_nan=False, **options)


def loads(text: str, finite: bool = True) -> Any:
    """Parses JSON."""
    constants: dict[str, Any] = {"parse_constant": _constant, "parse_float": _float}
    try:
        value = json.loads(
            text, object_pairs_hook=_object, parse_int=whole_number, **(constants if finite else {})
        )
    except RecursionError as error:
        raise ValueError(f"it has more than {DEEPEST} levels") from error
    _check_depth(value)
    if _SURROGATE.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            half = "an escape from \\ud800 to \\udfff that stands alone"
            raise ValueError(f"it has half a character, {half}") from error
    return value


def read(path: pathlib.Path, shape: dict | None = None) -> dict:
    """Reads the JSON object of a file."""
    try:
        value = loads(regular_files.read_text(path))
        check(value, shape or {})
    except OSError as error:
        raise UserError(
            f"{path} cannot be read ({error.strerror or error}): put back a copy of it."
        ) from error
    except ValueError as error:
        raise UserError(
            f"{path} is not the JSON that is expected ({error}): put back a copy of it."
        ) from error
    return value


def object_or_none(text: str | bytes) -> dict | None:
    """Parses a JSON object; None if the text is not one, such as a line that a kill cut short."""
    try:
        value = loads(text if isinstance(text, str) else text.decode())
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def parse_bytes(array: Any) -> Any:
    """Parses the JSON in an array of bytes, in which archives of arrays keep JSON."""
    return loads(array.tobytes().decode())


def check(value: Any, shape: Any, name: str = "it") -> None:
    """Checks the types of a value that was read from JSON; {...: shape} is a shape of all values.

    (shape, type) is a shape of values that are not of the type, such as types.NoneType for null.
    """
    if isinstance(shape, dict):
        _expect(isinstance(value, dict), value, dict, name)
        for field, inner in shape.items():
            for key in value if field is ... else [field]:
                check(value.get(key), inner, key if name == "it" else f"{name}.{key}")
    elif isinstance(shape, list):
        _expect(isinstance(value, list), value, list, name)
        for number, item in enumerate(value):
            check(item, shape[0], f"{name}.{number}")
    elif isinstance(shape, tuple):
        if not any(_is(value, kind) for kind in shape[1:]):
            check(value, shape[0], name)
    else:
        kinds = getattr(shape, "__args__", (shape,))
        _expect(any(_is(value, kind) for kind in kinds), value, kinds[0], name)


def is_number(value: Any) -> bool:
    """Whether a value that was read from JSON is a number; booleans are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is(value, kind) -> bool:
    if kind is float:
        return is_number(value) or (isinstance(value, str) and value in ("inf", "-inf", "nan"))
    if kind is int:
        return is_number(value) and isinstance(value, int) and -(2**63) <= value < 2**63
    return isinstance(value, kind)


def _expect(right, value, kind, name):
    if not right:
        description = _KINDS[type(value)]
        if not isinstance(value, dict | list | None):
            description = shortened(json.dumps(value), 60)
        raise ValueError(f"{name} is {description}, where {_KINDS[kind]} should be")


def _object(pairs):
    value = dict(pairs)
    if len(value) < len(pairs):
        counts = collections.Counter(name for name, _ in pairs)
        twice = next(name for name in value if counts[name] > 1)
        raise ValueError(f"it has {shortened(twice, 60)!r} twice")
    return value


def whole_number(digits: str) -> int:
    """Parses a whole number of JSON."""
    if len(digits) > _DIGITS:
        raise ValueError(f"it has a number of {len(digits)} digits")
    return int(digits)


def _float(text):
    value = float(text)
    if math.isinf(value):
        _constant(text)
    return value


def _constant(text):
    raise ValueError(f"it has {shortened(text, 60)}, which is not a finite number")


def _check_depth(value):
    """Raises ValueError for a value of more than `DEEPEST` levels."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(DEEPEST + 1):
        if not level:
            return
        inner = (node.values() if isinstance(node, dict) else node for node in level)
        level = [item for items in inner for item in items if isinstance(item, dict | list)]
    raise ValueError(f"it has more than {DEEPEST} levels")


def _finite(value):
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
