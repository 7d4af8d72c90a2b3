"""Frozen dataclasses as recipes: `--set`, JSON, and comparison, for any component.

A component of a kind is found by its name among those that zoo's packages export: `model.head` is
annotated with `zoo.heads.Head`, so `--set model.head=LogLinear` looks for a Head of that name. In
JSON a component is called by its package and its name: see `zoo.public_names`.
"""

import dataclasses
import math
import re
import types
import typing
from typing import Any

from zoo import public_names, trust
from zoo.errors import UserError
from zoo.recipe_paths import nearest, replaced

_QUOTED = re.compile(r"'.*'|\".*\"")
_TRUE, _FALSE = ("true", "yes", "1"), ("false", "no", "0")


def apply_settings(recipe: Any, settings: list[str]) -> Any:
    """The recipe after each 'a.b.c=value', in order.

    Raises:
      UserError: for a setting without "=", an unknown field (the nearest are listed) or a value
        that is not of the field's type.
    """
    for setting in settings:
        path, equals, value = setting.partition("=")
        if not equals:
            raise UserError(f"--set {setting}: write it as field=value, as in training.batch=16.")

        def new_value(kind, where, text=value.strip()):
            return parse(text, kind, where)

        recipe = replaced(recipe, path.strip(), f"--set {setting}", new_value)
    return recipe


def parse(text: str, kind: Any, where: str) -> Any:
    """The value of type `kind` that `text` spells.

    Numbers, true/false, strings; comma-separated tuples, in parentheses where one is within
    another, their strings quoted or not; "none" for an optional field; a component of the kind by
    its class name, with its defaults.
    """
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        if text.lower() == "none" and type(None) in arguments:
            return None
        (kind,) = (argument for argument in arguments if argument is not type(None))
        return parse(text, kind, where)
    if origin is tuple:
        items = _items(text)
        if arguments[-1] is ...:
            arguments = (arguments[0],) * len(items)
        if len(items) != len(arguments):
            raise UserError(f"{where}: {text!r} should have {len(arguments)} parts.")
        return tuple(parse(item, kind, where) for item, kind in zip(items, arguments, strict=True))
    if kind is bool:
        if text.lower() not in (*_TRUE, *_FALSE):
            raise UserError(f"{where}: {text!r} is neither true nor false.")
        return text.lower() in _TRUE
    if kind in (int, float):
        try:
            value = kind(text)
        except ValueError:
            noun = "a whole number" if kind is int else "a number"
            raise UserError(f"{where}: {text!r} is not {noun}.") from None
        if kind is float and not math.isfinite(value):
            raise UserError(f"{where}: {text!r} is not a finite number.")
        return value
    if kind is str:
        return text
    return _default_component(text, kind, where)


def _items(text: str) -> list[str]:
    """The items of a tuple, without quotes: parted by the commas that are not within parentheses or
    quotes."""
    items, depth, quote = [""], 0, ""
    for letter in _within_parentheses(text):
        if quote:
            quote = quote.replace(letter, "")  # closed by its like
        elif letter in "'\"" and not items[-1].strip():
            quote = letter
        else:
            depth += (letter == "(") - (letter == ")")
        if letter == "," and depth <= 0 and not quote:
            items.append("")
        else:
            items[-1] += letter
    items = [item.strip() for item in items]
    return [item[1:-1] if _QUOTED.fullmatch(item) else item for item in items if item]


def _within_parentheses(text):
    """The text without the pair of parentheses around all of it, if there is one."""
    text, depth = text.strip(), 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth <= 0:  # of the first letter, or where its parenthesis is closed
            return text[1:-1] if place and place == len(text) - 1 else text
    return text


def with_article(kind: type) -> str:
    """ "a Head", "an Optimizer", for messages."""
    return ("an " if kind.__name__[0] in "AEIOU" else "a ") + kind.__name__


def _default_component(text, kind, where):
    found = public_names.components(kind)
    if text not in found:
        raise UserError(f"{where}: {text!r} is not {with_article(kind)}; {nearest(text, found)}.")
    try:
        return found[text]()
    except TypeError as error:
        raise UserError(
            f"{where}: {text} has fields without defaults ({error}); write a config with them."
        ) from error


def to_json(value: Any) -> Any:
    """The recipe as JSON: a dataclass becomes {"component": "zoo.heads:NCE", field: ...}.

    Fields that do not count when components are compared are no part of the recipe.
    """
    if dataclasses.is_dataclass(value):
        compared = [field.name for field in dataclasses.fields(value) if field.compare]
        fields = {name: to_json(getattr(value, name)) for name in compared}
        return {"component": public_names.name_of(type(value)), **fields}
    if isinstance(value, tuple):
        return [to_json(item) for item in value]
    return value


def from_json(value: Any, renewed: bool = False) -> Any:
    """The inverse of `to_json`; fields that have come since take the values that leave the recipe's
    meaning as it was: their defaults, or those of the component's `when_not_saved`.

    Args:
      renewed: whether they take their defaults alone, as in a config of today.

    Raises:
      UserError: for a component that may not be used (see `zoo.trust`) or cannot be imported, or
        that does not have these fields.
    """
    if isinstance(value, dict):
        component = _component(value)
        # What a field that has come since meant before there was one, if not its default.
        meant = {} if renewed else getattr(component, "when_not_saved", {})
        fields = {k: from_json(v, renewed) for k, v in value.items() if k != "component"}
        fields = meant | fields
        saved = {field.name for field in dataclasses.fields(component) if field.compare}
        unknown = set(fields) - saved
        if unknown:
            raise UserError(
                f"{value['component']} has no longer the fields {', '.join(sorted(unknown))} of "
                "the saved recipe: use the version that saved it."
            )
        try:
            return component(**fields)
        except TypeError as error:
            raise UserError(
                f"{value['component']} cannot be made from the saved recipe ({error}): use the "
                "version that saved it."
            ) from error
    if isinstance(value, list):
        return tuple(from_json(item, renewed) for item in value)
    return value


def _component(value):
    """The class of a dataclass in JSON."""
    name = value.get("component")
    if not isinstance(name, str):
        raise UserError(
            f"the saved recipe has the component {name!r}, which is no name: put back a copy of it."
        )
    component = trust.component(name)
    if not dataclasses.is_dataclass(component):
        raise UserError(f"the saved recipe has the component {name}, which is no dataclass.")
    return component


def describe(value: Any, indent: str = "") -> str:
    """The recipe as text, a field a line, components with their fields below them."""
    lines = [type(value).__name__]
    for field in dataclasses.fields(value):
        item = getattr(value, field.name)
        if dataclasses.is_dataclass(item) and dataclasses.fields(item):
            lines.append(f"{indent}  {field.name}: {describe(item, indent + '  ')}")
        else:
            lines.append(f"{indent}  {field.name} = {item!r}")
    return "\n".join(lines)


def first_difference(old: Any, new: Any, path: str = "") -> str | None:
    """'field: old against new' of the first field in which two JSON recipes differ, or None."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in [*old, *(name for name in new if name not in old)]:
            below = f"{path}.{name}" if path else name
            difference = first_difference(old.get(name), new.get(name), below)
            if difference:
                return difference
        return None
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = zip(map(str, range(len(old))), old, new, strict=True)
        found = (first_difference(a, b, f"{path}.{name}") for name, a, b in pairs)
        return next(filter(None, found), None)
    return None if old == new else f"{path}: {old!r} against {new!r}"
