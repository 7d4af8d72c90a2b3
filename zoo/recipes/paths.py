"""Fields of a recipe by their paths, such as "model.core.layers": the walk that replaces one."""

import dataclasses
import difflib
import typing
from collections.abc import Callable
from typing import Any

from zoo.errors import UserError


def replaced(recipe: Any, path: str, where: str, new_value: Callable[[Any, str], Any]) -> Any:
    """The recipe with another value at a path.

    Args:
      recipe: a frozen dataclass.
      path: fields from the top, and items of tuples by their numbers from 0, with points between
        them: "model.embedding.parts.1.size".
      where: what asked for it, at the beginning of messages.
      new_value: (type of the field, where) -> the value.

    Raises:
      UserError: the recipe has no such field; the nearest are named.
    """
    try:
        return _with(recipe, type(recipe), path.split("."), where, new_value)
    except _Refused as refusal:
        message = str(refusal)
        # A component says which of its fields; where that component stands, it does not know.
        above = path.rpartition(".")[0] or path
        raise UserError(message if above in message else f"{where}: {message}") from refusal


class _Refused(Exception):
    """What a recipe says of a value that it does not take."""


def _with(recipe, kind, path, where, new_value):
    """`replaced`, with the type of the recipe's own field and the names of the path."""
    if not path:
        return new_value(kind, where)
    name, *rest = path
    if isinstance(recipe, tuple):
        if not name.isdecimal() or int(name) >= len(recipe):
            raise UserError(
                f"{where}: {name!r} is none of the {len(recipe)} items there, which are "
                "numbered from 0."
            )
        position = int(name)
        kinds = typing.get_args(kind)
        kind = kinds[0] if kinds[-1] is ... else kinds[position]
        value = _with(recipe[position], kind, rest, where, new_value)
        return (*recipe[:position], value, *recipe[position + 1 :])
    if not dataclasses.is_dataclass(recipe) or isinstance(recipe, type):
        raise UserError(f"{where}: nothing is below a value such as {recipe!r}; drop .{name}.")
    names = [field.name for field in dataclasses.fields(recipe)]
    if not names:
        above = where.partition("=")[0].strip().removesuffix("." + ".".join(path))
        raise UserError(
            f"{where}: {type(recipe).__name__} has no fields; put a component that has "
            f"{name!r} in its place first, with {above}=COMPONENT."
        )
    if name not in names:
        raise UserError(
            f"{where}: {type(recipe).__name__} has no field {name!r}; {nearest(name, names)}."
        )
    kind = typing.get_type_hints(type(recipe))[name]
    value = _with(getattr(recipe, name), kind, rest, where, new_value)
    try:
        return dataclasses.replace(recipe, **{name: value})
    except UserError as error:
        raise _Refused(str(error)) from error


def nearest(name: str, names) -> str:
    """The names most like one, whatever its case, or all."""
    lower = {other.lower(): other for other in names}
    alike = difflib.get_close_matches(name.lower(), lower, n=3, cutoff=0.4)
    close = [lower[other] for other in alike]
    return f"the nearest are {', '.join(close)}" if close else f"it has {', '.join(names)}"


def with_article(kind: type) -> str:
    """ "a Head", "an Optimizer", for messages."""
    return ("an " if kind.__name__[0] in "AEIOU" else "a ") + kind.__name__
