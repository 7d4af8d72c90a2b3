"""Strict JSON: written so that every JSON reader accepts it, and checked on reading.

A file may be damaged, or come from somebody else. Values that are read have finite numbers, text
that can be encoded, and few levels; the caller gives the types that it needs as type hints, such as
a dataclass, whose fields are the names of a JSON object.
"""

import collections
import dataclasses
import functools
import json
import math
import pathlib
import re
import types
import typing
from typing import Any, NamedTuple

from zoo.base import regular_files
from zoo.errors import UserError, shortened

# The greatest number of nested objects and lists, through which functions recurse.
DEEPEST = 100
# The most digits of a whole number that surely converts to a finite float.
_DIGITS = 300
_ABSENT = object()  # stands for a field that is missing
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
    return json.dumps(to_json(value), allow_nan=False, **options)


def loads(text: str | bytes, finite: bool = True) -> Any:
    """Parses JSON."""
    text = text if isinstance(text, str) else text.decode()
    constants: dict[str, Any] = {"parse_constant": _constant, "parse_float": _float}
    try:
        value = json.loads(
            text, object_pairs_hook=_object, parse_int=whole_number, **(constants if finite else {})
        )
    except RecursionError as error:
        raise ValueError(f"it has more than {DEEPEST} levels") from error
    level = [value] if isinstance(value, dict | list) else []
    depth = 0
    while level:
        depth += 1
        if depth > DEEPEST:
            raise ValueError(f"it has more than {DEEPEST} levels")
        inner = (node.values() if isinstance(node, dict) else node for node in level)
        level = [item for items in inner for item in items if isinstance(item, dict | list)]
    if _SURROGATE.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            half = "an escape from \\ud800 to \\udfff that stands alone"
            raise ValueError(f"it has half a character, {half}") from error
    return value


def read(path: pathlib.Path, hint: Any = dict) -> Any:
    """Reads the JSON object of a file, see `parse`."""
    try:
        return parse(hint, loads(regular_files.read_bytes(path)))
    except OSError as error:
        raise UserError(
            f"{path} cannot be read ({error.strerror or error}): put back a copy of it."
        ) from error
    except ValueError as error:
        raise UserError(
            f"{path} is not the JSON that is expected ({error}): put back a copy of it."
        ) from error


def object_or_none(text: str | bytes) -> dict | None:
    """Parses a JSON object; None if the text is not one, such as a line that a kill cut short."""
    try:
        value = loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


class _Reader(NamedTuple):
    """How a value of JSON is read, compiled from its type hint."""

    kind: Any  # its type in JSON; Any for every value
    make: Any = None  # from the fields or items that were read: a dataclass, list, tuple or float
    fields: dict | None = None  # type hints of the fields of an object, or of the items of a tuple
    optional: frozenset[str] = frozenset()  # fields that may be missing
    items: Any = None  # type hint of all items, or of the values of all names
    nullable: bool = False


@functools.cache
def _reader(hint: Any) -> _Reader:
    origin, arguments = typing.get_origin(hint) or hint, typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        (inner,) = (argument for argument in arguments if argument is not types.NoneType)
        return _reader(inner)._replace(nullable=True)
    if dataclasses.is_dataclass(hint):
        hints, fields = typing.get_type_hints(hint), dataclasses.fields(hint)
        return _Reader(
            dict,
            hint,
            {field.name: hints[field.name] for field in fields if field.compare},
            frozenset(field.name for field in fields if _has_default(field)),
        )
    if origin is dict and arguments:
        return _Reader(dict, items=arguments[1])
    if origin is tuple and arguments[-1] is not ...:
        return _Reader(list, tuple, dict(enumerate(arguments)))
    if origin in (list, tuple) and arguments:
        return _Reader(list, origin, items=arguments[0])
    return _Reader(hint)


def _has_default(field):
    absent = dataclasses.MISSING
    return field.default is not absent or field.default_factory is not absent


def parse(hint: Any, value: Any, name: str = "it") -> Any:
    """Reads a value of JSON by a type hint: checks it, and makes its dataclasses and tuples.

    The hint is a dataclass, whose fields with defaults may be missing, and whose fields that do not
    count in comparisons are not read; or list[X], tuple[X, ...], dict[str, X], X | None, Any, a
    type of JSON; or {name: hint} of an object that may have other names too. A ValueError begins
    with the path of the wrong value; the error of a dataclass begins with the name of its field.
    """
    tree: dict[str, Any] = {}
    nodes: list[tuple[Any, Any, str, Any, Any]] = [(tree, name, name, hint, value)]
    builders = []
    for parent, key, path, hint, value in nodes:  # grows by the fields and items of each
        is_shape = isinstance(hint, dict)
        reader = _Reader(dict, fields=hint) if is_shape else _reader(hint)
        if value is _ABSENT:
            if reader.nullable:
                raise ValueError(f"{path.rpartition('.')[0] or name} has no {key}")
            value = None
        parent[key] = value
        if reader.kind is Any or (value is None and reader.nullable):
            continue
        if not _is(value, reader.kind):
            raise ValueError(f"{path} is {_describe(value)}, where {_KINDS[reader.kind]} should be")
        if reader.kind is float:
            parent[key] = float(value)
        hints: Any = reader.fields
        if reader.items is not None:
            hints = dict.fromkeys(value if reader.kind is dict else range(len(value)), reader.items)
        if hints is None:
            continue
        if reader.kind is list and len(hints) != len(value):
            raise ValueError(f"{path} has {len(value)} items, not {len(hints)}")
        below = "" if path == "it" else f"{path}."
        parent[key] = [*value] if reader.kind is list else {**value} if is_shape else {}
        if reader.make:
            builders.append((parent, key, below, reader))
        for child, child_hint in hints.items():
            target, item = parent[key], _ABSENT
            if reader.kind is list or child in value:
                item = value[child]
            elif is_shape:  # without a name that may be null
                target, item = {}, None
            elif child in reader.optional:
                continue
            nodes.append((target, child, f"{below}{child}", child_hint, item))
    for parent, key, below, reader in reversed(builders):
        content = parent[key]
        try:
            is_object = isinstance(content, dict)
            parent[key] = reader.make(**content) if is_object else reader.make(content)
        except (UserError, ValueError) as error:
            raise ValueError(f"{below}{error}") from error
    return tree[name]


def check_least(value: int, least: int, name: str):
    """Raises ValueError for a number below the least."""
    if value < least:
        raise ValueError(f"{name} is {value}, where at least {least} should be")


def is_number(value: Any) -> bool:
    """Whether a value that was read from JSON is a number; booleans are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is(value, kind) -> bool:
    if kind is float:
        return type(value) in (int, float) or value in ("inf", "-inf", "nan")
    if kind is int:
        return type(value) is int and -(2**63) <= value < 2**63
    return isinstance(value, kind)


def _describe(value):
    is_plain = not isinstance(value, dict | list | None)
    return shortened(json.dumps(value), 60) if is_plain else _KINDS[type(value)]


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


def to_json(value: Any) -> Any:
    """Converts dataclasses, tuples and numbers that are not finite to JSON that `parse` reads.

    Fields that do not count in comparisons, and empty ones that are so by default, are left out.
    """
    if dataclasses.is_dataclass(value):
        fields = {field: getattr(value, field.name) for field in dataclasses.fields(value)}
        return {
            field.name: to_json(item)
            for field, item in fields.items()
            if field.compare and not (_has_default(field) and item in (None, (), {}))
        }
    if isinstance(value, dict):
        return {name: to_json(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
