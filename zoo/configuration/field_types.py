"""Type checks of recipes' fields against their annotations.

Python does not check annotations. A comma forgotten in a tuple of one item, or a background of
another kind, would raise an error far from where it was written.
"""

import dataclasses
import inspect
import numbers
import types
import typing
from typing import Any

from zoo.component_registry import components
from zoo.configuration.field_paths import with_article
from zoo.errors import UserError

_NUMBERS = {int: (numbers.Integral, "a whole number"), float: (numbers.Real, "a number")}


def check(recipe: Any, path: str = ""):
    """Checks all fields of a recipe, and of the components in them."""
    kinds = typing.get_type_hints(type(recipe))
    for field in dataclasses.fields(recipe):
        name = f"{path}.{field.name}" if path else field.name
        check_value(getattr(recipe, field.name), kinds[field.name], name)


def check_value(value: Any, kind: Any, name: str):
    """Raises UserError unless a value, with all its items and fields, is of the declared type."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        if value is None and type(None) in arguments:
            return
        others = [argument for argument in arguments if argument is not type(None)]
        if len(others) == 1:
            check_value(value, others[0], name)
    elif origin is tuple:
        _check_tuple(value, arguments, name)
    elif kind is bool:
        _expect(isinstance(value, bool), value, name, "True or False")
    elif kind in _NUMBERS:
        expected, words = _NUMBERS[kind]
        is_number = isinstance(value, expected) and not isinstance(value, bool)
        _expect(is_number, value, name, words)
    elif kind is str:
        _expect(isinstance(value, str), value, name, "a string")
    elif inspect.isclass(kind) and kind is not object:
        _check_component(value, kind, name)


def _check_tuple(value, kinds, name):
    if not isinstance(value, tuple):
        forgotten = "" if isinstance(value, list) else ", with a comma if it has a single item"
        _expect(False, value, name, f"a tuple{forgotten}")
    if kinds[-1] is ...:
        kinds = (kinds[0],) * len(value)
    _expect(len(value) == len(kinds), value, name, f"a tuple of {len(kinds)}")
    for number, (item, kind) in enumerate(zip(value, kinds, strict=True)):
        check_value(item, kind, f"{name}.{number}")


def _check_component(value, kind, name):
    if inspect.isclass(value):
        _expect(False, value, name, f"{value.__name__}(), with parentheses")
    if not isinstance(value, kind):
        there = ", ".join(sorted(components(kind)))
        wanted = with_article(kind) + (f", such as {there}" if there else "")
        _expect(False, value, name, wanted)
    if dataclasses.is_dataclass(value):
        check(value, name)


def _expect(right, value, name, wanted):
    if not right:
        kind = type(value).__name__
        if inspect.isclass(value):
            shown = f"the class {value.__name__}"
        else:
            shown = kind if dataclasses.is_dataclass(value) else f"{value!r}, of type {kind}"
        raise UserError(f"{name} is {shown}: give {wanted}.")
