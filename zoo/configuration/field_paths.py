"""Fields of a recipe by dotted path, such as "model.core.layers", and their replacement."""

import dataclasses
import difflib
import itertools
import typing
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from zoo.errors import UserError


class Change(NamedTuple):
    """A value to be put into a recipe: the arguments of `replaced`."""

    path: str
    where: str
    new_value: Callable[[Any, str], Any]


def replaced(recipe: Any, path: str, where: str, new_value: Callable[[Any, str], Any]) -> Any:
    """Returns the recipe with another value at a path."""
    return _at(recipe, path.split("."), where, new_value)


def _at(recipe, names, where, new_value):
    """Replaces a value as `replaced` does, by the names of the path; without names the whole
    recipe."""
    try:
        return _with(recipe, type(recipe), names, where, new_value)
    except _Refused as refusal:
        message = str(refusal)
        # A component's message names its field, but not the path of the component.
        above = ".".join(names[:-1] or names)
        known = above and above in message
        raise UserError(message if known else f"{where}: {message}") from refusal


def all_replaced(recipe: Any, changes: Sequence[Change]) -> Any:
    """Returns the recipe with other values at several paths, set in their order.

    Neighbouring `changes` of one component may need each other, as the widths and the filters of a
    convolution do: where one is refused alone, they are set together.
    """
    for earlier, later in itertools.combinations(changes, 2):
        if earlier.path.startswith(later.path + "."):
            raise UserError(f"{later.where} would undo {earlier.where}: give it before that.")
    for _, group in itertools.groupby(changes, lambda change: change.path.rpartition(".")[0]):
        siblings = [*group]
        try:
            one_by_one = recipe
            for change in siblings:
                one_by_one = replaced(one_by_one, *change)
            recipe = one_by_one
        except UserError as error:
            if not isinstance(error.__cause__, _Refused) or len(siblings) == 1:
                raise
            recipe = _together(recipe, siblings, change.where, error)
    return recipe


def _together(recipe, siblings, where, error):
    """Replaces several fields of one component at once; raises `error` if it does not have them."""
    *above, _ = siblings[0].path.split(".")
    component = recipe
    for name in above:
        component = (
            component[int(name)] if isinstance(component, tuple) else getattr(component, name)
        )
    kinds = {} if isinstance(component, tuple) else typing.get_type_hints(type(component))
    values = {}
    for change in siblings:
        name = change.path.rpartition(".")[2]
        if name not in kinds:
            raise error
        values[name] = change.new_value(kinds[name], change.where)

    def changed(kind, where):
        try:
            return dataclasses.replace(component, **values)
        except UserError as refusal:
            raise _Refused(str(refusal)) from refusal

    return _at(recipe, above, where, changed)


class _Refused(Exception):
    """A component's refusal of a value."""


def _with(recipe, kind, path, where, new_value):
    """Replaces a value as `replaced` does, given the type of the recipe's own field."""
    if not path:
        return new_value(kind, where)
    name, *rest = path
    if isinstance(recipe, tuple):
        if not name.isdecimal() or int(name) >= len(recipe):
            raise UserError(
                f"{where}: {name!r} is not one of the {len(recipe)} items there, which are "
                "numbered from 0."
            )
        position = int(name)
        kinds = typing.get_args(kind)
        kind = kinds[0] if kinds[-1] is ... else kinds[position]
        value = _with(recipe[position], kind, rest, where, new_value)
        return (*recipe[:position], value, *recipe[position + 1 :])
    if not dataclasses.is_dataclass(recipe) or isinstance(recipe, type):
        raise UserError(f"{where}: the value {recipe!r} has no fields: leave out .{name}.")
    names = [field.name for field in dataclasses.fields(recipe)]
    if not names:
        above = where.partition("=")[0].strip().removesuffix("." + ".".join(path))
        raise UserError(
            f"{where}: {type(recipe).__name__} has no fields: first replace it by a component "
            f"that has {name!r}, with {above}=COMPONENT."
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
    """Returns "the nearest are" with the names most like one, whatever its case, or all names."""
    lower = {other.lower(): other for other in names}
    alike = difflib.get_close_matches(name.lower(), lower, n=3, cutoff=0.4)
    close = [lower[other] for other in alike]
    return f"the nearest are {', '.join(close)}" if close else f"it has {', '.join(names)}"


def with_article(kind: type) -> str:
    """Returns "a Head", "an Optimizer", for messages."""
    return ("an " if kind.__name__[0] in "AEIOU" else "a ") + kind.__name__
