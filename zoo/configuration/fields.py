"""Fields of a recipe by dotted path, such as "model.core.layers", and their replacement."""

import dataclasses
import difflib
import inspect
import itertools
import numbers
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from zoo.base.component_registry import components
from zoo.errors import UserError


class Change(NamedTuple):
    """A value to be put into a recipe, computed from (type of the field, label of the change)."""

    path: str
    label: str
    new_value: Callable[[Any, str], Any]


def replace_all(recipe: Any, changes: Sequence[Change]) -> Any:
    """Returns the recipe with other values at several paths, set in their order.

    Neighbouring `changes` of one component may need each other, as the widths and the filters of a
    convolution do: where one is refused alone, they are set together.
    """
    for earlier, later in itertools.combinations(changes, 2):
        if earlier.path.startswith(later.path + "."):
            raise UserError(f"{later.label} would undo {earlier.label}: give it before that.")
    for parents, group in itertools.groupby(changes, lambda change: change.path.split(".")[:-1]):
        neighbours = [*group]
        try:
            candidate = recipe
            for change in neighbours:
                candidate = _replace(candidate, parents, [change])
            recipe = candidate
        except UserError as error:
            if not isinstance(error.__cause__, _Refused) or len(neighbours) == 1:
                raise
            recipe = _replace(recipe, parents, neighbours, change.label)
    return recipe


class _Refused(Exception):
    """A component's refusal of a value."""


def _replace(recipe, parents, changes, label=None):
    """Returns the recipe with other fields of the component at a path."""
    try:
        return _replace_fields(recipe, type(recipe), parents, changes)
    except _Refused as refusal:
        message = str(refusal)
        # A component's message names its field, but not the path of the component.
        path = ".".join(parents) or (changes[0].path if len(changes) == 1 else "")
        names_path = path and path in message
        message = message if names_path else f"{label or changes[0].label}: {message}"
        raise UserError(message) from refusal


def _replace_fields(recipe, kind, parents, changes):
    """Replaces values as `_replace` does, given the type of the recipe's own field."""
    values = {}
    if parents:
        name, *inner_path = parents
        field, inner, kind = _inside(recipe, kind, name, changes[0], parents)
        values[field] = _replace_fields(inner, kind, inner_path, changes)
    else:
        for change in changes:
            name = change.path.rpartition(".")[2]
            field, _, field_type = _inside(recipe, kind, name, change, parents)
            values[field] = change.new_value(field_type, change.label)
    if isinstance(recipe, tuple):
        return tuple(values.get(number, item) for number, item in enumerate(recipe))
    try:
        return dataclasses.replace(recipe, **values)
    except UserError as error:
        raise _Refused(str(error)) from error


def _inside(recipe, kind, name, change, parents):
    """Returns (key, value, type) of a field of a component, or of an item of a tuple."""
    label = change.label
    if isinstance(recipe, tuple):
        if not name.isdecimal() or int(name) >= len(recipe):
            raise UserError(
                f"{label}: {name!r} is not one of the {len(recipe)} items there, which are "
                "numbered from 0."
            )
        number, kinds = int(name), typing.get_args(kind)
        return number, recipe[number], kinds[0] if kinds[-1] is ... else kinds[number]
    if not dataclasses.is_dataclass(recipe) or isinstance(recipe, type):
        raise UserError(f"{label}: the value {recipe!r} has no fields: leave out .{name}.")
    names = [field.name for field in dataclasses.fields(recipe)]
    if not names:
        below = ".".join([*parents, change.path.rpartition(".")[2]])
        component = label.partition("=")[0].strip().removesuffix("." + below)
        raise UserError(
            f"{label}: {type(recipe).__name__} has no fields: first replace it by a component "
            f"that has {name!r}, with {component}=COMPONENT."
        )
    if name not in names:
        raise UserError(
            f"{label}: {type(recipe).__name__} has no field {name!r}; {nearest(name, names)}."
        )
    return name, getattr(recipe, name), typing.get_type_hints(type(recipe))[name]


def nearest(name: str, names) -> str:
    """Returns "the nearest are" with the names most like one, whatever its case, or all names."""
    lower = {candidate.lower(): candidate for candidate in names}
    matches = difflib.get_close_matches(name.lower(), lower, n=3, cutoff=0.4)
    close = [lower[candidate] for candidate in matches]
    return f"the nearest are {', '.join(close)}" if close else f"it has {', '.join(names)}"


def with_article(kind: type) -> str:
    """Returns "a Head", "an Optimizer", for messages."""
    return ("an " if kind.__name__[0] in "AEIOU" else "a ") + kind.__name__


# ------------ A recipe derived from another one: values of the fields that differ, by path


