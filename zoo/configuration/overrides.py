"""`--set field=value`: fields of recipes overridden by text.

A component is found by its name among Zoo's components of the field's type: `model.head` is
annotated with `zoo.heads.Head`, so `--set model.head=LogLinear` looks for heads. A component of the
user's own is named with its module: `--set model.head=my_module:MyHead` imports `my_module`, as a
config of the user's own does.
"""

import dataclasses
import math
import re
import types
import typing
from typing import Any

from zoo.base import component_registry
from zoo.base.trust import user_modules
from zoo.configuration import fields
from zoo.configuration.fields import Change, nearest, replace_all, with_article
from zoo.errors import UserError

_QUOTED = re.compile(r"'.*'|\".*\"")
_TRUE, _FALSE = ("true", "yes", "1"), ("false", "no", "0")


def apply_settings(recipe: Any, settings: list[str]) -> Any:
    """Returns the recipe after each 'a.b.c=value', in order; see `fields.replace_all`.

    Raises:
      UserError: a setting lacks "=", names an unknown field (the message names the nearest), or has
        a value that is not of the field's type.

    Example:
      >>> configuration.apply_settings(model, ["head.samples=7", "core.layers=2"]).head.samples
      7
    """
    changes = []
    for setting in settings:
        path, equals, value = setting.partition("=")
        if not equals:
            raise UserError(f"--set {setting}: write it as field=value, as in training.batch=16.")

        def new_value(kind, label, text=value.strip()):
            return parse(text, kind, label)

        changes.append(Change(path.strip(), f"--set {setting}", new_value))
    return replace_all(recipe, changes)


def parse(text: str, kind: Any, label: str) -> Any:
    """Reads a value of type `kind` from text.

    Text may be a number, true or false, a string, a comma-separated tuple, in parentheses where it
    is within another, with its strings quoted or not, "none" for an optional field, or the class
    of a component, which gets its defaults: its name, or "module:Class" outside Zoo.

    Example:
      >>> configuration.parse("(1, 2)", tuple[int, ...], "--set sizes")
      (1, 2)
    """
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        if text.lower() == "none" and type(None) in arguments:
            return None
        (kind,) = (argument for argument in arguments if argument is not type(None))
        return parse(text, kind, label)
    if origin is tuple:
        items = _items(text)
        if arguments[-1] is ...:
            arguments = (arguments[0],) * len(items)
        if len(items) != len(arguments):
            raise UserError(f"{label}: {text!r} should have {len(arguments)} parts.")
        return tuple(parse(item, kind, label) for item, kind in zip(items, arguments, strict=True))
    if kind is bool:
        if text.lower() not in (*_TRUE, *_FALSE):
            raise UserError(f"{label}: {text!r} is neither true nor false.")
        return text.lower() in _TRUE
    if kind in (int, float):
        try:
            value = kind(text)
        except ValueError:
            noun = "a whole number" if kind is int else "a number"
            raise UserError(f"{label}: {text!r} is not {noun}.") from None
        if kind is float and not math.isfinite(value):
            raise UserError(f"{label}: {text!r} is not a finite number.")
        return value
    if kind is str:
        return text
    return _default_component(text, kind, label)


def _items(text: str) -> list[str]:
    """Splits a tuple's text into items without quotes, at commas outside parentheses and quotes."""
    items, depth, quote = [""], 0, ""
    for letter in _within_parentheses(text):
        if quote:
            quote = quote.replace(letter, "")  # the same mark closes it
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
    """Returns the text without the pair of parentheses around all of it, if there is one."""
    text, depth, quote = text.strip(), 0, ""
    for position, letter in enumerate(text):
        if quote:
            quote = quote.replace(letter, "")
            continue
        if letter in "'\"" and text[:position].rstrip()[-1:] in ("", "(", ","):
            quote = letter  # as in `_items`, at the start of an item
        depth += (letter == "(") - (letter == ")")
        if depth <= 0:  # of the first letter, or where its parenthesis is closed
            return text[1:-1] if position and position == len(text) - 1 else text
    return text


def _default_component(text, kind, label):
    if ":" in text:
        component = _users_class(text, kind, label)
    else:
        classes = component_registry.components(kind)
        if text not in classes:
            raise UserError(
                f"{label}: {text!r} is not {with_article(kind)}; {nearest(text, classes)}. A class "
                "of your own is written as my_module:MyClass."
            )
        component = classes[text]
    required = fields.required_fields(component)
    if required:
        raise UserError(
            f"{label}: {text} has fields without defaults ({', '.join(required)}): write a config "
            "with them."
        )
    return component()


def _users_class(name, kind, label):
    try:
        component = user_modules.value(name)
    except user_modules.Missing as error:
        raise UserError(
            f"{label}: {name} cannot be imported ({error}): correct the name, or start the "
            "program in the folder of the module."
        ) from error
    is_component = isinstance(component, type) and issubclass(component, kind)
    if not (is_component and dataclasses.is_dataclass(component)):
        raise UserError(
            f"{label}: {name} is not {with_article(kind)}: write a class with "
            f"@dataclasses.dataclass(frozen=True) that inherits from {kind.__name__}."
        )
    return component