def changed(recipe: Any, changes: Mapping[str, Any]) -> Any:
    """Returns a recipe with other values at some paths, set in their order.

    For configs that differ from another one in a few fields, as strict as `--set`:

        changed(base, {"model.head": NCE(samples=100), "training.epochs": 5})

    Args:
      recipe: a frozen dataclass, such as an Experiment.
      changes: {path: value}; a path names fields from the top, and the items of a tuple by their
        numbers from 0, with points between them: "model.embedding.parts.1.size".

    Raises:
      UserError: the recipe does not have a path (the message names the nearest), or a value is not
        of its field's type.

    Example:
      >>> configuration.changed(model, {"head": heads.Softmax(), "core.size": 16}).core.size
      16
    """
    replacements = []
    for path, value in changes.items():

        def new_value(kind, label, value=value, path=path):
            check_value(value, kind, path)
            return value

        replacements.append(Change(path, f"changed: {path}", new_value))
    return replace_all(recipe, replacements)


# --------------------------------------- A walk over all components and fields of a recipe


def field_names(component: Any) -> list[str]:
    """Returns the fields of a dataclass, or of its instance, that are part of a recipe: those that
    count when components are compared."""
    return [field.name for field in dataclasses.fields(component) if field.compare]


def required_fields(component: type) -> list[str]:
    """Returns the fields of a dataclass that have no default."""
    absent = dataclasses.MISSING
    return [
        field.name
        for field in dataclasses.fields(component)
        if field.init and field.default is absent and field.default_factory is absent
    ]


def changed_fields(component: Any) -> list[str]:
    """Returns the fields of a component that do not have their defaults, required ones included."""
    absent = dataclasses.MISSING
    names = []
    for field in dataclasses.fields(component):
        default = field.default
        if field.default_factory is not absent:
            default = field.default_factory()
        value = getattr(component, field.name)
        if field.compare and (type(value) is not type(default) or value != default):
            names.append(field.name)
    return names


def values(recipe: Any, path: str = "", name: str = "") -> Iterator[tuple[str, str, Any]]:
    """Yields (dotted path, name of the field, value) of all within a recipe, from the top down.

    A tuple is yielded whole, and then item by item, numbered from 0 in the path, under the name of
    its field. A component is yielded before its fields.
    """
    if dataclasses.is_dataclass(recipe) and not isinstance(recipe, type):
        inner = [(field, field, getattr(recipe, field)) for field in field_names(recipe)]
    elif isinstance(recipe, tuple):
        inner = [(str(index), name, value) for index, value in enumerate(recipe)]
    else:
        return
    for step, field, value in inner:
        inside = f"{path}.{step}" if path else step
        yield inside, field, value
        yield from values(value, inside, field)


# -------------------------------- type checks of recipes' fields against their annotations
# Python does not check annotations. A comma forgotten in a tuple of one item, or a background of
# another kind, would raise an error far from where it was written.

_NUMBERS = {int: (numbers.Integral, "a whole number"), float: (numbers.Real, "a number")}


def check_types(recipe: Any, path: str = ""):
    """Checks all fields of a recipe, and of the components in them."""
    kinds = typing.get_type_hints(type(recipe))
    for field in dataclasses.fields(recipe):
        name = f"{path}.{field.name}" if path else field.name
        check_value(getattr(recipe, field.name), kinds[field.name], name)


def check_value(value: Any, kind: Any, name: str):
    """Raises UserError unless a value, with all its items and fields, is of the declared type."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    expected = ""  # if the value is another
    if origin in (types.UnionType, typing.Union):
        alternatives = [argument for argument in arguments if argument is not type(None)]
        is_none = value is None and type(None) in arguments
        if len(alternatives) == 1 and not is_none:
            check_value(value, alternatives[0], name)
    elif origin is tuple and not isinstance(value, tuple):
        forgotten = "" if isinstance(value, list) else ", with a comma if it has a single item"
        expected = f"a tuple{forgotten}"
    elif origin is tuple:
        kinds = (arguments[0],) * len(value) if arguments[-1] is ... else arguments
        if len(value) != len(kinds):
            expected = f"a tuple of {len(kinds)}"
        for number, (item, kind) in enumerate(zip(value, kinds, strict=False)):
            check_value(item, kind, f"{name}.{number}")
    elif kind is bool and not isinstance(value, bool):
        expected = "True or False"
    elif kind in _NUMBERS:
        number_kind, words = _NUMBERS[kind]
        if isinstance(value, bool) or not isinstance(value, number_kind):
            expected = words
    elif kind is str and not isinstance(value, str):
        expected = "a string"
    elif inspect.isclass(kind) and kind is not object:
        if inspect.isclass(value):
            expected = f"{value.__name__}(), with parentheses"
        elif not isinstance(value, kind):
            examples = ", ".join(sorted(components(kind)))
            expected = with_article(kind) + (f", such as {examples}" if examples else "")
        elif dataclasses.is_dataclass(value):
            check_types(value, name)
    if expected:
        description = f"{value!r}, of type {type(value).__name__}"
        if inspect.isclass(value):
            description = f"the class {value.__name__}"
        elif dataclasses.is_dataclass(value):
            description = type(value).__name__
        raise UserError(f"{name} is {description}: give {expected}.")
